"""The backend's settings: how they are changed, and which kernels they choose."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from tests.reference.graphs import drawn_by_seed, features

import demonet
from demonet import DegreeLayout, DegreeTasks, DEMOConv, DemonetError, backend
from demonet.ops.graph import Graph


def test_override_ends_with_its_block():
    before = backend.current()
    with backend.override(path="reference", piece_rows=3) as inside:
        assert backend.current() is inside
        assert (inside.path, inside.piece_rows) == ("reference", 3)
        assert backend.family(torch.zeros(1)) == "reference"
        with backend.override(piece_rows=4):
            assert backend.current().path == "reference"
    assert backend.current() is before
    assert backend.family(torch.zeros(1)) == "cpu"
    assert demonet.backend is backend


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"path": "metal"}, "metal"),
        ({"rows": 3}, "'rows'"),
        ({"piece_rows": -1}, "piece_rows=-1"),
        ({"tile_rows": 32}, "tile_rows"),
    ],
)
def test_bad_settings_are_named(changes, named):
    with pytest.raises(DemonetError, match=named), backend.override(**changes):
        pass


@pytest.mark.parametrize("text", ["piece_rows=many", "tile_rows=48", "nothing=1", "fast"])
def test_bad_environment(text):
    with pytest.raises(DemonetError, match=text.split("=")[0]):
        backend.parse(text)


def test_the_environment_sets_path_and_thresholds():
    code = "from demonet import backend; print(backend.current().path, backend.current().tile_rows)"
    environment = os.environ | {"DEMONET_BACKEND": "reference, tile_rows=32"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["reference", "32"]


@pytest.mark.parametrize("scheme", ["weight", "hash", "smooth"])
def test_every_path_gives_the_same_layer(scheme):
    graph = drawn_by_seed(12, 30)
    layout = DegreeLayout.from_edge_index(*graph)
    torch.manual_seed(0)
    conv = DEMOConv(4, 6, DegreeTasks.exact(layout.degree), scheme=scheme)
    x = features(12, 4, 0, torch.float32)
    expected = conv(x, layout)
    for path in ("reference", "cpu", *(["triton"] if backend.HAS_TRITON else [])):
        with backend.override(path=path):
            torch.testing.assert_close(conv(x, layout), expected)


def test_schedules_follow_the_settings():
    layout = DegreeLayout.from_edge_index(*drawn_by_seed(12, 30))
    graph = Graph.of(layout)
    assert Graph.of(layout.sorted()) is graph
    x = torch.zeros(12, 1)
    with backend.override(piece_rows=2, piece_graph_rows=1):
        assert len(Graph.of(layout).pieces_for(x)) == 6
    assert len(Graph.of(layout).pieces_for(x)) == 1
