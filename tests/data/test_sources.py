"""Graphs from other sources than edge lists: matrices, markup, objects of other libraries, damaged or whole."""

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from scipy import io, sparse
from torch_geometric.data import Batch, Data

from demonet.data import ids_of, read_graph
from demonet.errors import DemonetWarning

EDGES = "1 2\n2 3\n3 1\n"


def test_labels_and_features_inside_a_matlab_file(tmp_path, refuses):
    path = tmp_path / "m.mat"
    network = sparse.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    attributes = sparse.csr_array(np.array([[1, 0], [0, 2], [0, 0]]))
    io.savemat(path, {"Network": network, "Attributes": attributes, "Label": [[3], [1], [3]], "More": network})
    data = read_graph(path, "Label", "Attributes", matrix="Network")
    assert (data.class_names, data.y.tolist()) == ([1, 3], [1, 0, 1])
    assert data.x.to_dense().tolist() == [[1, 0], [0, 2], [0, 0]]
    refuses(lambda: read_graph(path), "Network, More", "matrix: ")
    refuses(lambda: read_graph(path, matrix="Nothing"), "'Nothing'")
    refuses(lambda: read_graph(path, "Labels", matrix="Network"), "'Labels'", "Label")


def test_attributes_inside_a_networkx_graph(refuses):
    graph = nx.path_graph(["c", "a", "b"])
    nx.set_node_attributes(graph, {"c": 1.5, "a": 2, "b": 3}, "size")
    nx.set_node_attributes(graph, {"c": "red", "b": "blue"}, "colour")
    data = read_graph(graph, "colour", ["size"])
    assert ids_of(data) == ["c", "a", "b"]  # the graph's own order
    assert (data.y.tolist(), data.class_names) == ([1, -1, 0], ["blue", "red"])
    assert data.x.tolist() == [[1.5], [2], [3]]
    refuses(lambda: read_graph(graph, "shape"), "'shape'", "colour")
    with pytest.warns(DemonetWarning, match="'colour'"):
        coloured = read_graph(graph, features="all")
    assert coloured.columns.names == ["colour=blue", "colour=red", "colour missing", "size"]
    assert coloured.x.tolist() == [[0, 1, 0, 1.5], [0, 0, 1, 2], [1, 0, 0, 3]]
    assert torch.equal(read_graph(graph, "colour", "all").x, data.x)
    refuses(lambda: read_graph(graph, features=["shape"]), "'shape'", "colour")
    refuses(lambda: read_graph(nx.Graph([(1, "1")])), "type")
    heavy = nx.Graph()
    heavy.add_edge(1, 2, weight="much")
    refuses(lambda: read_graph(heavy), "'much'", "1", "2")
    assert read_graph(nx.DiGraph([(0, 1)])).edge_index.tolist() == [[0], [1]]
    assert read_graph(nx.MultiGraph([(0, 1), (1, 2)])).edge_index.size(1) == 4


def test_a_data_keeps_what_it_has(refuses):
    data = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), x=torch.eye(4), y=torch.tensor([0, 1, 1, -1]))
    read = read_graph(data)
    assert torch.equal(read.x, data.x)
    assert torch.equal(read.y, data.y)
    assert read.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    data.edge_index[0, 0] = 9
    refuses(lambda: read_graph(data), "source id 9")


@pytest.mark.parametrize("thing", [None, 3, {"a": 1}, object()])
def test_other_things_are_not_graphs(refuses, thing):
    refuses(lambda: read_graph(thing), type(thing).__name__, "NetworkX")


@pytest.mark.parametrize("pairs", [[1, 2], [(1, 2), (1, 2, 3)], [(1, 2, 3, 4)], [(1, 2, "heavy")], [(1, 2, np.inf)]])
def test_lists_that_are_not_edges(refuses, pairs):
    refuses(lambda: read_graph(pairs), "edge")


def test_lists_of_pairs_and_triples():
    data = read_graph([("b", "a"), ("b", "c")])
    assert (ids_of(data), data.edge_index.tolist()) == (["a", "b", "c"], [[0, 1, 1, 2], [1, 0, 2, 1]])
    weighted = read_graph([(1, 2, 0.5), (2, 3, 4)])
    assert (ids_of(weighted), weighted.edge_weight.tolist()) == ([1, 2, 3], [0.5, 0.5, 4, 4])


class Stream:
    """A frame of another library: Arrow's protocol and column names are all it has."""

    def __init__(self, table):
        self.table, self.columns = table, table.column_names

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class Interchange:
    def __init__(self, frame):
        self.frame, self.columns = frame, list(frame.columns)

    def __dataframe__(self, *arguments, **options):
        return self.frame.__dataframe__(*arguments, **options)


class Convertible:
    def __init__(self, frame):
        self.frame, self.columns = frame, list(frame.columns)

    def to_pandas(self):
        return self.frame


FRAMES = [lambda frame: frame, pa.Table.from_pandas, lambda frame: Stream(pa.Table.from_pandas(frame)), Interchange]
FRAMES.append(Convertible)


