"""A graph with masks of its own is split by them, in every file that can hold them and in every command."""

import json
import os
import pickle
from pathlib import Path

import networkx as nx
import pytest
import torch
from tests.estimators.problems import masked
from tests.runs.files import roles, write_problem
from tests.runs.test_compare import Here
from torch_geometric.data import Data

from demonet.data import Split, read_graph, thirds
from demonet.errors import DemonetError, DemonetWarning
from demonet.runs import Settings, fit_run
from demonet.runs.compare import Comparing, compare_run
from demonet.runs.inputs import _is_name

EDGES, LABELS = roles(8)
PARTS = ("train", "val", "test")
QUICK = Settings(model="kernel")


@pytest.fixture(name="masked")
def data_and_split(tmp_path, monkeypatch):
    """A Data with masks, and their split; the folder at hand is empty."""
    monkeypatch.chdir(tmp_path)
    data = read_graph(EDGES, labels=LABELS)
    split = thirds(data.y, seed=3, stratified=True)
    return masked(data, split), split


def written(folder):
    parts = json.loads((Path(folder) / "split.json").read_text())
    return {part: parts[part] for part in PARTS}


def expected(split):
    return {part: getattr(split, part).tolist() for part in PARTS}


def test_fit_takes_the_masks_of_a_torch_file(masked):
    data, split = masked
    torch.save(data, "graph.pt")
    fit_run("graph.pt", out="run", settings=QUICK)
    assert written("run") == expected(split)


def test_masks_may_be_attributes_of_nodes(masked):
    data, _ = masked
    graph = nx.Graph(EDGES)
    for part in PARTS:
        inside = {name: bool(data[f"{part}_mask"][i]) for i, name in enumerate(data.node_ids)}
        nx.set_node_attributes(graph, inside, f"{part}_mask")
    nx.set_node_attributes(graph, LABELS, "role")
    nx.write_graphml(graph, "graph.graphml")
    read = read_graph("graph.graphml", labels="role", features=None)
    order = [data.node_ids.index(name) for name in read.node_ids]
    for part in PARTS:
        assert torch.equal(read[f"{part}_mask"], data[f"{part}_mask"][order])
    nx.set_node_attributes(graph, "no", "val_mask")
    with pytest.raises(DemonetError, match="val_mask"):
        read_graph(graph)


def test_masks_are_no_features():
    graph = nx.Graph(EDGES)
    nx.set_node_attributes(graph, dict.fromkeys(graph, True), "train_mask")
    nx.set_node_attributes(graph, {name: float(len(name)) for name in graph}, "length")
    assert read_graph(graph, features="all").columns.names == ["length"]


def test_several_masks_are_several_splits(masked):
    data, split = masked
    masks = [data[f"{part}_mask"] for part in PARTS]
    for part, one, other in zip(PARTS, masks, [*masks[1:], masks[0]], strict=True):
        data[f"{part}_mask"] = torch.stack([one, other], 1)
    torch.save(data, "graph.pt")
    with pytest.warns(DemonetWarning, match="train_mask"):
        run = fit_run("graph.pt", out="run", settings=Settings(model="kernel", cv=3))
    assert run.metrics["cv"]["splits"] == 2
    assert written("run") == expected(split)


def test_without_a_validation_mask_part_of_the_training_nodes_validates(masked):
    data, split = masked
    del data.val_mask
    torch.save(data, "graph.pt")
    fit_run("graph.pt", out="run", settings=QUICK)
    found = written("run")
    assert found["val"]
    assert sorted(found["train"] + found["val"]) == split.train.tolist()
    assert found["test"] == split.test.tolist()


@pytest.mark.filterwarnings("ignore::demonet.errors.DemonetWarning")
def test_every_method_is_compared_on_the_masks(masked):
    data, _ = masked
    torch.save(data, "graph.pt")
    engine, chosen = Here(), ("majority", "degree-knn")
    board = compare_run("graph.pt", out="out", comparing=Comparing(methods=chosen), engine=lambda jobs: engine)
    assert sorted(engine.given) == [("degree-knn", 0), ("majority", 0)]
    cells = [json.loads(path.read_text()) for path in Path("out/cells").iterdir()]
    assert {cell["split"] for cell in cells} == {Split.from_masks(data).hash}
    assert all(row.status == "compared" and row.low is None for row in board.rows)


class Runs:
    """A pickle that would run a command."""

    def __reduce__(self):
        return os.system, ("touch ran",)


@pytest.mark.parametrize("content", [Runs(), [1, 2], Data(num_nodes=3), b"no pickle"])
def test_a_torch_file_of_something_else_is_one_error_and_runs_nothing(masked, content):
    if isinstance(content, bytes):
        Path("graph.pt").write_bytes(content)
    elif isinstance(content, Runs):
        Path("graph.pt").write_bytes(pickle.dumps(content))
    else:
        torch.save(content, "graph.pt")
    with pytest.raises(DemonetError) as caught:
        read_graph("graph.pt")
    assert caught.value.file is not None
    assert not Path("ran").exists()


def test_a_folder_that_is_called_as_a_data_set_may_be_the_result(tmp_path, monkeypatch):
    """``demonet compare brazil --out brazil`` read its own folder."""
    monkeypatch.chdir(tmp_path)
    assert _is_name("brazil")
    Path("brazil").mkdir()
    assert _is_name("brazil")
    Path("brazil/brazil_A.txt").touch()
    assert not _is_name("brazil")
    write_problem(tmp_path)
    assert not _is_name("edges.csv")
