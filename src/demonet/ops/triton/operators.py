"""The operators in Triton: the functions of :mod:`demonet.ops.reference`, which also serve what no kernel fits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import Tensor

from demonet.ops import reference
from demonet.ops.graph import Graph, Options, Weights
from demonet.ops.noise import Noise
from demonet.ops.schedule.gpu import fits_conv, fits_head
from demonet.ops.triton import by_input, by_weights, cross_entropy
from demonet.ops.triton import conv as fused
from demonet.ops.triton.drop import dropout
from demonet.ops.triton.gather import aggregate
from demonet.ops.triton.linear import degree_linear, degree_outer
from demonet.ops.triton.pool import degree_pool

__all__ = [
    "aggregate",
    "conv",
    "conv_backward",
    "degree_linear",
    "degree_outer",
    "degree_pool",
    "dropout",
    "linear_cross_entropy",
    "linear_cross_entropy_backward",
]


def conv(
    x: Tensor, a: Tensor | None, weights: Weights, graph: Graph, options: Options, noise: Noise | None = None
) -> tuple[Tensor, Tensor]:
    """:func:`demonet.ops.reference.conv`; the sums are returned where they were given or ``keep`` asks for them."""
    if _fuses(x, weights, noise):
        return fused.conv(x, a, weights, graph, options, noise)
    if a is None:
        a = aggregate(x, *graph.lists, None, options.aggr, graph.tiles)
    return reference.conv(x, a, weights, graph, options, noise)


def conv_backward(
    grad: Tensor,
    out: Tensor,
    x: Tensor,
    a: Tensor,
    weights: Weights,
    graph: Graph,
    options: Options,
    needs: Sequence[bool],
    *,
    known: bool,
    noise: Noise | None = None,
) -> list[Tensor]:
    """:func:`demonet.ops.reference.conv_backward`; empty where ``needs`` (x, a, seed, matrices, bias) is False."""
    nothing = x.new_empty(0)
    if not _fuses(x, weights, noise):
        kernels = reference.Kernels(aggregate, degree_linear, degree_outer)
        how: Any = {"known": known, "kernels": kernels, "noise": noise}
        found = reference.conv_backward(grad, out, x, a, weights, graph, options, **how)
        return [nothing if by is None else by for by in found]
    own = by_weights.weights_backward(grad, out, x, a, weights, graph, options, bias=needs[4], noise=noise)
    del a  # the derivative by the sums may reuse its memory
    begin, activation = 0 if options.combine == "add" else weights.seed.size(1), options.activation
    by_x = by_a = nothing
    half = (grad, out, weights.matrices, graph.groups, begin, activation)
    right = partial(by_input.half_backward, *half, noise=noise, place=weights.seed.size(1))
    if known:
        if needs[0]:
            by_x = by_input.half_backward(grad, out, weights.seed, graph.groups, 0, activation, noise=noise)
        if needs[1]:
            by_a = right()
    elif needs[0]:
        z = right(graph.pointer, options.aggr)
        by_x = by_input.input_backward(grad, out, z, weights.seed, activation, graph, noise=noise)
    return [by_x, by_a, *own]


def linear_cross_entropy(h: Tensor, weight: Tensor, bias: Tensor, target: Tensor, share: Tensor) -> Tensor:
    """:func:`demonet.ops.reference.linear_cross_entropy`."""
    fits = h.size(0) > 0 and fits_head(weight)
    return (cross_entropy.loss if fits else reference.linear_cross_entropy)(h, weight, bias, target, share)


def linear_cross_entropy_backward(
    grad: Tensor, h: Tensor, weight: Tensor, bias: Tensor, target: Tensor, share: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`demonet.ops.reference.linear_cross_entropy_backward`."""
    fits = h.size(0) > 0 and fits_head(weight)
    kernel = cross_entropy.gradient if fits else reference.linear_cross_entropy_backward
    return kernel(grad, h, weight, bias, target, share)


def _fuses(x: Tensor, weights: Weights, noise: Noise | None) -> bool:
    """Whether the whole convolution is one kernel; the kernels take no factors of dropout, but a key."""
    if noise is not None and not noise.is_key:
        return False
    return x.size(0) > 0 and fits_conv(weights.seed, weights.matrices)
