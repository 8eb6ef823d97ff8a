"""Every primitive has right first and second derivatives, in float64."""

import pytest
import torch
from tests.reference.graphs import drawn_by_seed, features, from_arcs
from torch.autograd import gradcheck, gradgradcheck

from demonet.degree import DegreeLayout
from demonet.ops import aggregate, degree_linear, degree_linear_rows, degree_pool, neighbour_lists, reference
from demonet.ops.library import ops

GRAPHS = {
    "undirected": drawn_by_seed(5, 6, 0),
    "directed": drawn_by_seed(5, 7, 1, undirected=False),
    "hub, loop, parallel arcs, isolated": from_arcs(5, [(0, 2), (1, 2), (3, 2), (3, 2), (2, 2)], undirected=False),
    "no edge": from_arcs(3, []),
}


def check(function, *inputs):
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS.keys())
@pytest.mark.parametrize("aggr", ["sum", "mean", "sqrt"])
@pytest.mark.parametrize("weighted", [False, True])
def test_aggregate(graph, aggr, weighted):
    layout = DegreeLayout.from_edge_index(*graph)
    pointer, neighbours, _ = neighbour_lists(graph.edge_index, graph.num_nodes, graph.num_nodes)
    x = features(graph.num_nodes, 2, 0).requires_grad_()
    weight = (features(layout.num_edges, 1, 1)[:, 0].requires_grad_(),) if weighted and layout.num_edges else ()
    check(lambda x, *w: aggregate(x, layout, *w, aggr=aggr), x, *weight)
    check(lambda x, *w: aggregate(x, (pointer, neighbours), *w, aggr=aggr), x, *weight)


def test_aggregate_between_two_sets_of_nodes():
    edge_index = torch.tensor([[0, 1, 2, 2], [1, 1, 0, 1]])
    pointer, neighbours, _ = neighbour_lists(edge_index, 3, 2)
    x, weight = features(3, 2, 0).requires_grad_(), features(4, 1, 1)[:, 0].requires_grad_()
    check(lambda x, w: aggregate(x, (pointer, neighbours), w, aggr="mean"), x, weight)


def test_edge_product():
    pointer, neighbours, _ = neighbour_lists(torch.tensor([[0, 1, 2, 2], [1, 1, 0, 1]]), 3, 2)
    x, y = features(3, 2, 0).requires_grad_(), features(2, 2, 1).requires_grad_()
    check(lambda x, y: reference.edge_product(x, y, pointer, neighbours), x, y)


@pytest.mark.parametrize("task", [[0, 1, 2], [2, -1, 2], [1, 0, -1], [-1, -1, -1]])
def test_degree_linear_and_its_outer_product(task):
    """Groups in order, a shared matrix, an empty group, the zero map."""
    offsets, task = torch.tensor([0, 2, 2, 5]), torch.tensor(task)
    x, y = features(5, 3, 0).requires_grad_(), features(5, 2, 2).requires_grad_()
    weight = features(9, 2, 1).view(3, 3, 2).requires_grad_()
    check(lambda x, w: degree_linear(x, w, offsets, task), x, weight)
    check(lambda x, y: ops.degree_outer(x, y, offsets, task, 3), x, y)


def test_degree_linear_rows():
    task = torch.tensor([2, -1, 0, 2, 0])
    x, weight = features(5, 3, 0).requires_grad_(), features(9, 2, 1).view(3, 3, 2).requires_grad_()
    check(lambda x, w: degree_linear_rows(x, w, task), x, weight)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_degree_pool(mode):
    task, batch = torch.tensor([0, 1, 1, 0, 1]), torch.tensor([0, 0, 0, 1, 1])
    check(lambda x: degree_pool(x, task, batch, 3, 2, mode), features(5, 2, 0).requires_grad_())
