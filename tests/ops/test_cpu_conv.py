"""A whole convolution on CPU: the reference's numbers and derivatives, and nothing computed that nobody asked for."""

from __future__ import annotations

import pytest
import torch
from tests.reference.graphs import drawn_by_seed, features

from demonet.degree import DegreeLayout
from demonet.ops import aggregate, cpu_conv, reference

GRAPHS = {"undirected": drawn_by_seed(30, 60, 0), "directed": drawn_by_seed(30, 50, 1, undirected=False)}


def arguments(layout, combine, with_bias):
    groups, split = len(layout.degrees), 2 if combine == "add" else 5
    x = features(30, 3, 0).requires_grad_()
    seed, matrices = features(3, split, 1).requires_grad_(), features(groups * 3, 2, 2).view(groups, 3, 2)
    bias = features(1, 2 if combine == "add" else 7, 3)[0].requires_grad_() if with_bias else None
    return x, seed, matrices.requires_grad_(), bias


def check(found, by, expected, wanted, grad):
    torch.testing.assert_close(found, expected)
    exact = torch.autograd.grad(expected, [one for one in wanted if one is not None], grad, retain_graph=True)
    for one, other in zip([gradient for gradient in by if gradient.numel()], exact, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("combine", ["concat", "add"])
@pytest.mark.parametrize("activation", ["none", "elu", "relu"])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("share", [8, 8192])
def test_with_sums_that_are_known(monkeypatch, combine, activation, with_bias, share):
    monkeypatch.setattr(cpu_conv, "SHARE", share)
    layout = DegreeLayout.from_edge_index(*GRAPHS["undirected"])
    x, seed, matrices, bias = arguments(layout, combine, with_bias)
    a, offsets = features(30, 3, 4).requires_grad_(), layout.offsets
    expected = reference.conv(x, a, seed, matrices, offsets, bias, combine, activation)
    grad = torch.randn_like(expected)
    with torch.no_grad():
        found = cpu_conv.conv(x, a, seed, matrices, layout.blocks, bias, combine, activation)
        needs = (True, True, True, True, with_bias)
        by = cpu_conv.conv_backward(grad, found, x, a, seed, matrices, layout.blocks, combine, activation, needs)
    check(found, by, expected, [x, a, seed, matrices, bias], grad)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS.keys())
@pytest.mark.parametrize("aggr", ["sum", "mean", "sqrt"])
@pytest.mark.parametrize("combine", ["concat", "add"])
@pytest.mark.parametrize("activation", ["none", "elu", "relu"])
def test_sums_included(graph, aggr, combine, activation):
    layout = DegreeLayout.from_edge_index(*graph)
    x, seed, matrices, bias = arguments(layout, combine, True)
    offsets, pointer, lists = layout.offsets, layout.pointer, (layout.back_pointer, layout.back_neighbours)
    expected = reference.conv(x, aggregate(x, layout, aggr=aggr), seed, matrices, offsets, bias, combine, activation)
    grad = torch.randn_like(expected)
    with torch.no_grad():
        options = (aggr, combine, activation)
        a = aggregate(x, layout, aggr=aggr)
        found = cpu_conv.conv(x, a, seed, matrices, layout.blocks, bias, combine, activation)
        by = cpu_conv.gather_conv_backward(
            grad, found, x, a, seed, matrices, layout.blocks, *options, (True,) * 4, pointer, *lists
        )
        plain = reference.gather_conv_backward(
            *(grad, found, x, a, seed, matrices, offsets, *options, pointer),
            lambda z: reference.aggregate(z, *lists, None, "sum"),
        )
    check(found, by, expected, [x, seed, matrices, bias], grad)
    check(found, plain, expected, [x, seed, matrices, bias], grad)


def test_only_what_was_asked_for():
    layout = DegreeLayout.from_edge_index(*GRAPHS["undirected"])
    x, seed, matrices, bias = (one.detach() for one in arguments(layout, "concat", True))
    out = cpu_conv.conv(x, x, seed, matrices, layout.blocks, bias, "concat", "relu")
    for asked in range(5):
        needs = tuple(place == asked for place in range(5))
        by = cpu_conv.conv_backward(out, out, x, x, seed, matrices, layout.blocks, "concat", "relu", needs)
        assert [gradient.numel() > 0 for gradient in by] == list(needs)
