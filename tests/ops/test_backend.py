"""The backend's settings: how they are changed, and which kernels they choose."""

import os
import subprocess
import sys

import pytest
import torch
from tests.reference.graphs import drawn_by_seed, features

import demonet
from demonet import DegreeLayout, DegreeTasks, DEMOConv, backend


def test_override_ends_with_its_block():
    with backend.override(path="reference"):
        assert backend.family(torch.zeros(1)) == "reference"
        with backend.override(path="auto"):
            assert backend.family(torch.zeros(1)) == "cpu"
        assert backend.family(torch.zeros(1)) == "reference"
    assert backend.family(torch.zeros(1)) == "cpu"
    assert demonet.backend is backend


def test_an_unknown_path_is_named(refuses):
    refuses(lambda: backend.override(path="metal").__enter__(), "metal", "triton")


def test_the_environment_sets_the_path():
    code = "import torch; from demonet.ops import backend; print(backend.family(torch.zeros(1)))"
    environment = os.environ | {"DEMONET_BACKEND": "reference"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["reference"]


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
