"""Bad input to training: an error that says what and where, before any work is done."""

import pytest
import torch
from tests.train import problems
from torch_geometric.data import Data

from demonet import DemonetError
from demonet.data.splits import Split
from demonet.train import TrainConfig, train_graphs, train_nodes


def nodes(family="nodes", split=None, **changes):
    data, drawn = getattr(problems, family)()
    for name, value in changes.items():
        data[name] = value(data) if callable(value) else value
    return train_nodes(data, split or drawn, problems.quick("paper", family, epochs=1))


def spoiled(data):
    x = data.x.to_dense()
    x[5, 7] = float("inf")
    return x


NODES = {
    "short labels": ({"y": lambda d: d.y[:-1]}, r"\b55\b.*\b56\b"),
    "no labels": ({"y": None}, r"\by\b.*-1"),
    "label -2": ({"y": lambda d: d.y.index_fill(0, torch.tensor([4]), -2)}, r"label\b.*-2\b.*item 4\b"),
    "arc outside": ({"edge_index": torch.tensor([[0, 56], [56, 0]])}, r"\b56\b.*edge_index\[0, 1\]"),
    "infinite feature": ({"family": "attributes", "x": spoiled}, r"\binf\b.*row 5\b.*column 7\b"),
    "few rows": ({"family": "attributes", "x": torch.ones(50, 3)}, r"features\b.*\b50\b.*\b56\b"),
    "no attributes": ({"family": "attributes", "x": None}, "attributes.*degree-rbf"),
    "edge weights": ({"edge_weight": torch.ones(3)}, r"\b3\b.*weights\b.*\b160\b"),
}


@pytest.mark.parametrize("name", NODES)
def test_nodes(name):
    changes, message = NODES[name]
    with pytest.raises(DemonetError, match=message):
        nodes(**changes)


def cut(train=None, val=None, test=None):
    data, split = problems.nodes()
    parts = [getattr(split, n) if p is None else p for n, p in (("train", train), ("val", val), ("test", test))]
    return data, Split("mine", 0, *parts)


def test_splits():
    data, split = problems.nodes()
    cases = [
        (cut(train=[])[1], r"train.*\bmine\b.*empty"),
        (cut(val=[])[1], "validation"),
        (cut(train=split.train[data.y[split.train] == 3])[1], r"\bmine\b.*class 3\b"),
        (cut(test=[56])[1], r"test\b.*\b56\b.*\bmine\b.*\b56\b"),
    ]
    for wrong, message in cases:
        with pytest.raises(DemonetError, match=message):
            nodes(split=wrong)
    with pytest.raises(DemonetError, match=r"item 0\b.*train\b.*\bmine\b"):
        nodes(y=torch.full((56,), -1), split=Split("mine", 0, [0], [1], [2]))


def test_an_empty_test_part_is_not_an_error():
    data, split = cut(test=[])
    trained = train_nodes(data, split, problems.quick("paper", "nodes", epochs=1))
    assert trained.test_metric != trained.test_metric  # not a number


def without(name):
    data, split = problems.graphs(15)
    data[3][name] = None
    return data, split


def outside():
    data, split = problems.graphs(15)
    data[2].edge_index = data[2].edge_index + 1
    return data, split


GRAPHS = {
    "no graphs": (lambda: ([], problems.graphs(15)[1]), "graphs"),
    "no label": (lambda: without("y"), r"graph 3\b.*\by\b"),
    "two labels": (
        lambda: ([Data(y=torch.tensor([0, 1]), num_nodes=1)] * 3, Split("s", 0, [0], [1], [2])),
        r"\b6\b.*\b3\b",
    ),
    "split": (lambda: (problems.graphs(15)[0], Split("s", 0, [0], [1], [15])), r"test\b.*\b15\b.*\bs\b"),
    "arcs": (outside, r"source\b.*edge_index\[0, \d+\]"),
    "no attributes": (lambda: without("x"), "attributes.*degree-rbf"),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs(name):
    make, message = GRAPHS[name]
    data, split = make()
    with pytest.raises(DemonetError, match=message):
        train_graphs(data, split, problems.quick("paper", "graphs", epochs=1))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("lr", value) for value in (0.0, float("nan"), float("inf"))),
        *(("weight_decay", value) for value in (-1e-9, float("nan"))),
        ("degree_decay", -1.0),
        *(("epochs", value) for value in (0, 2.5)),
        ("patience", 0),
        ("batch_size", 1),
        ("seed", 2**32),
    ],
)
def test_training_options_out_of_range(name, value):
    with pytest.raises(DemonetError, match=f"{name}={value!r}"):
        TrainConfig(**{name: value})
