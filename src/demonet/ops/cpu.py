"""The operators on a CPU: the functions of :mod:`demonet.ops.reference`, written for speed.

Every pass over the rows costs about as much as a product with them, and every fresh matrix of their size as much again
in new pages. So a convolution multiplies both halves straight into one output and activates it in place. A large graph
goes a few thousand rows at a time, which are summed, multiplied and activated while they are in the cache; backward,
all products of a piece follow its gradient before the activation, which is never stored. Results are in memory that is
reused from epoch to epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor

from demonet.ops import backend, reference
from demonet.ops.cpu_products import degree_linear, degree_outer, group_multiply, group_outer
from demonet.ops.graph import Graph, Options, Weights
from demonet.ops.noise import Noise
from demonet.ops.schedule.buffers import Buffers
from demonet.ops.schedule.cpu import Blocks

__all__ = [
    "aggregate",
    "conv",
    "conv_backward",
    "degree_linear",
    "degree_outer",
    "linear_cross_entropy",
    "linear_cross_entropy_backward",
]


def aggregate(
    x: Tensor,
    pointer: Tensor,
    neighbours: Tensor,
    weight: Tensor | None,
    aggr: str,
    buffers: Buffers | None = None,
) -> Tensor:
    """``embedding_bag`` sums the lists without storing a message per edge; many lists go piece by piece.

    With ``buffers``, the sums of many lists are in memory that is reused in the next epoch.
    """
    scale = None if aggr == "sum" else reference.aggregate_scale(pointer, aggr, x.dtype)
    weight, rows = None if weight is None else weight.to(x.dtype), pointer.numel() - 1
    if x.size(1) == 0 or neighbours.numel() == 0:
        return x.new_zeros(rows, x.size(1))
    x, limits = x.contiguous(), backend.current()
    if rows < limits.piece_graph_rows:
        out = _sum_lists(x, pointer, neighbours, weight)
        return out if scale is None else out.mul_(scale[:, None])
    shape = (rows, x.size(1))
    out = x.new_empty(shape) if buffers is None else buffers.empty(shape, x)
    starts = [*range(0, rows, limits.piece_rows), rows]
    edges = pointer[starts].tolist()
    for (start, end), (first, last) in zip(pairwise(starts), pairwise(edges), strict=True):
        part_weight = None if weight is None else weight[first:last]
        part = _sum_lists(x, pointer[start : end + 1] - first, neighbours[first:last], part_weight)
        if scale is None:
            out[start:end] = part
        else:
            torch.mul(part, scale[start:end, None], out=out[start:end])
    return out


def _sum_lists(x: Tensor, pointer: Tensor, neighbours: Tensor, weight: Tensor | None) -> Tensor:
    return F.embedding_bag(neighbours, x, pointer, mode="sum", per_sample_weights=weight, include_last_offset=True)


def list_scale(graph: Graph, aggr: str, dtype: torch.dtype) -> Tensor | None:
    """``[n, 1]`` what the sum over each neighbour list is multiplied by, or None."""
    if aggr == "sum":
        return None

    def make() -> Tensor:
        scale = reference.aggregate_scale(graph.pointer, aggr, dtype)
        assert scale is not None
        return scale[:, None]

    return graph.once(f"scale of {aggr} in {dtype}", make)


def conv(
    x: Tensor, a: Tensor | None, weights: Weights, graph: Graph, options: Options, noise: Noise | None = None
) -> tuple[Tensor, Tensor]:
    """:func:`demonet.ops.reference.conv`; the sums are returned where they were given or ``keep`` asks for them."""
    out = graph.buffers.empty((x.size(0), weights.width(options.combine)), x)
    factors, scale = _factors(noise, x, weights), list_scale(graph, options.aggr, x.dtype)
    pieces, sums = graph.pieces_for(x), a
    if a is None and options.keep and len(pieces) > 1:
        sums = graph.buffers.empty(tuple(x.shape), x)
    for piece in pieces:
        if a is None:
            part = aggregate(x, *piece.lists, None, "sum")
            part = part if scale is None else part.mul_(piece.of(scale))
            if len(pieces) == 1:
                sums = part
            elif sums is not None:
                sums[piece.rows] = part
        else:
            part = piece.of(a)
        _multiply(piece.of(x), part, weights, piece.blocks, options, piece.of(out), [*map(piece.of, factors)])
    return out, x.new_empty(0, x.size(1)) if sums is None else sums


def _multiply(
    x: Tensor, a: Tensor, weights: Weights, blocks: Blocks, options: Options, out: Tensor, factors: Sequence[Tensor]
) -> None:
    """Both halves of some rows, dropped, into their output, with bias and activation."""
    left, right = weights.halves(out, options.combine)
    apart = options.combine == "add" and bool(factors)  # halves that are dropped before they are added
    add = options.combine == "add" and not apart
    if apart:
        right = torch.empty_like(left)
    if add and weights.bias is not None:
        torch.addmm(weights.bias, x, weights.seed, out=left)
    else:
        torch.mm(x, weights.seed, out=left)
    group_multiply(a, weights.matrices, blocks, right, add=add)
    if apart:
        left.mul_(factors[0]).addcmul_(right, factors[1])
    elif factors:
        left.mul_(factors[0])
        right.mul_(factors[1])
    if weights.bias is not None and not add:
        out.add_(weights.bias)
    activate_(out, options.activation)


def _factors(noise: Noise | None, x: Tensor, weights: Weights) -> Sequence[Tensor]:
    """The factors of both halves; none without dropout."""
    return () if noise is None else noise.halves(x.size(0), weights.seed.size(1), weights.matrices.size(2), x.dtype)


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
    need_x, need_a, need_seed, need_matrices, need_bias = needs
    nothing, empty, pieces = x.new_empty(0), graph.buffers.empty, graph.pieces_for(x)
    by_x = empty(tuple(x.shape), x) if need_x else nothing
    by_a = empty(tuple(a.shape), a) if (need_a if known else need_x) else nothing
    by_seed = by_bias = nothing
    by_matrices = empty(tuple(weights.matrices.shape), x) if need_matrices else nothing
    several = len(pieces) > 1
    if several:
        by_matrices.zero_()
    factors, scale = _factors(noise, x, weights), None if known else list_scale(graph, options.aggr, x.dtype)
    for piece in pieces:
        blocks, of = piece.blocks, piece.of
        before = activation_backward(of(grad), of(out), options.activation)
        left, right = weights.halves(before, options.combine)
        if factors:
            left, right = left * of(factors[0]), right * of(factors[1])
        if need_bias:
            by_bias = _added(by_bias, before.sum(0))
        if need_seed:
            by_seed = _added(by_seed, outer(of(x), left))
        if need_matrices:
            group_outer(of(a), right, blocks, by_matrices, add=several)
        if need_x:
            torch.mm(left, weights.seed.t(), out=of(by_x))
        if by_a.numel():
            part = group_multiply(right, weights.matrices.transpose(1, 2), blocks, of(by_a))
            if scale is not None:
                part.mul_(of(scale))
    if known or not need_x:
        return [by_x, by_a, by_seed, by_matrices, by_bias]
    for piece in pieces:
        piece.of(by_x).add_(aggregate(by_a, *piece.back, None, "sum"))
    return [by_x, nothing, by_seed, by_matrices, by_bias]


def _added(total: Tensor, part: Tensor) -> Tensor:
    """The sum of both; the first part is the total."""
    return total.add_(part) if total.numel() else part


def activate_(y: Tensor, activation: str) -> Tensor:
    """Apply the activation in place."""
    if activation == "elu":
        return torch.nn.functional.elu_(y)
    return y.relu_() if activation == "relu" else y


def activation_backward(grad: Tensor, out: Tensor, activation: str) -> Tensor:
    """The gradient before the activation: its slope follows from its output."""
    if activation == "elu":
        return torch.ops.aten.elu_backward(grad, 1, 1, 1, True, out)
    return torch.ops.aten.threshold_backward(grad, out, 0) if activation == "relu" else grad


def outer(x: Tensor, y: Tensor) -> Tensor:
    r""":math:`\sum_v x_v y_v^\top`, in equal shares of rows, which torch computes in parallel."""
    count = -(-x.size(0) // backend.current().outer_rows)
    if count < 2:
        return x.t() @ y
    size = x.size(0) // count
    whole = count * size
    shares = torch.bmm(x[:whole].unflatten(0, (count, size)).transpose(1, 2), y[:whole].unflatten(0, (count, size)))
    return torch.addmm(shares.sum(0), x[whole:].t(), y[whole:])


def linear_cross_entropy(h: Tensor, weight: Tensor, bias: Tensor, target: Tensor, share: Tensor) -> Tensor:
    """:func:`demonet.ops.reference.linear_cross_entropy`, with one row per class where there are few classes.

    Torch's softmax along a row of few scores is not vectorised; along columns of many nodes it is.
    """
    if weight.size(0) >= backend.current().vector_classes:
        return reference.linear_cross_entropy(h, weight, bias, target, share)
    scores = _scores(h, weight, bias)
    loss = torch.logsumexp(scores, 0).sub_(scores.gather(0, target[None])[0])
    return loss @ share.to(loss.dtype)


def linear_cross_entropy_backward(
    grad: Tensor, h: Tensor, weight: Tensor, bias: Tensor, target: Tensor, share: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Its derivatives by the rows, the matrix and the bias."""
    if weight.size(0) >= backend.current().vector_classes:
        return reference.linear_cross_entropy_backward(grad, h, weight, bias, target, share)
    by_scores = torch.softmax(_scores(h, weight, bias), 0)
    by_scores.scatter_add_(0, target[None], by_scores.new_full((1, 1), -1).expand(1, h.size(0)))
    by_scores = by_scores.mul_(share.to(by_scores.dtype) * grad).to(h.dtype).t()
    return by_scores @ weight, outer(h, by_scores).t().contiguous(), by_scores.sum(0)


def _scores(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``[classes, n]``, in at least 32 bits."""
    return torch.addmm(bias[:, None], weight, h.t()).to(torch.promote_types(h.dtype, torch.float32))
