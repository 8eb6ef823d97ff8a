"""Some forged files of our own formats; ``make hostile`` makes many more."""

from __future__ import annotations

import hashlib
import json
import pickletools
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse
from tests.hostile.forged import Forgeries, read_raw
from tests.hostile.supervise import supervised
from tests.runs.files import read_table, write_problem
from torch_geometric.data import Data

from demonet import DEMONetClassifier, DemonetError
from demonet.closedform.pooled import GraphInputs
from demonet.data import Split, read_graph
from demonet.data.columns import ColumnEncoding
from demonet.data.synthetic import small_graphs
from demonet.distributed.store import Store
from demonet.ensemble import Ensemble
from demonet.methods.forest import predict_trees
from demonet.methods.wl_models import WLForest
from demonet.options import Reading
from demonet.runs.storing import store_graph
from demonet.schema import checked_csr, from_json
from demonet.sealed import _sealed, member
from demonet.tensorfile import write_tensors

ROUNDS = 4  # of every file


def test_every_forged_file_is_read_or_refused_in_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    forgeries = Forgeries(tmp_path, 0)
    done = list(supervised(forgeries, range(ROUNDS * len(forgeries.files))))
    assert not [case for case in done if case.failure]
    assert {case.how for case in done} == {"read", "refused"}


def test_a_damaged_pickle_in_a_saved_data_is_refused(tmp_path, refuses):
    """Its unpickler looked up an entry that is not there, and what it raised was no error of a file."""
    path = tmp_path / "graph.pt"
    torch.save(Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 2]])), path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in parts if name.endswith("data.pkl"))
    place = next(at for code, _, at in pickletools.genops(parts[name]) if code.name == "BINGET" and at is not None)
    parts[name] = parts[name][: place + 1] + b"\xff" + parts[name][place + 2 :]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for each, content in parts.items():
            archive.writestr(each, content)
    refuses(lambda: read_graph(path), "Data", "graph.pt")


def test_a_cycle_in_a_stored_tree_is_refused(refuses):
    """The root points at a node that points back: no item would ever reach a leaf."""
    tree = {"roots": np.array([0]), "feature": np.array([0, 0, 0]), "threshold": np.zeros(3), "value": np.zeros((3, 2))}
    tree |= {"left": np.array([1, 0, 2]), "right": np.array([1, 0, 2])}
    refuses(lambda: predict_trees(tree, np.zeros((4, 1))), "cycle")
    whole = tree | {"left": np.array([1, 1, 2]), "right": np.array([2, 1, 2])}
    assert predict_trees(whole, np.zeros((4, 1))).shape == (4, 2)
    refuses(lambda: predict_trees(whole | {"feature": np.array([5, 0, 0])}, np.zeros((4, 1))), "feature")


FORGED = [(ColumnEncoding, {"limits": [0.0]}), (ColumnEncoding, {"median": "x"}), (ColumnEncoding, {"kind": "x"})]
FORGED += [(Reading, {"source": [0]}), (Reading, {"ids": None}), (Reading, {"ignore": 0}), (Reading, {"other": 0})]


@pytest.mark.parametrize(("made", "forged"), FORGED)
def test_values_of_another_type_are_refused(refuses, made, forged):
    """They were taken as they are, and ended in a traceback where they were used."""
    whole = {"name": "age", "kind": "number", "limits": [0, 1.5]} if made is ColumnEncoding else {"ignore": ["a", 1]}
    assert from_json(made, whole)
    refuses(lambda: from_json(made, whole | forged), next(iter(forged)))


@pytest.mark.parametrize(("column", "pointer"), [([0, 9], [0, 1, 2]), ([0, -1], [0, 1, 2]), ([0, 1], [0, 2, 1])])
def test_indices_and_pointers_out_of_bounds_are_refused(refuses, column, pointer):
    refuses(lambda: checked_csr(np.ones(2), np.array(column), np.array(pointer), (2, 3)))


def test_a_sparse_tensor_with_an_index_out_of_bounds_is_refused(tmp_path, refuses):
    """It ended the process."""
    index = torch.tensor([[0, 1], [0, 10**6]])
    x = torch.sparse_coo_tensor(index, torch.ones(2), (3, 4), check_invariants=False)
    path = tmp_path / "graph.pt"
    torch.save(Data(x=x, edge_index=torch.tensor([[0, 1], [1, 2]])), path)
    refuses(lambda: read_graph(path), "graph.pt", "")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x", torch.empty(3, 2, device="meta")),
        ("x", torch.quantize_per_tensor(torch.ones(3, 2), 1.0, 0, torch.qint8)),
        ("edge_weight", torch.ones(5)),
        ("edge_weight", torch.tensor([1.0, torch.inf])),
        ("train_mask", torch.ones(7, dtype=torch.bool)),
    ],
)
def test_a_graph_with_values_that_cannot_be_is_refused(tmp_path, refuses, name, value):
    """The first was a traceback; too many weights were taken for the edges in the order of the first ones."""
    path, data = tmp_path / "graph.pt", Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 2]]))
    data[name] = value
    torch.save(data, path)
    refuses(lambda: read_graph(path), "graph.pt", "")


