"""Bad input gets one clear error with file, line and value; good input of odd shape is read."""

import gzip
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import torch

from demonet.data import ids_of, read_graph
from demonet.errors import DemonetWarning

EDGES = "1 2\n2 3\n3 1\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("1 2\n2 3 4\n", [":2:", "3 fields", "'2 3 4'"]),
        ("# c\n\n1 2\n2\n", [":4:", "1 fields"]),
        ("1,2,0.5\n2,3,x\n", [":2:", "'x'", "column 3"]),
        ("1,2,0.5\n2,3,nan\n", [":2:", "nan", "column 3"]),
        ("1,2,0.5\n2,3,-inf\n", [":2:", "-inf", "column 3"]),
        ("1,2,0.5\n2,3,\n", [":2:", "column 3"]),
        ("1,2\n,3\n", [":2:", "column 1"]),
        ("a,b\n,3\n", [":2:", "column 'a'"]),
        ("a,b\nc,  \n", [":2:", "column 2"]),
        ("1 2 3 4\n", ["4 columns", "source", "target", "weight"]),
        ("7\n8\n", ["source", "target"]),
        ("source,target\n", [":1:", "header"]),
        ("# only\n\n   \n", ["comments"]),
        ("", ["empty"]),
        (b"\x89PNG\r\n\x1a\n\0\0\0", ["binary"]),
        ("1 2\n3 4\n".encode("utf-16"), ["binary", "UTF-8"]),
        (b"1 2\n2 \xff\x81\n", [":2:", "0x81", "UTF-8"]),
        (gzip.compress(EDGES.encode() * 100, mtime=0)[:-12], ["gzip"]),
        (b"\x1f\x8b", ["gzip"]),
        (b"\x1f\x8b\x08garbage garbage garbage", ["gzip"]),
        (",".join(map(str, range(1_000_000))), [":1:", "1,000,000 columns"]),
        ("1 2\n" + " ".join(["9"] * 1_000_000) + "\n", [":2:", "1000000 fields", "2"]),
    ],
)
def test_a_bad_edge_list_is_explained(write, refuses, content, words):
    path = write("edges.txt", content)
    refuses(lambda: read_graph(path), "edges.txt", *words)


def test_a_letter_among_integer_ids_is_refused_on_request(write, refuses):
    path = write("edges.txt", "1 2\n3 x\n")
    assert ids_of(read_graph(path)) == ["1", "2", "3", "x"]
    refuses(lambda: read_graph(path, ids="int"), "edges.txt:2:", "'x'", "column 2")
    refuses(lambda: read_graph(path, ids="numbers"), "numbers")


def test_a_gzip_bomb_does_not_fill_the_memory(write, refuses):
    path = write("edges.txt.gz", gzip.compress(b"0" * (300 << 20), 1, mtime=0))
    tracemalloc.start()
    refuses(lambda: read_graph(path), "138,412,032")
    assert tracemalloc.get_traced_memory()[1] < 1 << 30
    tracemalloc.stop()


def test_a_missing_file_is_named(tmp_path, refuses):
    refuses(lambda: read_graph(tmp_path / "nowhere.mat"), "nowhere.mat: ")
    refuses(lambda: read_graph(tmp_path), f"{tmp_path}: ")


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ("1 a\n2 b\n9 a\n", ["labels.txt:3:", "id 9", "1", "add_isolated=True"]),
        ("1 a\n2 b\n1 c\n", ["labels.txt:3:", "'c'", "'a'"]),
        ("# k\n\n1 a\n2 b c\n", ["labels.txt:4:", "3 fields"]),
        ("1\n2\n", ["labels.txt: ", "column"]),
        ("1 a\nx b\n", ["labels.txt:2:", "'x'"]),
        ("", ["labels.txt", "empty"]),
    ],
)
def test_bad_labels_are_explained(write, refuses, labels, words):
    edges, path = write("edges.txt", EDGES), write("labels.txt", labels)
    refuses(lambda: read_graph(edges, path), *words)


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ("1,0.5\n2,x\n3,1\n", ["features.csv:2:", "'x'", "column 2"]),
        ("id,size\n1,0.5\n2,x\n3,1\n", ["features.csv:3:", "'x'", "'size'"]),
        ("1,0.5\n2,1e999\n3,1\n", ["features.csv:2:", "inf"]),
        ("1,0.5\n2,1\n3,1\n3,2\n", ["features.csv:4:", "node 3", "different"]),
        ("1,0.5\n2,1\n3,1\n4,2\n", ["features.csv:4:", "id 4", "add_isolated"]),
        (",".join(map(str, range(1_000_000))), ["1,000,000 columns", ".npz"]),
    ],
)
def test_bad_features_are_explained(write, refuses, features, words):
    edges, path = write("edges.txt", EDGES), write("features.csv", features)
    refuses(lambda: read_graph(edges, features=path), *words)


