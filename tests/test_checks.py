import pytest
import torch

from demonet import DemonetWarning
from demonet.checks import check_node_count
from demonet.data import Split, check_edge_index, check_features, check_labels, check_split
from demonet.data.rows import to_scipy, to_torch
from demonet.data.splits import warn_of_rare

EDGES = torch.tensor([[0, 1, 2], [1, 2, 0]])


def test_good_input_passes():
    check_edge_index(EDGES, 3)
    check_edge_index(EDGES.int(), (3, 3))
    check_edge_index(EDGES[:, :0], 0)
    check_features(torch.rand(3, 2), 3)
    check_features(to_torch(to_scipy(torch.eye(3))), 3)
    check_labels(torch.tensor([0, -1, 2]), 3, 3)


@pytest.mark.parametrize(
    ("edge_index", "num_nodes", "words"),
    [
        (EDGES.float(), 3, ["float32"]),
        (EDGES.T, 3, ["[3, 2]"]),
        (EDGES[0], 3, ["[3]"]),
        (torch.tensor([[0, -4], [1, 0]]), 3, ["-4", "edge_index[0, 1]", "3"]),
        (torch.tensor([[0, 1], [1, 7]]), 3, ["7", "edge_index[1, 1]", "3"]),
        (torch.tensor([[0, 1], [1, 2]]), (2, 2), ["edge_index[1, 1]", "2"]),
        (torch.tensor([[0], [-1]]), None, ["-1", "edge_index[1, 0]"]),
        ([[0], [1]], 2, ["list"]),
    ],
)
def test_bad_edges_are_named(refuses, edge_index, num_nodes, words):
    refuses(lambda: check_edge_index(edge_index, num_nodes, file="here.csv"), "here.csv", *words)


def test_bad_features_are_named(refuses):
    x = torch.zeros(4, 3)
    x[2, 1] = float("nan")
    refuses(lambda: check_features(x, 4), "nan", "row 2", "column 1")
    sparse = torch.eye(4)
    sparse[3, 3] = float("inf")
    refuses(lambda: check_features(to_torch(to_scipy(sparse)), 4), "inf", "row 3", "column 3")
    refuses(lambda: check_features(torch.zeros(4), 4), "[4]")
    refuses(lambda: check_features(torch.zeros(5, 1), 4), "5 rows", "4 nodes")


@pytest.mark.parametrize(
    ("y", "items", "classes", "words"),
    [
        (torch.tensor([0.0]), 1, None, ["float32"]),
        (torch.tensor([[0]]), 1, None, ["[1, 1]"]),
        (torch.tensor([0, 1]), 3, None, ["2 labels", "3 items"]),
        (torch.tensor([0, -2]), 2, None, ["-2", "item 1"]),
        (torch.tensor([0, 5]), 2, 5, ["5", "item 1", "0 to 4"]),
    ],
)
def test_bad_labels_are_named(refuses, y, items, classes, words):
    refuses(lambda: check_labels(y, items, classes), *words)


def make_split(train, val=(), test=()):
    return Split("mine", 0, *(torch.tensor(part, dtype=torch.int64) for part in (train, val, test)))


def test_bad_splits_are_named(refuses):
    y = torch.tensor([0, 1, 0, 1, -1])
    check_split(make_split([0, 1], [2], [3]), y)
    refuses(lambda: check_split(make_split([], [2], [3]), y), "train", "mine", "empty")
    refuses(lambda: check_split(make_split([0, 2], [1], [3]), y), "class 0", "mine", "stratified=True")
    split = make_split([0, 2], [1], [3])
    refuses(lambda: check_split(split, y, names=["old", "new"], file="s.json"), "s.json: ", "class 'old'", "mine")
    refuses(lambda: check_split(make_split([0, 1], [2], [9]), y), "test", "9", "mine", "5 items")
    refuses(lambda: check_split(make_split([0, 1], [4], [3]), y), "item 4", "val", "mine")
    refuses(lambda: make_split([0, 1], [1], [3]), "item 1", "mine")


def test_classes_with_one_training_item_or_none_are_one_warning():
    y = torch.tensor([0, 0, 1, 1, 2, 3, 3, 4, -1])
    names = ["a", "b", "one", "none", "never", "absent"]
    split = make_split([0, 1, 2, 3, 4], [5, 7], [6])
    check_split(split, y)
    with pytest.warns(DemonetWarning, match=r"s\.json: ") as told:
        warn_of_rare([make_split([0, 1, 2, 3]), split, split], y, names=names, file="s.json")
    [message] = [str(one.message) for one in told]
    assert "'one' (1 to train, 0 to validate, 0 to test)" in message
    assert "'none' (0 to train, 1 to validate, 1 to test)" in message
    assert "'never' (0 to train, 1 to validate, 0 to test)" in message
    assert "'a'" not in message
    assert "'absent'" not in message


def test_a_header_cannot_claim_nodes_without_edges(refuses):
    check_node_count(1_000_000, 0)
    check_node_count(5_000_000, 100_000)
    refuses(lambda: check_node_count(10**9, 5), "1000000000", "5 edges")
