"""A store gives back the graph that was read; one that was changed or is incomplete is refused, and nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.distributed.graphs import random_graph
from tests.runs.files import write_problem
from torch_geometric.data import Data

from demonet import DemonetError
from demonet.arrayfolder import MANIFEST
from demonet.cli import app
from demonet.data.read import ReadResult
from demonet.distributed.partition import assign, cut
from demonet.distributed.store import Store, write_store
from demonet.runs import Reading
from demonet.runs.inputs import read_inputs
from demonet.runs.storing import store_graph


@pytest.fixture
def problem(tmp_path, monkeypatch):
    write_problem(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def graph(**values) -> ReadResult:
    edge_index, n = random_graph(20, 60)
    return ReadResult(Data(edge_index=edge_index, num_nodes=n, **values))


def test_a_store_gives_back_what_was_read(problem):
    given = store_graph("edges.csv", "labels.csv", "features.csv", out="store", parts=3)
    found = read_inputs("store", None, None, Reading())
    for name in ("edge_index", "x", "y"):
        assert torch.equal(found.data[name], given.data[name])
    assert found.data.columns.state() == given.data.columns.state()
    for name in ("ids", "names", "sizes", "columns", "label_name", "directed", "name", "kind"):
        assert getattr(found, name) == getattr(given, name)
    assert found.store.parts == 3


def test_several_columns_of_labels_weights_and_integer_ids(problem):
    rows = [f"{v},{v % 2},{'' if v == 3 else (v + 1) % 2}" for v in range(6)]
    (problem / "labels.csv").write_text("id,a,b\n" + "\n".join(rows))
    edges = [f"{v},{(v + 1) % 6},{v + 0.5}" for v in range(6)]
    (problem / "edges.csv").write_text("source,target,weight\n" + "\n".join(edges))
    given = store_graph("edges.csv", "labels.csv", out="store", reading=Reading(directed=True))
    found = read_inputs("store", None, None, Reading())
    assert torch.equal(found.data.edge_weight, given.data.edge_weight)
    assert torch.equal(found.data.node_ids, given.data.node_ids)
    assert found.directed
    assert found.labels.names == given.labels.names
    np.testing.assert_array_equal(found.labels.values, given.labels.values)


def test_sparse_attributes_stay_sparse(tmp_path):
    x = (torch.rand(20, 7) < 0.3).float().to_sparse_csr()
    write_store(tmp_path / "store", graph(x=x), "words")
    found = Store(tmp_path / "store").read().data
    assert found.x.layout == torch.sparse_csr
    assert torch.equal(found.x.to_dense(), x.to_dense())
    assert found.node_ids.tolist() == list(range(20))


def test_the_parts_are_those_of_the_graph(tmp_path):
    read = graph()
    write_store(tmp_path / "store", read, "graph", parts=3, partition="hash")
    edge_index = read.data.edge_index
    wanted = cut(edge_index, assign(edge_index, 20, 3, "hash"), 3)
    for number, part in enumerate(wanted):
        found = Store(tmp_path / "store").part(number)
        assert all(torch.equal(getattr(found, name), value) for name, value in vars(part).items())


def test_what_is_written_to_a_graph_does_not_reach_its_store(tmp_path):
    write_store(tmp_path / "store", graph(), "graph")
    data = Store(tmp_path / "store").read().data
    data.edge_index[:] = 0
    assert Store(tmp_path / "store").read().data.edge_index.any()


def change(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("edge_index.npy", change),
        ("edge_index.npy", lambda path: path.write_bytes(path.read_bytes()[:-8])),
        (MANIFEST, change),
        (MANIFEST, Path.unlink),
    ],
)
def test_a_changed_file_is_refused_by_name(tmp_path, refuses, name, damage):
    write_store(tmp_path / "store", graph(), "graph", parts=2)
    damage(tmp_path / "store" / name)
    refuses(lambda: Store(tmp_path / "store").read(), name)


def test_a_part_that_is_missing_or_changed_is_refused_and_the_others_are_not(tmp_path, refuses):
    write_store(tmp_path / "store", graph(), "graph", parts=3)
    (tmp_path / "store" / "part-001" / "halo.npy").unlink()
    change(tmp_path / "store" / "part-002" / "neighbours.npy")
    store = Store(tmp_path / "store")
    store.part(0)
    store.read()
    refuses(lambda: store.part(1), "part-001", "halo.npy", "missing")
    refuses(lambda: store.part(2), "part-002", "neighbours.npy", "checksum")


def test_a_folder_that_is_something_else_is_refused(tmp_path, refuses):
    write_store(tmp_path / "store", graph(), "graph")
    refuses(lambda: write_store(tmp_path / "store", graph(), "graph"), "store", "exists")
    refuses(lambda: write_store(tmp_path / "no" / "store", graph(), "graph"), "does not exist")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / MANIFEST).write_text(json.dumps({"format": "other"}))
    refuses(lambda: Store(tmp_path / "other"), MANIFEST)


def test_a_store_is_read_as_it_was_written(problem, refuses):
    store_graph("edges.csv", "labels.csv", out="store")
    refuses(lambda: read_inputs("store", "labels.csv", None, Reading()), "labels", "store")
    refuses(lambda: read_inputs("store", None, None, Reading(directed=True)), "directed")
    refuses(lambda: read_inputs("store", None, None, Reading(self_loops="keep")), "self_loops", "'drop'")
    refuses(lambda: read_inputs("store", None, None, Reading(items="graphs")), "items")


def test_an_error_while_it_is_written_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device", "x")

    monkeypatch.setattr("demonet.arrayfolder.ArrayWriter.add", fail)
    with pytest.raises(OSError, match="No space"):
        write_store(tmp_path / "store", graph(), "graph", parts=2)
    assert list(tmp_path.iterdir()) == []


FULL = """
import resource, sys
from demonet.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
main()
"""


def test_a_full_disk_is_one_line_and_leaves_nothing(problem):
    """A limit on the size of files stands for a full disk; the write fails in the same place."""
    before = sorted(problem.iterdir())
    command = [sys.executable, "-c", FULL, "store", "edges.csv", "--out", "store", "--parts", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=problem)
    assert done.returncode == 2, done.stderr
    assert [line for line in done.stderr.splitlines() if "warning:" not in line] == done.stderr.splitlines()[-1:]
    assert "too large" in done.stderr
    assert ".npy" in done.stderr
    assert sorted(problem.iterdir()) == before


def test_the_command_writes_what_fit_reads(problem, capsys):
    app(["store", "edges.csv", "--labels", "labels.csv", "--out", "store", "--parts", "2"], standalone_mode=False)
    assert "2 parts (balanced)" in capsys.readouterr().out
    assert Store("store").facts["partition"] == "balanced"


def test_a_set_of_graphs_has_no_store(tmp_path):
    with pytest.raises(DemonetError, match="set of graphs"):
        write_store(tmp_path / "store", ReadResult([]), "graphs")
