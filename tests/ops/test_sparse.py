"""Sparse rows: the same numbers as dense ones."""

import copy
import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.graphs import drawn_by_seed, features, graphs, seeds

from demonet import DegreeLayout, DemonetError
from demonet.degree.keep import Memo
from demonet.ops import aggregate, sparse
from demonet.ops.backend import is_sparse
from demonet.ops.sparse import sparse_aggregate, sparse_linear, sparse_rows


def half_empty(rows, width, seed):
    x = features(rows, width, seed)
    return x * (x > 0)


@given(rows=st.integers(1, 6), seed=seeds)
def test_linear_map_and_its_gradient(rows, seed):
    x, matrix = half_empty(rows, 4, seed), features(4, 3, seed + 1).requires_grad_()
    out = sparse_linear(x.to_sparse_csr(), matrix)
    torch.testing.assert_close(out, x @ matrix)
    (found,) = torch.autograd.grad(out.square().sum(), matrix)
    (expected,) = torch.autograd.grad((x @ matrix).square().sum(), matrix)
    torch.testing.assert_close(found, expected)


def test_reversed_lists_are_kept_for_the_same_rows_alone(monkeypatch):
    sorted_so_often = []
    lists = sparse.reversed_lists
    kept, matrix = Memo(), features(4, 3, 1).requires_grad_()
    rows = [half_empty(5, 4, seed).to_sparse_csr() for seed in (0, 1)]
    monkeypatch.setattr(sparse, "reversed_lists", lambda *args: sorted_so_often.append(1) or lists(*args))
    for x, often in ((rows[0], 1), (rows[0], 1), (rows[1], 2), (rows[0], 3)):
        (found,) = torch.autograd.grad(sparse_linear(x, matrix, kept).square().sum(), matrix)
        (expected,) = torch.autograd.grad((x.to_dense() @ matrix).square().sum(), matrix)
        torch.testing.assert_close(found, expected)
        assert len(sorted_so_often) == often
    assert copy.deepcopy(kept).value is None


@given(index=st.lists(st.integers(0, 4), max_size=8), seed=seeds)
def test_rows_are_chosen_with_repeats_and_in_any_order(index, seed):
    x = half_empty(5, 4, seed)
    index = torch.tensor(index, dtype=torch.long)
    chosen = sparse_rows(x.to_sparse_csr(), index)
    assert chosen.layout == torch.sparse_csr
    assert torch.equal(chosen.to_dense(), x[index])
    assert torch.equal(sparse_rows(x.to_sparse_coo(), None).to_dense(), x)


@pytest.mark.parametrize("aggr", ["sum", "mean", "sqrt"])
@given(graph=graphs(), seed=seeds, weighted=st.booleans())
def test_aggregate_equals_the_dense_one(aggr, graph, seed, weighted):
    """Parallel arcs included, which name a column of the adjacency twice."""
    layout = DegreeLayout.from_edge_index(*graph)
    x = half_empty(graph.num_nodes, 4, seed)
    weight = features(layout.num_edges, 1, seed)[:, 0] if weighted else None
    found = sparse_aggregate(x.to_sparse_csr(), layout, weight, aggr=aggr)
    torch.testing.assert_close(found, aggregate(x, layout, weight, aggr=aggr))


def test_constants_are_not_differentiated_in_silence():
    layout = DegreeLayout.from_edge_index(*drawn_by_seed(4, 5))
    x, weight = half_empty(4, 3, 0).to_sparse_csr(), torch.ones(layout.num_edges, dtype=torch.float64)
    with pytest.raises(DemonetError, match="sparse"):
        sparse_aggregate(x, layout, weight.requires_grad_(), aggr="sum")
    with pytest.raises(DemonetError, match="sparse"):
        sparse_aggregate(x.requires_grad_(), layout, None, aggr="sum")


def test_what_counts_as_sparse():
    x = half_empty(4, 3, 0)
    assert not is_sparse(x)
    assert all(is_sparse(y) for y in (x.to_sparse_csr(), x.to_sparse_coo(), x.to_sparse_csc()))


def test_a_user_meets_no_warning_about_invariants():
    layout = DegreeLayout.from_edge_index(*drawn_by_seed(4, 5))
    x = half_empty(4, 3, 0).to_sparse_csr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*beta state")
        sparse_aggregate(sparse_rows(x, layout.order), layout, None, aggr="sum")
