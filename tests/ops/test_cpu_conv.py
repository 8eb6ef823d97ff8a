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


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS.keys())
@pytest.mark.parametrize("combine", ["concat", "add"])
@pytest.mark.parametrize("activation", ["none", "elu", "relu"])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("share", [8, 8192])
def test_values_and_derivatives(monkeypatch, graph, combine, activation, with_bias, share):
    """The sums as a constant of their own, and as sums of rows of the input."""
    monkeypatch.setattr(cpu_conv, "SHARE", share)
    layout = DegreeLayout.from_edge_index(*graph).sorted()
    x, seed, matrices, bias = arguments(layout, combine, with_bias)
    a = features(30, 3, 4).requires_grad_()
    options = (combine, activation)
    grad = None
    for sums, lists in ((a, None), (aggregate(x, layout), (layout.back_pointer, layout.back_neighbours))):
        expected = reference.conv(x, sums, seed, matrices, layout.offsets, bias, *options)
        grad = torch.randn_like(expected) if grad is None else grad
        with torch.no_grad():
            found = cpu_conv.conv(x, sums, seed, matrices, layout.offsets, bias, *options)
            needs = (True, lists is None, True, True, with_bias)
            by = cpu_conv.conv_backward(
                grad, found, x, sums, seed, matrices, layout.offsets, *options, needs=needs, lists=lists
            )
        torch.testing.assert_close(found, expected)
        wanted = [x, *([a] if lists is None else []), seed, matrices, *([bias] if with_bias else [])]
        exact = torch.autograd.grad(expected, wanted, grad)
        for one, other in zip([g for g in by if g is not None], exact, strict=True):
            torch.testing.assert_close(one, other)


def test_only_what_was_asked_for():
    layout = DegreeLayout.from_edge_index(*GRAPHS["undirected"]).sorted()
    x, seed, matrices, bias = (None if t is None else t.detach() for t in arguments(layout, "concat", True))
    out = cpu_conv.conv(x, x, seed, matrices, layout.offsets, bias, "concat", "relu")
    for asked in range(5):
        needs = tuple(place == asked for place in range(5))
        by = cpu_conv.conv_backward(out, out, x, x, seed, matrices, layout.offsets, "concat", "relu", needs)
        assert [gradient is not None for gradient in by] == list(needs)