def test_a_long_name_in_a_manifest_is_refused(tmp_path, refuses):
    """It was an error of the system."""
    refuses(lambda: member(tmp_path, "a" * 256), "too long")


def test_one_column_for_both_ends_is_refused(tmp_path, refuses):
    """It was a StopIteration."""
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\n")
    refuses(lambda: read_graph(tmp_path / "edges.csv", source=0, target=0), "column 'source'", "twice")


@pytest.mark.parametrize("forged", ["width", "class", "name", "kind", "attributes"])
def test_a_store_with_too_many_columns_or_classes_is_refused(tmp_path, monkeypatch, refuses, forged):
    """One number asked for 16 TB; a class without a node ended in an IndexError after the training.

    Names that are lists, attributes that are truth values and fewer names than attributes were tracebacks.
    """
    monkeypatch.chdir(tmp_path)
    write_problem(tmp_path, motifs=4)
    sparse.save_npz("x.npz", sparse.random_array((20, 30), density=0.1, format="csr", rng=0))
    store_graph("edges.csv", "labels.csv", "x.npz", out="store")
    path = Path("store/manifest.json")
    manifest = {name: value for name, value in json.loads(path.read_bytes()).items() if name != "sha256"}
    if forged == "class":
        manifest["facts"]["class_names"].append("another")
    elif forged == "name":
        manifest["facts"]["class_names"][0] = ["a", "b"]
    elif forged == "attributes":
        manifest["facts"]["attributes"] = ["a", "b"]
    else:
        name = "x_width.npy" if forged == "width" else "x_value.npy"
        np.save(f"store/{name}", np.array(2**42) if forged == "width" else np.load(f"store/{name}") > 0)
        raw = Path("store", name).read_bytes()
        manifest["files"][name] = {"sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw)}
    path.write_bytes(_sealed(manifest))
    words = {"width": "memory", "class": "classes", "name": "class", "kind": "x_value", "attributes": "2 names"}
    refuses(lambda: Store("store").read(), "store", words[forged])


@pytest.mark.parametrize("forged", ["members", "cuts", "alpha"])
def test_a_kernel_machine_whose_parts_do_not_fit_is_refused(tmp_path, monkeypatch, refuses, forged):
    """Each was a traceback in the first prediction."""
    monkeypatch.chdir(tmp_path)
    write_problem(tmp_path, motifs=4)
    named = dict(read_table(Path("labels.csv"))[1:])
    DEMONetClassifier(model="kernel", graph="edges.csv").fit(list(named), list(named.values())).save("m.safetensors")
    format, tensors, facts = read_raw(Path("m.safetensors"))
    machine = facts["model"]
    if forged == "members":
        machine["members"] = []
    elif forged == "cuts":
        machine["link"]["cuts"] = [0.0, 1.0, *machine["link"]["cuts"]]
    else:
        name = next(name for name in tensors if name.endswith("alpha.0"))
        tensors[name] = torch.cat([tensors[name], tensors[name]], 1)
    write_tensors(Path("m.safetensors"), format, tensors, facts)
    refuses(lambda: DEMONetClassifier.load("m.safetensors", graph="edges.csv"), "m.safetensors")


def test_more_graphs_than_have_nodes_are_refused_at_once():
    """All edges were looked at for each of them: a thousand times as many had no end."""
    info, arrays = GraphInputs().fit(small_graphs(6)).state()
    whole = GraphInputs.from_state(info, arrays)
    for one, other in zip(whole.graphs, small_graphs(6), strict=True):
        assert torch.equal(one.edge_index, other.edge_index)
    for count in (2**31, 6_000_000, 5, 0):
        with pytest.raises(DemonetError):
            GraphInputs.from_state(info | {"graphs": count}, arrays)


@pytest.mark.parametrize("name", ["weights", "inductive_weights"])
def test_weights_of_members_are_numbers(name):
    """One that no float has made outputs of objects, of which nobody can say whether they are finite."""
    graphs = small_graphs(20)
    facts, tensors = Ensemble.fit(list(graphs), members=[WLForest("forest", trees=5)]).state()
    assert Ensemble.from_state(facts, tensors)
    for value in (10**30, -1.0, float("nan")):
        with pytest.raises(DemonetError, match=name):
            Ensemble.from_state(facts | {name: [value]}, tensors)


def test_a_split_whose_name_is_no_text_is_refused(tmp_path, refuses):
    """Half of a character was a traceback where the hash is made."""
    path = tmp_path / "split.json"
    parts = {"train": [0], "val": [1], "test": [2]}
    path.write_text(json.dumps({"name": "\ud800", "seed": 0, "hash": "0" * 12, **parts}))
    refuses(lambda: Split.load(path), "split.json")
