"""Layers, head and loss as one function on a CPU, against the same made of parts."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from tests.reference.graphs import drawn_by_seed, features

from demonet.bench.graphs import GraphSpec
from demonet.bench.methods import METHODS, build
from demonet.degree import DegreeLayout, DegreeTasks
from demonet.errors import DemonetError
from demonet.nn import NodeDEMONet
from demonet.ops import Options, Weights, aggregate, conv, cpu_stack, linear_cross_entropy
from demonet.ops.graph import Graph
from demonet.ops.stack import Stack
from demonet.train.problem import LabelledBatch
from demonet.train.steps import _loss

GRAPHS = {"undirected": drawn_by_seed(40, 90, 0), "directed": drawn_by_seed(40, 70, 1, undirected=False)}
WIDTHS = (5, 6, 8, 4)


@pytest.fixture(autouse=True)
def _small(override):
    override(fused_rows=1)


def problem(layout, depth, combine, bias, dtype=torch.float64):
    """Seed map, matrices and bias of every layer; weight and bias of a head; classes and shares."""
    flat, groups = [], len(layout.degrees)
    for k, (before, after) in enumerate(pairwise(WIDTHS[: depth + 1])):
        left = after if combine == "add" else after // 2
        right = after if combine == "add" else after - left
        flat += [features(before, left, k), features(groups * before, right, k + 10).view(groups, before, right)]
        flat.append(features(after, 1, k + 20)[:, 0] if bias else None)
    flat += [features(3, WIDTHS[depth], 30), features(3, 1, 31)[:, 0]]
    share = features(40, 1, 32)[:, 0].clamp(min=0).float()
    return [None if t is None else t.to(dtype).requires_grad_() for t in flat], torch.arange(40) % 3, share


def whole(stack, x, flat):
    layers = [tuple(flat[i : i + 3]) for i in range(0, len(flat) - 2, 3)]
    return cpu_stack.stack_loss(stack, x, [Weights(*layer) for layer in layers], *flat[-2:])


def parts(stack, x, flat, layout):
    h = x
    for i in range(0, len(flat) - 2, 3):
        h = conv(h, None, Weights(*flat[i : i + 3]), layout, stack.options)
    return linear_cross_entropy(h, *flat[-2:], stack.target, stack.share)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("combine", ["concat", "add"])
@pytest.mark.parametrize(("aggr", "activation"), [("sum", "relu"), ("mean", "elu"), ("sqrt", "none")])
@pytest.mark.parametrize(("known", "bias", "piece"), [(True, True, 3), (False, False, 8192)])
def test_the_loss_and_its_derivatives(override, graph, depth, combine, aggr, activation, known, bias, piece):
    override(piece_rows=piece)
    layout = DegreeLayout.from_edge_index(*GRAPHS[graph]).sorted()
    flat, target, share = problem(layout, depth, combine, bias)
    x = features(40, WIDTHS[0], 40)
    first = aggregate(x, layout, aggr=aggr) if known else None
    before = None if first is None else first.clone()
    stack = Stack(Graph.of(layout), target, share, first, Options(aggr, combine, activation))
    wanted = [t for t in flat if t is not None]
    found, expected = whole(stack, x, flat), parts(stack, x, flat, layout)
    torch.testing.assert_close(found, expected)
    for one, other in zip(
        torch.autograd.grad(3 * found, wanted), torch.autograd.grad(3 * expected, wanted), strict=True
    ):
        torch.testing.assert_close(one, other)
    assert torch.equal(x, features(40, WIDTHS[0], 40))
    assert before is None or torch.equal(first, before)


def test_twice_the_same_bits_backward_twice_and_no_second_derivative():
    layout = DegreeLayout.from_edge_index(*GRAPHS["undirected"]).sorted()
    flat, target, share = problem(layout, 2, "concat", True, torch.float32)
    flat[0].requires_grad_(False)
    stack, x = (
        Stack(Graph.of(layout), target, share, None, Options(activation="relu")),
        features(40, WIDTHS[0], 40).float(),
    )
    wanted = [t for t in flat if t is not None and t.requires_grad]
    loss = whole(stack, x, flat)
    runs = [torch.autograd.grad(loss, wanted, retain_graph=True) for _ in range(2)]
    runs.append(torch.autograd.grad(whole(stack, x, flat), wanted))
    assert all(torch.equal(one, other) for run in runs[1:] for one, other in zip(runs[0], run, strict=True))
    with pytest.raises(DemonetError, match="cross_entropy"):
        torch.autograd.grad(loss, wanted, create_graph=True)


def test_who_gets_it():
    x, head = torch.zeros(4, 2), torch.zeros(3, 2)
    assert cpu_stack.stacks(x, head)
    assert not cpu_stack.stacks(x.clone().requires_grad_(), head)
    assert not cpu_stack.stacks(x.bfloat16(), head)
    with torch.no_grad():
        assert not cpu_stack.stacks(x, head)
    with torch.autocast("cpu"):
        assert not cpu_stack.stacks(x, head)


@pytest.mark.parametrize(("dropout", "kind"), [(0.0, "_StackLossBackward"), (0.5, "DotBackward0")])
def test_training_and_timing_take_it_without_dropout(dropout, kind):
    graph = GRAPHS["undirected"]
    layout = DegreeLayout.from_edge_index(*graph)
    model = NodeDEMONet(3, 2, DegreeTasks.exact(layout.degree), hidden=4, dropout=dropout)
    rows = torch.arange(0, 40, 3)
    part = LabelledBatch((model.prepare(features(40, 3, 0).float(), graph.edge_index),), rows, rows % 2)
    loss = _loss(model, part)
    assert type(loss.grad_fn).__name__ == kind
    if dropout == 0:
        scores = model(*part.inputs)[rows]
        torch.testing.assert_close(loss, torch.nn.functional.cross_entropy(scores, part.y))
    built = build(METHODS["weight"], GraphSpec("uniform", nodes=60).make(), "float32")
    assert type(built.loss().grad_fn).__name__ == "_StackLossBackward"
