"""Bad input to DEMOConv is refused with the value in the message; so are sums that half precision cannot hold."""

import pytest
import torch
from tests.reference.graphs import drawn_by_seed, features

from demonet import DegreeLayout, DegreeTasks, DEMOConv, DemonetError
from demonet.nn import weights as schemes

TASKS = DegreeTasks.log2(8)
GRAPH = drawn_by_seed(6, 8)
LAYOUT = DegreeLayout.from_edge_index(*GRAPH)
ARCS = LAYOUT.num_edges
X = features(6, 3, 0, torch.float32)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"scheme": "free"}, "'free'"),
        ({"aggr": "max"}, "'max'"),
        ({"combine": "mul"}, "'mul'"),
        ({"hash_size": 0}, "hash_size=0"),
        ({"basis_size": 1}, "basis_size=1"),
        ({"basis_size": 2.5}, r"basis_size=2\.5"),
        ({"scheme": "smooth", "degree_scale": float("nan")}, "degree_scale=nan"),
        ({"out_channels": 0}, "out_channels=0"),
        ({"out_channels": 2.5}, r"out_channels=2\.5"),
        ({"in_channels": (3, 3, 3)}, r"in_channels=\(3, 3, 3\)"),
        ({"in_channels": "3"}, "in_channels='3'"),
        ({"dropout": 1.0}, "dropout=1.0"),
        ({"dropout": -0.1}, "dropout=-0.1"),
        ({"out_channels": 1, "combine": "concat"}, "out_channels=1"),
        ({"in_channels": -2}, "in_channels=-2"),
        ({"tasks": 5}, r"\btasks\b.*\bint\b"),
    ],
)
def test_options(options, named):
    with pytest.raises(DemonetError, match=named):
        DEMOConv(**{"in_channels": 3, "out_channels": 4, "tasks": TASKS} | options)


CALLS = {
    "out of range": ((X, torch.tensor([[0], [6]])), r"\b6\b.*edge_index\[1, 0\]"),
    "too few rows for the arcs": ((X[:2], GRAPH.edge_index), r"edge_index\[0, \d+\].*\b2\b"),
    "rows for a layout": ((X[:5], LAYOUT), r"\b5\b.*layout.*\b6\b"),
    "columns": ((X[:, :2], GRAPH.edge_index), r"\b2\b.*in_channels=3"),
    "columns on a layout": ((X[:, :2], LAYOUT), r"\b2\b.*in_channels=3"),
    "pair on a layout": (((X, X.clone()), LAYOUT), r"DegreeLayout\b.*\bedge_index\b"),
    "edge weights": ((X, GRAPH.edge_index, torch.ones(ARCS + 1)), rf"\b{ARCS + 1}\b.*weights\b.*\b{ARCS}\b"),
    "edge weights on a layout": ((X, LAYOUT, torch.ones(2)), rf"\b2\b.*weights\b.*\b{ARCS}\b"),
    "degrees": ((X, GRAPH.edge_index, None, torch.ones(4).long()), r"\b4\b.*degrees\b.*\b6\b"),
    "degrees on a layout": ((X, LAYOUT, None, torch.ones(7).long()), r"\b7\b.*degrees\b.*\b6\b"),
    "adjacency": ((X, torch.eye(5).to_sparse_csr()), r"\(5, 5\)"),
    "adjacency and weights": ((X, torch.eye(6).to_sparse_csr(), torch.ones(6)), "adj_t.*edge_weight"),
    "layout by another degree": ((X, DegreeLayout.from_edge_index(*GRAPH, by="out")), "'out'.*tasks.*'in'"),
    "integer features": ((X.long(), GRAPH.edge_index), r"torch\.int64"),
    "flat features": ((X[:, 0], GRAPH.edge_index), r"\[6\]"),
    "columns of weights": ((X, GRAPH.edge_index, torch.ones(ARCS, 1)), rf"weights\b.*\[{ARCS}, 1\]"),
    "columns of degrees": ((X, GRAPH.edge_index, None, torch.ones(6, 1)), r"degrees\b.*\[6, 1\]"),
    "features that are no tensor": ((X.numpy(), GRAPH.edge_index), "features.*ndarray"),
    "no features": ((None, GRAPH.edge_index), "features.*NoneType"),
    "only targets": (((None, X), GRAPH.edge_index), "features.*NoneType"),
    "three sides": (((X, X, X), GRAPH.edge_index), "features.*tuple"),
    "edges that are no tensor": ((X, GRAPH.edge_index.numpy()), "edge_index.*ndarray"),
    "no edges": ((X, None), "edge_index.*NoneType"),
    "weights that are no tensor": ((X, GRAPH.edge_index, [1.0] * ARCS), "weights.*list"),
    "degrees that are no tensor": ((X, GRAPH.edge_index, None, [1] * 6), "degrees.*list"),
    "degrees below zero": ((X, GRAPH.edge_index, None, torch.full((6,), -1)), r"degree of -1\b"),
    "half degrees": ((X, GRAPH.edge_index, None, torch.full((6,), 2.5)), r"degree of 2\.5"),
    "degrees that are not there": ((X, LAYOUT, None, torch.full((6,), torch.nan)), "degree of nan"),
    "size": ((X, GRAPH.edge_index, None, None, (9, 9)), r"\b6\b.*size=\(9, 9\)"),
}