def test_overflow_to_infinity_is_refused(write, refuses):
    edges, path = write("edges.txt", EDGES), write("f.csv", "1,1\n2,1e300\n3,1\n")  # too large for float32
    refuses(lambda: read_graph(edges, features=path), "inf")
    refuses(lambda: read_graph(edges, features=np.array([[1.0], [np.nan], [2]])), "nan", "row 1")
    refuses(lambda: read_graph(edges, features=np.ones((4, 2))), "4 feature rows", "3 nodes")


def test_strangers_can_be_added_as_isolated_nodes(write):
    edges = write("edges.txt", EDGES)
    data = read_graph(edges, labels={1: "a", 9: "b"}, add_isolated=True)
    assert ids_of(data) == [1, 2, 3, 9]
    assert data.y.tolist() == [0, -1, -1, 1]
    assert not (data.edge_index == 3).any()
    mixed = read_graph(edges, labels={"1": "a", "x": "b"}, add_isolated=True)
    assert ids_of(mixed) == ["1", "2", "3", "x"]


@pytest.mark.parametrize(
    ("labels", "names", "y"),
    [
        ("1 x\n2 y\n", ["x", "y"], [0, 1, -1]),
        ("1 10\n2 9\n", [9, 10], [1, 0, -1]),
        ("node label\n1 -1\n2 1\n3 -1\n", [-1, 1], [0, 1, 0]),
        ("1,a b\n2,\n3,c\n", ["a b", "c"], [0, -1, 1]),
        ({1: True, 2: False, 3: None}, [False, True], [1, 0, -1]),
        ({3: 1.5, 1: float("nan")}, [1.5], [-1, -1, 0]),
        ({1: "a", 2: 7, 3: (1, 2)}, [7, "a", (1, 2)], [1, 0, 2]),
        (["u", "v", "u"], ["u", "v"], [0, 1, 0]),
        (torch.tensor([3, -1, 5]), [3, 5], [0, -1, 1]),
        (pd.Series(["q", "p"], index=[3, 2]), ["p", "q"], [-1, 0, 1]),
    ],
)
def test_classes_may_have_names_of_any_type(write, labels, names, y):
    edges = write("edges.txt", EDGES)
    data = read_graph(edges, write("labels.txt", labels) if isinstance(labels, str) else labels)
    assert data.class_names == names
    assert data.y.tolist() == y


def test_labels_in_the_order_of_string_ids(write):
    data = read_graph(write("e.txt", "c a\na b\n"), ["first", "second", "first"], np.eye(3))
    assert [data.class_names[y] for y in data.y] == ["first", "second", "first"]
    assert torch.equal(data.x, torch.eye(3))


def test_unusable_labels_are_refused(write, refuses):
    edges = write("edges.txt", EDGES)
    refuses(lambda: read_graph(edges, ["a", "b"]), "2 labels", "3 nodes")
    refuses(lambda: read_graph(edges, np.zeros((3, 2))), "(3, 2)")
    refuses(lambda: read_graph(edges, {1: [1], 2: [2]}), "'list'")


