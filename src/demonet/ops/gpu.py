"""The operators in Triton: the functions of :mod:`demonet.ops.reference`, which also serve what no kernel fits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import Tensor

from demonet.ops import backend, reference
from demonet.ops.graph import Graph, Options, Weights
from demonet.ops.noise import Noise
from demonet.ops.schedule.gpu import Tiles, cut_lists

# Triton is imported where it is used: the package works without it.


def aggregate(
    x: Tensor, pointer: Tensor, neighbours: Tensor, weight: Tensor | None, aggr: str, tiles: Tiles | None = None
) -> Tensor:
    """:func:`demonet.ops.reference.aggregate`; without tiles, the lists are cut for this call."""
    if neighbours.numel() == 0:
        return reference.aggregate(x, pointer, neighbours, weight, aggr)
    from demonet.ops.triton import gather

    return gather.aggregate(x, pointer, neighbours, weight, aggr, tiles or cut_lists(pointer))


def degree_linear(x: Tensor, weight: Tensor, offsets: Tensor, task: Tensor) -> Tensor:
    """:func:`demonet.ops.reference.degree_linear`."""
    if weight.numel() == 0:
        return reference.degree_linear(x, weight, offsets, task)
    from demonet.ops.triton import linear

    return linear.degree_linear(x, weight, offsets, task)


def degree_outer(x: Tensor, y: Tensor, offsets: Tensor, task: Tensor, num_tasks: int) -> Tensor:
    """:func:`demonet.ops.reference.degree_outer`."""
    from demonet.ops.triton import linear

    return linear.degree_outer(x, y, offsets, task, num_tasks)


def degree_pool(x: Tensor, cell: Tensor, num_cells: int, mode: str) -> Tensor:
    """:func:`demonet.ops.reference.degree_pool`."""
    from demonet.ops.triton import pool

    return pool.degree_pool(x, cell, num_cells, mode)


def dropout(x: Tensor, noise: Noise) -> Tensor:
    """:func:`demonet.ops.reference.dropped` of one half, with a key."""
    from demonet.ops.triton import drop

    return drop.dropout(x, noise)


def conv(
    x: Tensor, a: Tensor | None, weights: Weights, graph: Graph, options: Options, noise: Noise | None = None
) -> tuple[Tensor, Tensor]:
    """:func:`demonet.ops.reference.conv`; the sums are returned where they were given or ``keep`` asks for them."""
    if not _fuses(x, weights, noise):
        if a is None:
            a = aggregate(x, *graph.lists, None, options.aggr, graph.tiles)
        return reference.conv(x, a, weights, graph, options, noise)
    from demonet.ops.triton import conv as fused

    return fused.conv(x, a, weights, graph, options, noise)


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
    from demonet.ops.triton import by_input, by_weights

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
    if h.size(0) == 0 or not backend.fits_head(weight):
        return reference.linear_cross_entropy(h, weight, bias, target, share)
    from demonet.ops.triton import cross_entropy

    return cross_entropy.loss(h, weight, bias, target, share)


def linear_cross_entropy_backward(
    grad: Tensor, h: Tensor, weight: Tensor, bias: Tensor, target: Tensor, share: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`demonet.ops.reference.linear_cross_entropy_backward`."""
    if h.size(0) == 0 or not backend.fits_head(weight):
        return reference.linear_cross_entropy_backward(grad, h, weight, bias, target, share)
    from demonet.ops.triton import cross_entropy

    return cross_entropy.gradient(grad, h, weight, bias, target, share)


def _fuses(x: Tensor, weights: Weights, noise: Noise | None) -> bool:
    """Whether the whole convolution is one kernel; the kernels take no factors of dropout, but a key."""
    if noise is not None and not noise.is_key:
        return False
    return x.size(0) > 0 and backend.fits_conv(weights.seed, weights.matrices)