@pytest.mark.parametrize(("args", "named"), CALLS.values(), ids=CALLS.keys())
def test_calls(args, named):
    with pytest.raises(DemonetError, match=named):
        DEMOConv(3, 4, TASKS)(*args)


@pytest.mark.parametrize("by", ["out", "pair"])
def test_out_degrees_of_a_bipartite_graph_have_to_be_given(by):
    conv = DEMOConv((3, 3), 4, DegreeTasks.log2(8, by=by))
    edge_index = torch.tensor([[0, 1], [1, 0]])
    with pytest.raises(DemonetError, match=f"'{by}'"):
        conv((X, X[:2]), edge_index)
    degree = torch.ones(2, 2).long() if by == "pair" else torch.ones(2).long()
    assert conv((X, X[:2]), edge_index, degree=degree).shape == (2, 4)


def test_what_a_layout_cannot_do():
    conv = DEMOConv(3, 4, TASKS)
    conv.explain = True
    with pytest.raises(DemonetError, match="explanation"):
        conv(X, LAYOUT)
    with pytest.raises(DemonetError, match="target_to_source"):
        DEMOConv(3, 4, TASKS, flow="target_to_source")(X, LAYOUT)
    with pytest.raises(DemonetError, match="target_to_source"):
        DEMOConv(3, 4, TASKS, flow="target_to_source")(X, torch.eye(6).to_sparse_csr())


@pytest.mark.parametrize("scheme", sorted(schemes.SCHEMES))
def test_matrices_of_an_open_width(scheme):
    with pytest.raises(DemonetError, match="in_channels=-1"):
        DEMOConv(-1, 4, TASKS, scheme=scheme).degree_weight(torch.tensor([1]))


@pytest.mark.parametrize("degree", [torch.tensor([1, -2]), torch.ones(2, 1), [1, 2], 3])
def test_matrices_of_what_is_no_degree(degree):
    with pytest.raises(DemonetError, match="degree"):
        DEMOConv(3, 4, TASKS).degree_weight(degree)


@pytest.mark.parametrize("scheme", sorted(schemes.SCHEMES))
def test_an_open_width_is_not_taken_from_features_without_columns(scheme):
    for options in ({}, {"aggr": "mean", "combine": "add"}):
        with pytest.raises(DemonetError, match=r"\[6, 0\]"):
            DEMOConv(-1, 4, scheme=scheme, **options)(X[:, :0], GRAPH.edge_index)


N = 70_001
HUB = torch.stack([torch.arange(1, N), torch.zeros(N - 1, dtype=torch.long)])


@pytest.mark.parametrize("scheme", ["weight", "hash", "smooth"])
@pytest.mark.parametrize("graph", [HUB, DegreeLayout.from_edge_index(HUB, N)], ids=["edges", "layout"])
def test_a_hub_does_not_overflow_in_silence(scheme, graph):
    x = torch.ones(N, 2, dtype=torch.float16)
    with pytest.raises(DemonetError, match=r"7e\+04.*float16"):
        DEMOConv(2, 4, DegreeTasks.log2(N), scheme=scheme, aggr="sum").half()(x, graph)
    mean = DEMOConv(2, 4, DegreeTasks.log2(N), scheme=scheme, aggr="mean")
    expected = mean(x.float(), graph)[0].half()
    torch.testing.assert_close(mean.half()(x, graph)[0], expected, rtol=1e-2, atol=1e-2)
