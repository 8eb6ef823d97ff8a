"""A whole convolution on CPU: the reference's numbers and derivatives, and nothing computed that nobody asked for."""

import pytest
import torch
from tests.reference.graphs import drawn_by_seed, features

from demonet.degree import DegreeLayout
from demonet.ops import Noise, Options, Weights, aggregate, conv, cpu, neighbour_lists, reference
from demonet.ops.graph import Graph

GRAPHS = {"undirected": drawn_by_seed(30, 60, 0), "directed": drawn_by_seed(30, 50, 1, undirected=False)}


def arguments(layout, combine, dtype=torch.float64):
    """Rows, seed map, matrices and bias."""
    groups, split, width = len(layout.degrees), *((2, 2) if combine == "add" else (5, 7))
    matrices = features(groups * 3, 2, 2).view(groups, 3, 2)
    given = features(layout.num_nodes, 3, 0), features(3, split, 1), matrices, features(1, width, 3)[0]
    return [tensor.to(dtype).requires_grad_() for tensor in given]


def drawn(rows, columns):
    """Factors of dropout."""
    return Noise((features(1, rows * columns, 5)[0] > 0) * 2.0)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS.keys())
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("combine", ["concat", "add"])
@pytest.mark.parametrize(
    ("aggr", "activation", "dropout"), [("sum", "elu", True), ("mean", "relu", False), ("sqrt", "none", True)]
)
@pytest.mark.parametrize("rows", [1, 7, None])
def test_the_whole_and_its_pieces_are_the_definition(override, graph, known, combine, aggr, activation, rows, dropout):
    """Hubs, isolated nodes, groups that are cut: values and derivatives of the definition, in float64."""
    override(piece_rows=rows or 4096, piece_graph_rows=1 if rows else 10**9, outer_rows=8)
    layout = DegreeLayout.from_edge_index(*graph)
    x, seed, matrices, bias = arguments(layout, combine)
    a = features(30, 3, 4).requires_grad_() if known else None
    noise = drawn(30, seed.size(1) + matrices.size(2)) if dropout else None
    given = Weights(seed, matrices, bias), Graph.of(layout), Options(aggr, combine, activation)
    expected, _ = reference.conv(x, aggregate(x, layout, aggr=aggr) if a is None else a, *given, noise)
    wanted = [x, *([a] if known else []), seed, matrices, bias]
    grad = torch.randn_like(expected)
    exact = torch.autograd.grad(expected, wanted, grad)
    assert len(given[1].pieces_for(x)) == -(-30 // (rows or 30))
    if not known:
        with torch.no_grad():  # as the parts that second derivatives are made of
            sums = aggregate(x, layout, aggr=aggr)
            plain = reference.conv_backward(grad, expected, x, sums, *given, known=False, noise=noise)
        torch.testing.assert_close([by for by in plain if by is not None], exact)
    out = conv(x, a, given[0], layout, given[2], noise)
    torch.testing.assert_close((out, *torch.autograd.grad(out, wanted, grad)), (expected, *exact))


@pytest.mark.parametrize("pieces", [1, 10**9])
@pytest.mark.parametrize("combine", ["concat", "add"])
def test_dropout_inside(override, pieces, combine):
    """First and second derivatives with given factors."""
    override(piece_rows=7, piece_graph_rows=pieces)
    layout = DegreeLayout.from_edge_index(*GRAPHS["directed"])
    x, seed, matrices, bias = arguments(layout, combine)
    noise = drawn(30, seed.size(1) + matrices.size(2))

    def call(*given):
        return conv(given[0], None, Weights(*given[1:]), layout, Options("mean", combine, "elu"), noise)

    assert torch.autograd.gradcheck(call, (x, seed, matrices, bias))
    assert torch.autograd.gradgradcheck(call, (x, seed, matrices, bias))


@pytest.mark.parametrize("pieces", [1, 10**9])
def test_only_what_was_asked_for(override, pieces):
    override(piece_rows=7, piece_graph_rows=pieces)
    layout = DegreeLayout.from_edge_index(*GRAPHS["undirected"])
    x, seed, matrices, bias = (one.detach() for one in arguments(layout, "concat"))
    given = Weights(seed, matrices, bias), Graph.of(layout), Options(activation="relu")
    out, _ = cpu.conv(x, x, *given)
    for asked in range(5):
        needs = tuple(place == asked for place in range(5))
        by = cpu.conv_backward(out, out, x, x, *given, needs, known=True)
        assert [gradient.numel() > 0 for gradient in by] == list(needs)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize(("rows", "aggr"), [(1, "sum"), (4, "mean"), (7, "sqrt")])
def test_many_lists_go_piece_by_piece(override, rows, aggr, weighted):
    """Isolated nodes and a hub; values and derivatives by rows and weights, and memory that is not reused too early."""
    override(piece_rows=rows, piece_graph_rows=1, buffer_bytes=1)
    edge_index, n = drawn_by_seed(20, 50, 3)
    pointer, neighbours, _ = neighbour_lists(edge_index, n, n)
    weight = features(1, neighbours.numel(), 1)[0].requires_grad_() if weighted else None
    kept = []
    for seed in range(3):
        x = features(n, 3, seed).requires_grad_()
        wanted = [x] if weight is None else [x, weight]
        out = aggregate(x, (pointer, neighbours), weight, aggr=aggr)
        expected = reference.aggregate(x, pointer, neighbours, weight, aggr)
        grad = features(n, 3, seed + 9)
        ways = [torch.autograd.grad(one, wanted, grad) for one in (out, expected)]
        kept.append((out, expected, *zip(*ways, strict=True)))
    for out, expected, *by in kept:
        torch.testing.assert_close(out, expected)
        for one, other in by:
            torch.testing.assert_close(one, other)
