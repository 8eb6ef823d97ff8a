"""Parts of a graph: together they are the graph, and a sum over neighbours in parts is that in the whole graph."""

from __future__ import annotations

import importlib.util
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.distributed.graphs import random_graph
from tests.reference.graphs import graphs

from demonet.degree.count import count_degree
from demonet.degree.layout import DegreeLayout
from demonet.distributed.partition import METHODS, assign, cut
from demonet.ops import aggregate

METIS = pytest.param(
    "metis", marks=pytest.mark.skipif(importlib.util.find_spec("pymetis") is None, reason="pymetis is not installed")
)


@st.composite
def owned_graphs(draw):
    """A graph and any assignment of its nodes, so that some processes may have none."""
    edge_index, n = draw(graphs(max_nodes=12))
    parts = draw(st.integers(1, 5))
    owner = draw(st.lists(st.integers(0, parts - 1), min_size=n, max_size=n))
    return edge_index, torch.tensor(owner), parts


def filled(x, parts, number):
    """What an exchange gives: own rows, then those that the others send."""
    part, rows = parts[number], [x[parts[number].nodes]]
    for other in parts:
        begin = int(other.sent[:number].sum())
        sent = other.send[begin : begin + int(other.sent[number])]
        rows.append(x[other.nodes][sent])
    assert torch.equal(part.received, torch.stack([other.sent[number] for other in parts]))
    return torch.cat(rows)


@given(owned_graphs())
def test_the_parts_together_are_the_graph(case):
    edge_index, owner, count = case
    parts = cut(edge_index, owner, count)
    assert torch.equal(torch.cat([part.nodes for part in parts]).sort().values, torch.arange(owner.numel()))
    assert torch.equal(torch.cat([part.edge for part in parts]).sort().values, torch.arange(edge_index.size(1)))
    for number, part in enumerate(parts):
        assert (owner[part.nodes] == number).all()
        assert (owner[part.halo] != number).all()
        reads = torch.cat([part.nodes, part.halo])
        target = torch.repeat_interleave(part.nodes, part.pointer.diff())
        assert torch.equal(torch.stack([reads[part.neighbours], target]), edge_index[:, part.edge])
        assert torch.equal(part.halo, filled(torch.arange(owner.numel()), parts, number)[part.nodes.numel() :])


@given(owned_graphs(), st.sampled_from(["in", "out", "pair"]), st.sampled_from(["sum", "mean", "sqrt"]))
def test_a_sum_over_neighbours_in_parts_is_that_in_the_whole_graph(case, by, aggr):
    edge_index, owner, count = case
    x = torch.randn(owner.numel(), 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    whole = DegreeLayout.from_edge_index(edge_index, owner.numel(), by=by)
    wanted = whole.leave(aggregate(whole.enter(x), whole.sorted(), aggr=aggr))
    degree = count_degree(edge_index, owner.numel(), by=by)
    parts = cut(edge_index, owner, count)
    for number, part in enumerate(parts):
        layout, own = part.layout(by), part.nodes.numel()
        rows = filled(x, parts, number)
        given = torch.cat([layout.enter(rows[:own]), rows[own:]]).requires_grad_()
        found = aggregate(given, layout, aggr=aggr)
        torch.testing.assert_close(layout.leave(found), wanted[part.nodes])
        assert torch.equal(layout.degree, degree[part.nodes])
        found.backward(torch.ones_like(found))
        assert given.grad.shape == given.shape


@given(owned_graphs())
def test_the_derivative_of_the_parts_is_that_of_the_whole_graph(case):
    edge_index, owner, count = case
    x = torch.zeros(owner.numel(), 1, dtype=torch.float64)
    weight = torch.arange(1.0, owner.numel() + 1, dtype=torch.float64)[:, None]
    total = torch.zeros_like(x)
    parts = cut(edge_index, owner, count)
    for number, part in enumerate(parts):
        layout = part.layout()
        rows = filled(x, parts, number).requires_grad_()
        (layout.leave(aggregate(rows, layout)) * weight[part.nodes]).sum().backward()
        own = part.nodes.numel()
        total.index_add_(0, part.nodes, layout.leave(rows.grad[:own]))
        total.index_add_(0, part.halo, rows.grad[own:])
    wanted = torch.zeros_like(x).index_add_(0, edge_index[0], weight[edge_index[1]])
    torch.testing.assert_close(total, wanted)


@pytest.mark.parametrize("method", ["hash", "balanced", METIS])
@pytest.mark.parametrize("parts", [1, 2, 7])
def test_every_node_has_a_process(method, parts):
    edge_index, n = random_graph(directed=True)
    owner = assign(edge_index, n, parts, method)
    assert owner.shape == (n,)
    assert owner.dtype == torch.long
    assert ((owner >= 0) & (owner < parts)).all()


def test_balanced_parts_have_equal_work_up_to_one_node():
    edge_index, n = random_graph(400, 3000)
    work = count_degree(edge_index, n) + 1
    share = torch.zeros(8, dtype=torch.long).index_add_(0, assign(edge_index, n, 8, "balanced"), work)
    assert (share - share.sum() / 8).abs().max() <= work.max()


@pytest.mark.skipif(importlib.util.find_spec("pymetis") is None, reason="pymetis is not installed")
def test_metis_cuts_between_communities():
    clique = torch.combinations(torch.arange(20)).t()
    edges = torch.cat([2 * clique, 2 * clique + 1, torch.tensor([[0], [1]])], 1)  # one community on even indices
    edges = torch.cat([edges, edges.flip(0)], 1)
    owner = assign(edges, 40, 2, "metis")
    assert [part.halo.numel() for part in cut(edges, owner, 2)] == [1, 1]
    assert [part.halo.numel() for part in cut(edges, assign(edges, 40, 2, "balanced"), 2)] == [20, 20]


def test_more_processes_than_nodes_leave_some_without_any():
    edge_index = torch.tensor([[0, 1], [1, 0]])
    for method in ("hash", "balanced"):
        parts = cut(edge_index, assign(edge_index, 2, 5, method), 5)
        assert sum(part.nodes.numel() for part in parts) == 2
        assert any(part.nodes.numel() == 0 for part in parts)


def test_an_unknown_method_and_no_part_are_refused(refuses):
    edge_index = torch.tensor([[0], [1]])
    refuses(lambda: assign(edge_index, 2, 2, "random"), "partition", "'random'", *METHODS)
    refuses(lambda: assign(edge_index, 2, 0), "parts", "0")


def test_without_pymetis_the_error_says_what_to_install(refuses, monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    refuses(lambda: assign(torch.tensor([[0], [1]]), 2, 2, "metis"), "demonet[metis]")