def test_a_header_is_found_and_never_eats_an_edge(write):
    with pytest.warns(DemonetWarning, match="'begin, end'.*header=False"):
        assert read_graph(write("a.csv", "begin,end\n1,2\n2,3\n")).num_nodes == 3
    labels = write("l.csv", "b,x\n5,y\n")
    assert read_graph(write("l.txt", "5 b\n"), labels).y.tolist() == [1, 0]
    assert read_graph(write("b.csv", "source,target\na,b\n")).num_nodes == 2
    assert read_graph(write("c.csv", "a,b\n5,6\nc,d\n")).num_nodes == 6
    assert read_graph(write("d.csv", "a,1\n5,6\n")).num_nodes == 4
    assert read_graph(write("e.csv", "Anna,Ben\nBen,Carl\n"), header=True).num_nodes == 2


def test_a_first_line_of_words_that_never_come_again_is_pointed_out(write):
    with pytest.warns(DemonetWarning, match=r"a\.csv:1: .*'person', 'friend'"):
        assert read_graph(write("a.csv", "person,friend\nann,bob\nbob,eve\neve,ann\n")).num_nodes == 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_graph(write("b.csv", "ann,bob\nbob,eve\neve,ann\n")).num_nodes == 3


def test_columns_by_name_and_place(write, refuses):
    path = write("e.csv", "time,to,by,strength\n3,b,a,0.5\n4,c,a,2\n")
    data = read_graph(path, source="by", target="to", weight="strength", directed=True)
    assert (ids_of(data), data.edge_index.tolist()) == (["a", "b", "c"], [[0, 0], [1, 2]])
    assert data.edge_weight.tolist() == [0.5, 2]
    assert read_graph(path, source=2, target=1, header=True).edge_weight is None
    refuses(lambda: read_graph(path, source="from", target="to"), "'from'", "time, to, by")
    refuses(lambda: read_graph(path, source=7, target=1), "7", "4")


def test_quotes_blanks_and_signs(write):
    data = read_graph(write("e.csv", '"New York", Paris\n"a, b",Paris\n'))
    assert ids_of(data) == ["New York", "Paris", "a, b"]
    assert ids_of(read_graph(write("e.txt", "-5 3\n3 007\n"))) == ["-5", "007", "3"]
    assert ids_of(read_graph(write("e.txt", "-5 3\n3 007\n"), ids="int")) == [-5, 3, 7]
    assert ids_of(read_graph(write("e.txt", "5 3\n3 007\n"), ids="str")) == ["007", "3", "5"]
    big = 2**63
    assert ids_of(read_graph(write("e.txt", f"1 {big}\n"))) == ["1", str(big)]
    assert ids_of(read_graph(write("e.txt", "\ufeff1 2\r2 3\r"))) == [1, 2, 3]


def test_weights_of_one_say_nothing_and_can_be_ignored(write):
    assert read_graph(write("e.txt", "1 2 1\n2 3 1.0\n")).edge_weight is None
    path = write("f.txt", "1 2 5\n2 3 1\n")
    assert read_graph(path).edge_weight.tolist() == [5, 5, 1, 1]
    assert read_graph(path, weight=False).edge_weight is None


def test_loops_and_duplicates_follow_the_policy(write):
    path = write("e.txt", "1 1\n1 2\n2 1\n1 2\n7 7\n")
    with pytest.warns(DemonetWarning) as caught:
        data = read_graph(path)
    loops, duplicates = (str(warning.message) for warning in caught)
    assert "e.txt: 2 self-loops" in loops
    assert "e.txt: 1 duplicate" in duplicates
    assert ids_of(data) == [1, 2, 7]  # seen only in a dropped loop: isolated, not gone
    with pytest.warns(DemonetWarning, match="duplicate"):
        kept = read_graph(path, self_loops="keep")
    assert kept.edge_index.tolist() == [[0, 0, 1, 2], [0, 1, 0, 2]]
