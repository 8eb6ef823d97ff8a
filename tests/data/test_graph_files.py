import gzip

import networkx as nx
import pytest
import torch
from torch_geometric.loader import DataLoader

from demonet import DemonetError
from demonet.data import GraphSet, ids_of, read_graphs
from demonet.data.synthetic import small_graphs
from demonet.errors import DemonetWarning
from demonet.options import Reading
from demonet.runs.inputs import read_inputs

TU = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n5, 4\n4, 5\n",
    "graph_indicator": "1\n1\n1\n2\n2\n2\n",
    "graph_labels": "-1\n7\n",
    "node_labels": "5\n9\n5\n9\n9\n9\n",
    "node_attributes": "1.5, 0\n2, 0\n3, 0\n4, 0\n5, 0\n6, 1e-3\n",
}
GIN = "2\n3 1\n4 1 1\n6 2 0 2\n4 1 1\n2 0\n4 1 1\n6 1 0\n"


@pytest.fixture
def tu(tmp_path):
    def make(**changes):
        folder = tmp_path / "SET"
        folder.mkdir(exist_ok=True)
        for part, text in {**TU, **changes}.items():
            (folder / f"SET_{part}.txt").write_text(text)
        return folder

    return make


def test_tu_folder_by_hand(tu):
    graphs = read_graphs(tu())
    assert (len(graphs), graphs.name, graphs.class_names, graphs.y.tolist()) == (2, "SET", [-1, 7], [0, 1])
    assert graphs.node_label_names == [5, 9]
    assert graphs[0].edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graphs[0].x.tolist() == [[1, 0], [0, 1], [1, 0]]
    assert graphs[1].edge_index.tolist() == [[0, 1], [1, 0]]
    assert graphs[1].num_nodes == 3  # the last is isolated
    assert graphs[1].attributes[2].tolist() == pytest.approx([6, 1e-3])
    assert ids_of(graphs[1]) == [4, 5, 6]


def test_tu_nodes_out_of_order(tu):
    graphs = read_graphs(tu(A="1, 3\n3, 1\n2, 4\n4, 2\n", graph_indicator="2\n1\n2\n1\n2\n1\n"))
    assert [ids_of(graph) for graph in graphs] == [[2, 4, 6], [1, 3, 5]]
    assert [graph.edge_index.tolist() for graph in graphs] == [[[0, 1], [1, 0]]] * 2
    assert graphs[0].attributes[:, 0].tolist() == [2, 4, 6]


def test_arcs_listed_twice_do_not_double_degrees(tu):
    with pytest.warns(DemonetWarning, match="6 edges"):
        graphs = read_graphs(tu(A=TU["A"] * 2))
    assert graphs[0].edge_index.size(1) == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"A": "1, 2\n2, 9\n"}, ["SET_A.txt:2:", "node 9", "6"]),
        ({"A": "1, 2\n0, 1\n"}, ["SET_A.txt:2:", "node 0"]),
        ({"A": "1, 4\n"}, ["SET_A.txt", "node 1 of graph 1", "node 4 of graph 2"]),
        ({"A": "1, 2\n2, x\n"}, ["SET_A.txt:2:", "'x'"]),
        ({"A": "1, 2, 3\n"}, ["SET_A.txt:1:", "3 columns", "2"]),
        ({"A": ""}, ["SET_A.txt", "empty"]),
        ({"graph_indicator": "1\n1\n1\n2\n2\n3\n"}, ["graph_indicator.txt:6:", "graph 3", "2"]),
        ({"graph_indicator": "1\n1\n1\n1\n1\n1\n"}, ["graph 2", "nodes"]),
        ({"node_labels": "5\n9\n"}, ["SET_node_labels.txt", "2 node labels", "6 nodes"]),
        ({"node_attributes": "1\n2\n3\n4\n5\nnan\n"}, ["node_attributes.txt:6:", "nan"]),
        (
            {"node_labels": "\n".join(map(str, range(6))) + "\n", "graph_labels": "a\nb\n"},
            ["SET_graph_labels.txt:1:", "'a'", "column 1"],
        ),
    ],
)
def test_bad_tu_folders_are_explained(tu, refuses, changes, words):
    folder = tu(**changes)
    refuses(lambda: read_graphs(folder), *words)


def test_an_incomplete_folder_is_explained(tmp_path, refuses):
    refuses(lambda: read_graphs(tmp_path), "*_A.txt")
    (tmp_path / "X_A.txt").write_text("1, 2\n")
    refuses(lambda: read_graphs(tmp_path), "X_graph_indicator.txt")


def test_a_file_beside_a_packed_one_of_its_name_has_to_be_the_same(tu):
    """Before, whichever came last was read."""
    folder = tu()
    (labels,) = folder.glob("*_graph_labels.txt")
    packed = labels.with_name(labels.name + ".gz")
    packed.write_bytes(gzip.compress(labels.read_bytes()))
    assert len(read_graphs(folder)) > 0
    packed.write_bytes(gzip.compress(labels.read_bytes() + b"\n1\n"))
    with pytest.raises(DemonetError, match="another file of this name"):
        read_graphs(folder)


