"""Ids, labels and categories keep the form in which they are written: 007 is not 7."""

import re
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from demonet import DemonetError, DemonetWarning
from demonet.data import ids_of, read_graph, read_graphs

TEXTS = st.lists(
    st.from_regex(r"-?0{0,2}[0-9]{1,3}|0x[0-9a-f]{1,2}", fullmatch=True), min_size=2, max_size=20, unique=True
)


def written(data):
    return [str(node) for node in ids_of(data)]


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=8)
@given(TEXTS)
def test_the_nodes_are_those_of_the_file_in_every_format(tmp_path_factory, texts):
    """Before, a text table had one node for 007 and 7, and one for 0x10 and 16, but not a Parquet file."""
    folder = tmp_path_factory.mktemp("forms")
    pairs = list(zip(texts, texts[1:] + texts[:1], strict=True))
    (folder / "a.csv").write_text("source,target\n" + "".join(f"{u},{v}\n" for u, v in pairs))
    (folder / "a.txt").write_text("".join(f"{u}   {v}\n" for u, v in pairs))
    sources, targets = zip(*pairs, strict=True)
    parquet.write_table(pa.table({"source": sources, "target": targets}), folder / "a.parquet")
    nx.write_graphml(nx.Graph(pairs), folder / "a.graphml")
    graphs = [read_graph(folder / f"a.{suffix}") for suffix in ("csv", "txt", "parquet", "graphml")]
    graphs += [read_graph(pd.DataFrame({"source": sources, "target": targets})), read_graph(pairs)]
    assert all(sorted(written(data)) == sorted(texts) for data in graphs)
    assert ids_of(graphs[0]) == ids_of(graphs[1]) == ids_of(graphs[2]) == ids_of(graphs[4])


def test_integers_stay_integers_and_in_their_order(write, tmp_path):
    path = write("a.csv", "source,target\n10, 9\n9 ,-2\n9223372036854775807,0 \n")
    assert ids_of(read_graph(path)) == [-2, 0, 9, 10, 2**63 - 1]
    texts = pa.table({"source": ["10", "9"], "target": ["9", "-2"]})
    parquet.write_table(texts, tmp_path / "a.parquet")
    parquet.write_table(texts.cast(pa.schema([("source", pa.int32()), ("target", pa.int64())])), tmp_path / "b.parquet")
    assert ids_of(read_graph(tmp_path / "a.parquet")) == ids_of(read_graph(tmp_path / "b.parquet")) == [-2, 9, 10]
    assert read_graph(path, labels={str(2**63 - 1): "x"}).y.tolist() == [-1, -1, -1, -1, 0]


