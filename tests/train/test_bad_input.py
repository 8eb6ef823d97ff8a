"""Bad input to training: an error that says what and where, before any work is done."""

from __future__ import annotations

import pytest
import torch
from tests.train import problems
from torch_geometric.data import Data

from demonet import DemonetError
from demonet.data.splits import Split
from demonet.train import NodeProblem, TrainConfig, train_graphs, train_nodes


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
    "short labels": ({"y": lambda d: d.y[:-1]}, "55 labels for 56 items"),
    "long labels": ({"y": lambda d: torch.cat([d.y, d.y[:1]])}, "57 labels for 56 items"),
    "float labels": ({"y": lambda d: d.y.float()}, r"labels are \[56\] of torch.float32, not an int64 vector"),
    "one-hot labels": ({"y": lambda d: torch.eye(12).long()[d.y]}, r"labels are \[56, 12\]"),
    "no labels": ({"y": None}, "the graph has no labels"),
    "label -2": ({"y": lambda d: d.y.index_fill(0, torch.tensor([4]), -2)}, "label -2 of item 4"),
    "arc outside": ({"edge_index": torch.tensor([[0, 56], [56, 0]])}, r"source id 56 at edge_index\[0, 1\]"),
    "float arcs": ({"edge_index": torch.zeros(2, 3)}, "edge_index has type torch.float32"),
    "infinite feature": ({"family": "attributes", "x": spoiled}, "feature inf in row 5, column 7"),
    "few rows": ({"family": "attributes", "x": torch.ones(50, 3)}, "features have 50 rows for 56 nodes"),
    "no attributes": ({"family": "attributes", "x": None}, "the graph has none"),
    "edge weights": ({"edge_weight": torch.ones(3)}, "3 edge weights for"),
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
        (cut(train=[])[1], "the training part of split mine is empty"),
        (cut(val=[])[1], "the validation set is empty"),
        (cut(train=split.train[data.y[split.train] != 3])[1], "class 3 has no item in the training part"),
        (cut(test=[56])[1], "test index 56 of split mine: there are 56 items"),
    ]
    for wrong, message in cases:
        with pytest.raises(DemonetError, match=message):
            nodes(split=wrong)
    with pytest.raises(DemonetError, match="item 0 in train of split mine has no label"):
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
    "no graphs": (lambda: ([], problems.graphs(15)[1]), "there are no graphs"),
    "no label": (lambda: without("y"), "graph 3 has no labels"),
    "two labels": (
        lambda: ([Data(y=torch.tensor([0, 1]), num_nodes=1)] * 3, Split("s", 0, [0], [1], [2])),
        "6 labels for 3",
    ),
    "split": (lambda: (problems.graphs(15)[0], Split("s", 0, [0], [1], [15])), "test index 15 of split s"),
    "arcs": (outside, "source id"),
    "no attributes": (lambda: without("x"), "the graph has none"),
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
        *(("lr", value) for value in (0.0, -1.0, float("nan"), float("inf"))),
        *(("weight_decay", value) for value in (-1e-9, float("nan"), float("inf"))),
        *(("degree_decay", value) for value in (-1.0, float("nan"))),
        *((name, value) for name in ("epochs", "patience") for value in (0, -3, 2.5)),
        *(("batch_size", value) for value in (1, 0, 2.5)),
        *(("seed", value) for value in (-1, 2**32)),
    ],
)
def test_training_options_out_of_range(name, value):
    with pytest.raises(DemonetError, match=f"{name}={value!r}"):
        TrainConfig(**{name: value})


def test_a_problem_checks_its_labels():
    with pytest.raises(DemonetError, match="labels are"):
        NodeProblem((), torch.zeros(3), Split("s", 0, [0], [1], [2]))
