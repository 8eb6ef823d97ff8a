"""Under vmap, the operators do for every run what they do for one; derivatives too."""

from __future__ import annotations

import pytest
import torch
from tests.reference.graphs import drawn_by_seed, features
from torch.autograd import gradcheck, gradgradcheck

from demonet.degree import DegreeLayout
from demonet.errors import DemonetError
from demonet.ops import aggregate, conv, degree_linear, many
from demonet.ops.dispatch import ops

RUNS, NODES = 3, 12
LAYOUT = DegreeLayout.from_edge_index(*drawn_by_seed(NODES, 20, 0, undirected=False))
GROUPS = len(LAYOUT.degrees)
X = features(RUNS * NODES, 4, 0).view(RUNS, NODES, 4)
SEED, BIAS = features(RUNS * 4, 2, 1).view(RUNS, 4, 2), features(RUNS, 5, 2)
MATRICES = features(RUNS * GROUPS * 4, 3, 3).view(RUNS, GROUPS, 4, 3)
TASK = torch.tensor([1, -1, *range(2, GROUPS)])  # the zero map, and a task that nobody has


def check(function, *batched):
    """One call for all runs against a call for each; the same gradients."""
    leaves = [tensor.clone().requires_grad_() for tensor in batched]
    found = torch.vmap(function)(*leaves)
    expected = torch.stack([function(*(leaf[run] for leaf in leaves)) for run in range(RUNS)])
    torch.testing.assert_close(found, expected)
    weights = torch.randn_like(expected)
    found, expected = (torch.autograd.grad((y * weights).sum(), leaves) for y in (found, expected))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_degree_linear():
    check(lambda x, w: degree_linear(x, w, LAYOUT.offsets, TASK), X, MATRICES)
    check(lambda w: degree_linear(X[0], w, LAYOUT.offsets, TASK), MATRICES)
    check(lambda x: degree_linear(x, MATRICES[0], LAYOUT.offsets, TASK), X)


@pytest.mark.parametrize("aggr", ["sum", "mean", "sqrt"])
def test_aggregate(aggr):
    check(lambda x: aggregate(x, LAYOUT, aggr=aggr), X)


@pytest.mark.parametrize("activation", ["none", "elu", "relu"])
@pytest.mark.parametrize("known", [False, True])
def test_conv(activation, known):
    """Sums that all runs share, as in a first layer, and sums of each run's own rows."""

    def one(x, seed, matrices, bias):
        a = X[1] if known else None
        return conv(x, a, seed, matrices, LAYOUT, bias, aggr="mean", combine="concat", activation=activation)

    check(one, X, SEED, MATRICES, BIAS)


def test_conv_whose_halves_are_added():
    def one(x, seed, matrices):
        return conv(x, None, seed, matrices, LAYOUT, None, aggr="sum", combine="add", activation="elu")

    check(one, X, torch.cat([SEED, SEED[..., :1]], 2), MATRICES)


def test_derivatives_of_derivatives():
    x, y, weight = X[:2].clone().requires_grad_(), X[1:, :, :2].clone().requires_grad_(), MATRICES[:2].clone()
    inputs = (x, weight.requires_grad_())
    for test in (gradcheck, gradgradcheck):
        assert test(lambda x, w: ops.degree_linear_many(x, w, LAYOUT.offsets, TASK), inputs)
        assert test(lambda x, y: ops.degree_outer_many(x, y, LAYOUT.offsets, TASK, GROUPS), (x, y))


def test_graphs_are_one_and_the_same():
    with pytest.raises(DemonetError, match="different graphs"):
        torch.vmap(lambda task: ops.degree_linear(X[0], MATRICES[0], LAYOUT.offsets, task))(TASK.expand(2, -1))
    assert many.degree_linear_many(X, MATRICES, LAYOUT.offsets, TASK).shape == (RUNS, NODES, 3)