@pytest.mark.parametrize("made", FRAMES)
def test_data_frames_of_any_library(made):
    edges = pd.DataFrame({"when": [1, 2, 3], "from": ["a", "b", "c"], "to": ["b", "c", "a"], "weight": [1.5, 2, 3]})
    nodes = pd.DataFrame({"id": ["c", "a", "b"], "role": ["x", None, "y"], "age": [3.0, 1, 2]})
    table = made(nodes)
    data = read_graph(made(edges), table, table, source="from", target="to", label_column="role")
    assert data.x.tolist() == [[1], [2], [3]]
    assert (ids_of(data), data.edge_weight.tolist()) == (["a", "b", "c"], [1.5, 3, 1.5, 2, 3, 2])
    assert (data.y.tolist(), data.class_names) == ([-1, 1, 0], ["x", "y"])


def test_the_index_of_a_pandas_frame_has_the_ids():
    edges = pd.DataFrame({"source": [10, 20], "target": [20, 30]})
    features = pd.DataFrame({"age": [3.0, 1, 2]}, index=[30, 10, 20])
    labels = pd.Series(["x", np.nan, pd.NA], index=[30, 10, 20])
    data = read_graph(edges, labels, features)
    assert (data.x.tolist(), data.y.tolist()) == ([[1], [2], [3]], [-1, -1, 0])
    frame = features.assign(role=["x", "y", "x"])
    same = read_graph(edges, frame, frame, label_column="role")
    assert (same.columns.names, same.y.tolist()) == (["age"], [1, 0, 0])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("m.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n", ["(2, 3)"]),
        ("m.mtx", "%%MatrixMarket matrix coordinate real general\n9 9 99999999\n1 2 1\n", ["1 entries", "99999999"]),
        ("m.mtx", "%%MatrixMarket matrix coordinate real general\n900000000 900000000 1\n1 2 1\n", ["900000000 nodes"]),
        ("m.mtx", "%%MatrixMarket matrix array real general\n99999 99999\n1\n", ["9999800001 values"]),
        ("m.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 1\n7 2 1\n", [":3:", "index 7", "(3, 3)"]),
        ("m.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 1\n1 2 nan\n", [":3:", "nan"]),
        ("m.mtx", "hello\n", ["Matrix Market"]),
        ("m.npz", b"PK\x03\x04nothing", [".npz"]),
        ("m.mat", b"MATLAB 7.3 MAT-file", ["-v7"]),
        ("m.mat", b"MATLAB 5.0 MAT-file", ["version 4", "-v7"]),
        ("m.mat", b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\1IM" + b"\x0e\0\0\0\xff\0\0\0", ["255 bytes", "0"]),
        ("m.graphml", "<graphml><graph>", ["graphml"]),
        ("m.gexf", "<html></html>", ["gexf"]),
        ("m.parquet", b"PAR1 no", ["Parquet"]),
    ],
)
def test_damaged_files_of_other_formats_are_explained(write, refuses, name, content, words):
    path = write(name, content)
    refuses(lambda: read_graph(path), name, *words)


def test_indices_outside_a_stored_matrix_are_refused(tmp_path, refuses):
    matrix = sparse.csr_array(np.array([[0, 1], [1, 0]]))
    matrix.indices[0] = 99
    np.savez(
        tmp_path / "m.npz", format="csr", shape=(2, 2), data=matrix.data, indices=matrix.indices, indptr=matrix.indptr
    )
    refuses(lambda: read_graph(tmp_path / "m.npz"), "m.npz")
    refuses(lambda: read_graph(matrix), "matrix")


def test_sparse_features_from_files(tmp_path, write):
    edges = write("edges.txt", EDGES)
    matrix = sparse.csr_array(np.array([[0, 1.5], [0, 0], [2, 0]]))
    sparse.save_npz(tmp_path / "x.npz", matrix)
    io.mmwrite(tmp_path / "x.mtx", matrix)
    np.save(tmp_path / "x.npy", matrix.toarray())
    for name in ("x.npz", "x.mtx", "x.npy"):
        x = read_graph(edges, features=tmp_path / name).x
        assert (x.layout == torch.strided) == (name == "x.npy")
        assert x.to_dense().tolist() == matrix.toarray().tolist()


def test_a_billion_laughs_are_refused(write, refuses):
    levels = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    bomb = f'<!DOCTYPE x [<!ENTITY l0 "ha">{levels}]><graphml><graph><node id="&l9;"/></graph></graphml>'
    path = write("bomb.graphml", bomb)
    refuses(lambda: read_graph(path), "bomb.graphml")


def test_a_graph_goes_through_pygs_own_tools(write):
    data = read_graph(write("e.csv", "a,b\nb,c\nc,d\n"), labels={"a": "x", "d": "y"})
    part = data.subgraph(torch.tensor([1, 2, 3]))
    assert ids_of(part) == ["b", "c", "d"]
    assert part.y.tolist() == [-1, -1, 1]
    assert Batch.from_data_list([data, part]).num_nodes == 7
    assert data.clone().to("cpu").validate()
