"""A convolution of a large graph on a CPU, a few thousand rows at a time.

In one go, every product reads what has left the cache since it was written. Here a piece of rows is summed, multiplied
and activated while it is in the cache; backward, all products of a piece follow its gradient before the activation,
which is never stored. Results are in memory that is reused from epoch to epoch.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from demonet.ops import backend, cpu
from demonet.ops.graph import Graph, Options, Weights
from demonet.ops.noise import Noise
from demonet.ops.schedule.cpu import Piece


def applies(x: Tensor) -> bool:
    """Whether the graph is large enough; sums over pieces would lose too much in 16 bits."""
    return x.size(0) >= backend.current().piece_graph_rows and x.dtype in (torch.float32, torch.float64)


def conv(
    x: Tensor, a: Tensor | None, weights: Weights, graph: Graph, options: Options, noise: Noise | None = None
) -> tuple[Tensor, Tensor]:
    """:func:`demonet.ops.reference.conv`."""
    out = graph.buffers.empty((x.size(0), weights.width(options.combine)), x)
    sums = graph.buffers.empty(tuple(x.shape), x) if a is None and options.keep else a
    factors, scale = _factors(noise, x, weights), cpu.list_scale(graph, options.aggr, x.dtype)
    for piece in graph.pieces:
        if a is None:
            part = cpu.aggregate(x, *piece.lists, None, "sum")
            if scale is not None:
                part.mul_(scale[piece.rows])
            if sums is not None:
                sums[piece.rows] = part
        else:
            part = a[piece.rows]
        part_out = out[piece.rows]
        _multiply(x[piece.rows], part, weights, piece, options, part_out, [each[piece.rows] for each in factors])
        cpu.activate_(part_out if weights.bias is None else part_out.add_(weights.bias), options.activation)
    return out, x.new_empty(0, x.size(1)) if sums is None else sums


def _factors(noise: Noise | None, x: Tensor, weights: Weights) -> Sequence[Tensor]:
    """The factors of both halves; none without dropout."""
    return () if noise is None else noise.halves(x.size(0), weights.seed.size(1), weights.matrices.size(2), x.dtype)


def _multiply(
    x: Tensor, a: Tensor, weights: Weights, piece: Piece, options: Options, out: Tensor, factors: Sequence[Tensor]
) -> None:
    """Both halves of a piece, dropped, into its rows of the output."""
    left, right = weights.halves(out, options.combine)
    torch.mm(x, weights.seed, out=left)
    added = options.combine == "add" and not factors
    if options.combine == "add" and factors:  # halves are dropped before they are added
        right = torch.empty_like(left)
    for group, rows in piece.groups:
        if added:
            right[rows].addmm_(a[rows], weights.matrices[group])
        else:
            torch.mm(a[rows], weights.matrices[group], out=right[rows])
    if factors and options.combine == "add":
        left.mul_(factors[0]).addcmul_(right, factors[1])
    elif factors:
        left.mul_(factors[0])
        right.mul_(factors[1])


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
    """:func:`demonet.ops.cpu.conv_backward`."""
    nothing = x.new_empty(0)
    need_x, need_a, need_seed, need_matrices, need_bias = needs
    by_x = graph.buffers.empty(tuple(x.shape), x) if need_x else nothing
    by_a = graph.buffers.empty(tuple(a.shape), a) if (need_a if known else need_x) else nothing
    by_seed = weights.seed.new_zeros(weights.seed.shape) if need_seed else nothing
    by_matrices = nothing
    if need_matrices:
        by_matrices = graph.buffers.empty(tuple(weights.matrices.shape), weights.matrices).zero_()
    by_bias = grad.new_zeros(grad.size(1)) if need_bias else nothing
    factors, scale = _factors(noise, x, weights), None if known else cpu.list_scale(graph, options.aggr, x.dtype)
    for piece in graph.pieces:
        before = cpu.activation_backward(grad[piece.rows], out[piece.rows], options.activation)
        if need_bias:
            by_bias.add_(before.sum(0))
        left, right = weights.halves(before, options.combine)
        if factors:
            left, right = left * factors[0][piece.rows], right * factors[1][piece.rows]
        if need_x:
            torch.mm(left, weights.seed.t(), out=by_x[piece.rows])
        if need_seed:
            by_seed.add_(cpu.outer(x[piece.rows], left))
        for group, rows in piece.groups:
            if need_matrices:
                by_matrices[group].addmm_(a[piece.rows][rows].t(), right[rows])
            if by_a.numel():
                torch.mm(right[rows], weights.matrices[group].t(), out=by_a[piece.rows][rows])
        if scale is not None and by_a.numel():
            by_a[piece.rows].mul_(scale[piece.rows])
    if known or not need_x:
        return [by_x, by_a, by_seed, by_matrices, by_bias]
    for piece in graph.pieces:
        by_x[piece.rows].add_(cpu.aggregate(by_a, *piece.back, None, "sum"))
    return [by_x, nothing, by_seed, by_matrices, by_bias]