def test_gin_file_by_hand(write):
    graphs = read_graphs(write("g.txt", GIN))
    assert (len(graphs), graphs.class_names, graphs.y.tolist()) == (2, [0, 1], [1, 0])
    assert graphs.node_label_names == [4, 6]
    assert graphs[0].edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graphs[1].x.tolist() == [[1, 0], [0, 1]]
    assert ids_of(graphs[0]) == [0, 1, 2]
    rich = read_graphs(write("h.txt", "1\n2 0\n-1 1 1 0.5 2\n3 1 0 1e3 4\n"))
    assert rich[0].attributes.tolist() == [[0.5, 2], [1000, 4]]
    assert rich.node_label_names == [-1, 3]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2\n1 0\n0 0\n", ["graph 1 of 2"]),
        ("1\n9999999999 0\n0 0\n", ["node 1 of 9999999999", "graph 0"]),
        ("1\n2 0\n0 1 5\n0 0\n", [":3:", "neighbour 5", "2 nodes"]),
        ("1\n2 0\n0 3 1\n0 0\n", [":3:", "1 numbers", " 3"]),
        ("1\n1 0\n0 -1\n", [":3:", "-1"]),
        ("1\n1 x\n0 0\n", [":2:", "'x'"]),
        ("1\n1 0\n0 0\n0 0\n", [":4:", "1 graphs"]),
        ("1\n2 0\n0 0 1.5\n0 0\n", [":4:", "0 attributes", "1"]),
        ("1\n1 0\n0 0 inf\n", [":3:", "'inf'"]),
        ("0\n", ["g.txt", "graph"]),
        ("x\n", [":1:", "'x'"]),
    ],
)
def test_bad_gin_files_are_explained(write, refuses, text, words):
    path = write("g.txt", text)
    refuses(lambda: read_graphs(path), *words)


def test_a_table_with_a_graph_column(write, refuses):
    path = write("g.csv", "graph,source,target\nb,1,2\na,7,x\na,x,y\nb,2,3\n")
    graphs = read_graphs(path, labels={"a": "yes"})
    assert [ids_of(graph) for graph in graphs] == [["7", "x", "y"], ["1", "2", "3"]]
    assert (graphs.y.tolist(), graphs.class_names) == ([0, -1], ["yes"])
    assert graphs[1].edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    labels = write("l.csv", "graph,label\na,1\nb,0\nc,1\n")
    refuses(lambda: read_graphs(path, labels), "l.csv:4:", "'c'")
    refuses(lambda: read_graphs(path, graph="molecule"), "'molecule'")
    weighted = read_graphs(write("w.tsv", "1\t5\t6\t0.5\n2\t5\t6\t2\n"), graph=0)
    assert [graph.edge_weight.tolist() for graph in weighted] == [[0.5, 0.5], [2, 2]]


def test_ids_of_graphs_are_those_of_the_source(tu, write, refuses):
    assert read_graphs(tu()).graph_ids == [1, 2]
    assert read_graphs(write("g.txt", GIN)).graph_ids == [0, 1]
    table = read_graphs(write("t.csv", "graph,source,target\nz,1,2\na,1,2\na,2,3\n"))
    assert table.graph_ids == ["a", "z"]
    assert table[[1]].graph_ids == ["z"]
    assert table[:1].graph_ids == ["a"]
    refuses(lambda: GraphSet(list(table), graph_ids=["a"]), "1 graph ids", "2 graphs")


def test_lists_of_graphs(refuses):
    graphs = read_graphs([nx.path_graph(3), nx.cycle_graph(4)], labels=["path", "ring"])
    assert (graphs.class_names, graphs.y.tolist(), graphs[1].edge_index.size(1)) == (["path", "ring"], [0, 1], 8)
    own = read_graphs(small_graphs(10))
    assert own.y.tolist() == [0, 1, 2, 3, 4] * 2
    refuses(lambda: read_graphs([nx.path_graph(3)], labels=[1, 2]), "2 labels", "1 items")
    refuses(lambda: read_graphs([]), "graphs")


def test_a_set_is_a_sequence_that_pyg_loads():
    graphs = read_graphs(small_graphs(12))
    assert isinstance(graphs[torch.tensor([3, 1])], GraphSet)
    assert graphs[torch.tensor([3, 1])].y.tolist() == [3, 1]
    assert graphs[2:4].y.tolist() == [2, 3]
    assert graphs[-1] is graphs.graphs[-1]
    batch = next(iter(DataLoader(graphs, batch_size=12)))
    assert batch.num_graphs == 12
    assert torch.equal(batch.y, graphs.y)


@pytest.mark.parametrize("option", [{"directed": True}, {"ids": "int"}, {"add_isolated": True}])
def test_options_that_a_set_of_graphs_does_not_have(write, refuses, option):
    """They were ignored in silence."""
    file = write("e.csv", "graph,source,target\n1,a,b\n2,a,b\n")
    refuses(lambda: read_inputs(str(file), None, None, Reading(**option)), "e.csv", next(iter(option)))