def test_forms_of_one_number_are_told_once(write):
    with pytest.warns(DemonetWarning) as caught:
        data = read_graph(write("a.csv", "source,target\n007,7\n7,0x10\n0x10,16\n16,x\n"))
    assert written(data) == ["007", "0x10", "16", "7", "x"]
    (told,) = (str(warning.message) for warning in caught)
    assert all(part in told for part in ("a.csv", "'7' and '007'", "2"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_graph(write("b.csv", "source,target\n007,008\n008,a-1\n"))
    with pytest.warns(DemonetWarning, match="'1' and '01'"):
        read_graphs(write("c.csv", "graph,source,target\n01,a,b\n1,a,b\n"))


def test_labels_keep_their_form(write):
    edges = write("e.csv", "source,target\n001,002\n002,003\n")
    with pytest.warns(DemonetWarning, match="'1' and '01'"):
        data = read_graph(edges, write("l.csv", "node,kind\n001,01\n002,1\n003,02\n"))
    assert (data.y.tolist(), data.class_names) == ([0, 2, 1], ["01", "02", "1"])
    assert read_graph(edges, write("m.csv", "node,kind\n001,10\n002,9\n")).class_names == [9, 10]


@pytest.mark.parametrize(("edges", "label"), [(("007", "008"), "7"), (("7", "8"), "007")])
def test_an_id_of_another_form_is_another_id(write, edges, label):
    file = write("e.csv", "source,target\n{},{}\n".format(*edges))
    table = write("l.csv", f"node,kind\n{label},x\n")
    for labels in (table, {label: "x"}):
        with pytest.raises(DemonetError, match=f"{label}.*'{edges[0]}'.*ids='int'"):
            read_graph(file, labels)
    assert read_graph(file, table, ids="int").y.tolist() == [0, -1]


def test_a_category_keeps_its_form(write):
    """Before, a table whose categories all look like numbers had only unseen ones."""
    edges = write("e.csv", "source,target\na,b\nb,c\nc,d\n")
    first = read_graph(edges, features=write("f.csv", "node,kind\na,01\nb,x\nc,y\nd,z\n"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = read_graph(edges, features=write("g.csv", "node,kind\na,01\nb,01\nc,01\nd,x\n"), columns=first.columns)
    assert again.x[:, first.columns.names.index("kind=01")].tolist() == [1, 1, 1, 0]


def test_a_category_has_one_form_in_every_format(write, tmp_path):
    """01 is not 1, and what is 1 in a column of integers is the category that was written 1."""
    edges, nodes = write("e.csv", "source,target\na,b\nb,c\nc,d\nd,e\n"), list("abcde")
    first = read_graph(edges, features=write("f.csv", "node,kind\na,01\nb,1\nc,x\nd,y\ne,z\n"))
    for kinds in (["01", "1", "x", "y", "z"], [1, 1, 1, 1, 1]):
        parquet.write_table(pa.table({"node": nodes, "kind": kinds}), tmp_path / "f.parquet")
        again = read_graph(edges, features=tmp_path / "f.parquet", columns=first.columns)
        written = [first.columns.names[place] for place in again.x.argmax(1)]
        assert written == [f"kind={kind}" for kind in kinds]
        assert again.x.sum() == 5


@pytest.mark.parametrize("values", [[1, "1", 2], [2.5, "x", "2.5"]])
def test_values_of_a_frame_that_differ_only_in_their_type(values):
    frame = pd.DataFrame({"source": np.array(values, dtype=object), "target": ["a", "b", "c"]})
    with pytest.raises(DemonetError, match="'source'"):
        read_graph(frame)
    labels = frame.rename(columns={"target": "node", "source": "kind"})
    with pytest.raises(DemonetError, match="'kind'"):
        read_graph([("a", "b"), ("b", "c")], labels)
    assert ids_of(read_graph(frame.assign(source=[1, "x", 2]))) == ["1", "2", "a", "b", "c", "x"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1.0,2\n2.0,3\n3.0,1\n", "'1' and '1.0'.*3 such pairs"),  # as pandas writes a column with gaps
        ("1e3,1000\n1000,1.0e3\nx,1e3\n", "'1000' and '1.0e3'.*2 such"),
        ("0.50,x\n.5,x\n", "'.5' and '0.50'"),
        ("1e999999999,x\nx,9e-999999999\nx,1\n", None),
        ("10000000000000001.0,10000000000000000\nx,y\n", None),
        ("NA,x\nx,y\n", "'NA' is read as an id"),
    ],
)
def test_other_forms_of_numbers_and_words_for_missing_ones_are_told(write, text, told):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_graph(write("e.csv", "source,target\n" + text))
    found = [str(each.message) for each in caught if "undirected" not in str(each.message)]
    assert len(found) == (told is not None)
    assert all(re.search(str(told), each) for each in found)


def test_characters_that_are_not_seen_are_told(write):
    """From a page or a document: a zero-width space, a soft hyphen, a byte order mark within a name."""
    for name in ("ann\u200b", "an\u00adn", "\u2060ann"):
        with pytest.warns(DemonetWarning, match="'ann' and "):
            data = read_graph(write("e.csv", f"source,target\nann,bob\n{name},eve\nbob,eve\n"))
        assert data.num_nodes == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_graph(write("e.csv", "source,target\n\u0645\u06cc\u200c\u0631,bob\nbob,eve\n"), directed=True)


def test_labels_in_small_and_capital_letters_are_told(write):
    labels = write("l.csv", "node,kind\na,true\nb,TRUE\nc,False\n")
    with pytest.warns(DemonetWarning, match="labels .*'true' and 'TRUE'"):
        data = read_graph(write("e.csv", "source,target\na,b\nb,c\n"), labels)
    assert data.class_names == ["False", "TRUE", "true"]
