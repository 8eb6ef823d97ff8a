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
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from demonet.ops import backend, reference
from demonet.ops.graph import Graph, Options, Weights, buffers_of
from demonet.ops.noise import Noise
from demonet.ops.schedule.cpu import Blocks, Buffers, Part, cut_blocks, cut_rows

if TYPE_CHECKING:
    from demonet.ops.scale import Lists

OUTER_ROWS = 8192  # rows that are summed at a time in a sum of outer products over all rows
LARGE_MATRIX = 2**14  # entries of a matrix from which on padding rows costs more than calling a product per group


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
    x = x.contiguous()
    if rows < backend.PIECE_GRAPH_ROWS:
        out = _sum_lists(x, pointer, neighbours, weight)
        return out if scale is None else out.mul_(scale[:, None])
    shape = (rows, x.size(1))
    out = x.new_empty(shape) if buffers is None else buffers.empty(shape, x)
    starts = [*range(0, rows, backend.PIECE_ROWS), rows]
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


# --------------------------------------------------- degrees that scale the columns of one matrix, see ops/scale.py


def scale_rows(
    y: Tensor, splines: Sequence[Tensor], bias: Tensor | None, own: Tensor | None, activation: str
) -> Tensor:
    """:func:`demonet.ops.scale.definition`."""
    out = buffers_of(splines[0]).empty(tuple(y.shape), y)
    for rows in cut_rows(y.size(0), y.dtype):
        _scale(_at(y, rows), splines, rows, bias, _at(out, rows))
        _finish(_at(out, rows), rows, own, activation)
    return out


def scale_rows_backward(
    grad: Tensor, out: Tensor | None, y: Tensor, splines: Sequence[Tensor], activation: str, *, own: bool
) -> tuple[Tensor | None, ...]:
    """The derivatives by the rows, the coefficients, the bias and what was added; ``own`` asks for the last."""
    back, by_own = _ScaleBackward(splines), _room_for_own(y, own=own)
    by_y = buffers_of(splines[0]).empty(tuple(y.shape), y)
    for rows in cut_rows(y.size(0), y.dtype):
        back(rows, _before(grad, out, rows, activation, by_own), _at(y, rows), _at(by_y, rows))
    return by_y, *back.sums, by_own


def scale_conv(
    x: Tensor,
    lists: Lists,
    matrix: Tensor,
    splines: Sequence[Tensor],
    bias: Tensor | None,
    own: Tensor | None,
    activation: str,
    *,
    product_first: bool,
    known: bool,
    keep: bool,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """A whole convolution, see :func:`demonet.ops.scale.scale_conv`.

    Returns:
        The output; and for the derivatives the sums times the matrix, but not where rows are in groups; and the sums,
        where rows are in groups or ``keep`` asks for them.
    """
    memory, x = lists.memory, x.contiguous()
    given, shape = x @ matrix if product_first else x, (x.size(0), matrix.size(1))
    groups = None if product_first or lists.offsets is None else _Groups(lists.offsets, matrix, splines, bias)
    out, y = memory.empty(shape, x), memory.empty(shape, x) if groups is None else None
    a = x if known else memory.empty(tuple(x.shape), x) if keep or groups is not None else None
    for part in lists.parts(x.dtype):
        rows = part.rows
        sums, h = _at(x, rows) if known else _sums(given, part, lists.scale), _at(out, rows)
        a = a if a is None or known else _put(sums, a, rows)
        if groups is not None:
            groups.multiply(part, sums, h)
        elif y is not None:
            y = _put(sums, y, rows) if product_first else y
            if not product_first:
                torch.mm(sums, matrix, out=_at(y, rows))
            _scale(_at(y, rows), splines, rows, bias, h)
        _finish(h, rows, own, activation)
    return out, y, a


def scale_conv_backward(
    grad: Tensor,
    out: Tensor | None,
    x: Tensor,
    y: Tensor | None,
    a: Tensor | None,
    lists: Lists,
    matrix: Tensor,
    splines: Sequence[Tensor],
    activation: str,
    *,
    need_x: bool,
    own: bool,
) -> tuple[Tensor | None, ...]:
    """The derivatives by the rows, the matrix, the coefficients, the bias and what was added.

    With the sums that were kept, their derivative goes back along the edges; otherwise that of the output does, and is
    multiplied on arrival.
    """
    memory, turned, by_matrix, by_own = lists.memory, matrix.t(), torch.zeros_like(matrix), _room_for_own(grad, own=own)
    width, going, by_x = matrix.size(1) if a is None else x.size(1), None, None
    if need_x or a is None:
        going = memory.empty((x.size(0), width), x)  # what goes back along the edges
    groups = None if y is not None or lists.offsets is None else _Groups(lists.offsets, matrix, splines, None)
    back = _ScaleBackward(splines)
    for part in lists.parts(x.dtype):
        rows, to = part.rows, None if going is None else _at(going, part.rows)
        before = _before(grad, out, rows, activation, by_own)
        if groups is not None and a is not None:
            groups.turn(part, _at(a, rows), before, to)
        elif y is not None:
            by_y = torch.empty_like(before) if a is not None or to is None else to
            back(rows, before, _at(y, rows), by_y)
            if a is not None:
                by_matrix.addmm_(_at(a, rows).t(), by_y)
                to = None if to is None else torch.mm(by_y, turned, out=to)
        if to is not None and lists.scale is not None:
            to.mul_(_at(lists.scale, rows).to(to.dtype))
    if going is not None:
        by_x = memory.empty(tuple(x.shape), x) if need_x else None
        for part in lists.parts(x.dtype, back=True):
            arrived = _sums(going, part, None)
            if a is None:
                by_matrix.addmm_(_at(x, part.rows).t(), arrived)
            if by_x is not None and a is not None:
                by_x = _put(arrived, by_x, part.rows)
            elif by_x is not None:
                torch.mm(arrived, turned, out=_at(by_x, part.rows))
    found = (by_matrix, *back.sums) if groups is None else groups.derivatives()
    return by_x, *found, by_own


class _Groups:
    r"""Rows of one degree together: each group has a matrix :math:`W \, \mathrm{diag}(s_g)` and a bias of its own.

    So no pass scales the rows, and the products need not be kept: the derivative by :math:`s_g` follows from that by
    the matrix.

    Args:
        offsets: ``[groups + 1]`` where the rows of each group begin and end.
        matrix, splines, bias: As in :func:`scale_conv`.
    """

    def __init__(self, offsets: Tensor, matrix: Tensor, splines: Sequence[Tensor], bias: Tensor | None) -> None:
        basis, gamma, beta = splines
        self.matrix, self.basis = matrix, basis[offsets[:-1]]
        self.scale, self.shift = 1 + self.basis @ gamma, self.basis @ beta
        self.shift = self.shift if bias is None else self.shift + bias
        self.matrices = matrix * self.scale[:, None]
        self.by_matrices, self.by_shift = torch.empty(0), torch.empty(0)

    def multiply(self, part: Part, sums: Tensor, out: Tensor) -> None:
        """Some rows of sums times their matrices, moved by their biases."""
        own = self.shift[part.groups].unbind(), self.matrices[part.groups].unbind()
        for shift, matrix, rows, result in zip(*own, part.cut(sums), part.cut(out), strict=True):
            torch.addmm(shift, rows, matrix, out=result)

    def turn(self, part: Part, sums: Tensor, before: Tensor, by_sums: Tensor | None) -> None:
        """From a derivative of what :meth:`multiply` gave, that by the sums, and the groups' share of the others."""
        if not self.by_matrices.numel():
            self.by_matrices, self.by_shift = torch.zeros_like(self.matrices), torch.zeros_like(self.shift)
        every, each = torch.arange(before.size(0), dtype=part.starts.dtype), part.cut(before)
        self.by_shift[part.groups] += _sum_lists(before, part.starts, every, None)
        for by_matrix, columns, rows in zip(
            self.by_matrices[part.groups].unbind(), part.cut(sums.t(), 1), each, strict=True
        ):
            by_matrix.addmm_(columns, rows)
        if by_sums is not None:
            turned = self.matrices[part.groups].transpose(1, 2).unbind()
            for matrix, rows, result in zip(turned, each, part.cut(by_sums), strict=True):
                torch.mm(rows, matrix, out=result)

    def derivatives(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Those by the matrix, the coefficients and the bias."""
        by_scale, turned = (self.by_matrices * self.matrix).sum(1), self.basis.t()
        by_matrix = self.by_matrices.mul_(self.scale[:, None]).sum(0)
        return by_matrix, turned @ by_scale, turned @ self.by_shift, self.by_shift.sum(0)


class _ScaleBackward:
    """The derivatives of rows that are scaled by their splines, one piece after the other.

    Attributes:
        sums: Those by the coefficients and the bias, of the pieces so far.
    """

    def __init__(self, splines: Sequence[Tensor]) -> None:
        self.basis, gamma, _ = self.splines = splines
        self.sums = (torch.zeros_like(gamma), torch.zeros_like(gamma), gamma.new_zeros(gamma.size(1)))

    def __call__(self, rows: slice, before: Tensor, y: Tensor, out: Tensor) -> None:
        """Write the derivative by the rows of a piece, ``y``, into ``out``."""
        basis = _at(self.basis, rows)
        by_gamma, by_beta, by_bias = self.sums
        by_beta.addmm_(basis.t(), before)
        by_bias.add_(before.sum(0))
        by_gamma.addmm_(basis.t(), torch.mul(before, y, out=out))
        torch.mm(basis, self.splines[1], out=out)
        torch.addcmul(before, before, out, out=out)


def _before(grad: Tensor, out: Tensor | None, rows: slice, activation: str, by_own: Tensor | None) -> Tensor:
    """The derivative before the activation, which is that by what was added."""
    before = _at(grad, rows)
    before = before if out is None else activation_backward(before, _at(out, rows), activation)
    if by_own is not None:
        _at(by_own, rows).copy_(before)
    return before


def _room_for_own(like: Tensor, *, own: bool) -> Tensor | None:
    return torch.empty_like(like, memory_format=torch.contiguous_format) if own else None


def _scale(y: Tensor, splines: Sequence[Tensor], rows: slice, bias: Tensor | None, out: Tensor) -> None:
    """A piece of rows, ``y``, scaled and moved, into ``out``."""
    basis, gamma, beta = splines
    basis = _at(basis, rows)
    if bias is None:
        torch.mm(basis, beta, out=out)
    else:
        torch.addmm(bias, basis, beta, out=out)
    out.addcmul_(y, basis @ gamma).add_(y)


def _finish(out: Tensor, rows: slice, own: Tensor | None, activation: str) -> None:
    """Add what is added to a piece of rows, and activate it."""
    activate_(out if own is None else out.add_(_at(own, rows)), activation)


def _sums(x: Tensor, part: Part, scale: Tensor | None) -> Tensor:
    """The sums over the lists of a part."""
    sums = aggregate(x, part.pointer, part.neighbours, part.weight, "sum")
    return sums if scale is None else sums.mul_(_at(scale, part.rows).to(sums.dtype))


def _put(part: Tensor, whole: Tensor, rows: slice) -> Tensor:
    """The whole with a part of its rows; the part itself where it is all of them."""
    if part.size(0) == whole.size(0):
        return part
    whole[rows] = part
    return whole


def _at(x: Tensor, rows: slice) -> Tensor:
    """These rows of x; x itself where they are all."""
    return x if rows.stop - rows.start == x.size(0) else x[rows]


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
    count = -(-x.size(0) // OUTER_ROWS)
    if count < 2:
        return x.t() @ y
    size = x.size(0) // count
    whole = count * size
    shares = torch.bmm(x[:whole].unflatten(0, (count, size)).transpose(1, 2), y[:whole].unflatten(0, (count, size)))
    return torch.addmm(shares.sum(0), x[whole:].t(), y[whole:])


# ------------------------------------- products by degree: every row times the matrix of its group, in few calls


def degree_linear(x: Tensor, weight: Tensor, offsets: Tensor, task: Tensor) -> Tensor:
    """The matrices are copied only when the groups do not use them in order."""
    out = x.new_empty(x.size(0), weight.size(2))
    return group_multiply(x, _of_groups(weight, task), cut_blocks(offsets), out)


def degree_outer(x: Tensor, y: Tensor, offsets: Tensor, task: Tensor, num_tasks: int) -> Tensor:
    """By group, then summed where several groups share a task."""
    out = x.new_empty(task.numel(), x.size(1), y.size(1))
    by_group = group_outer(x, y, cut_blocks(offsets), out)
    if _in_order(task, num_tasks):
        return by_group
    used = task >= 0
    return x.new_zeros(num_tasks, x.size(1), y.size(1)).index_add_(0, task[used], by_group[used])


def _of_groups(weight: Tensor, task: Tensor) -> Tensor:
    """The matrix of every group; zero for task -1."""
    if _in_order(task, weight.size(0)):
        return weight
    if bool((task < 0).any()):
        return torch.cat([weight, weight.new_zeros(1, *weight.shape[1:])])[task]
    return weight[task]


def _in_order(task: Tensor, num_tasks: int) -> bool:
    """Whether group k has task k."""
    return task.tolist() == list(range(num_tasks))


def group_multiply(a: Tensor, matrices: Tensor, blocks: Blocks, out: Tensor, *, add: bool = False) -> Tensor:
    """Every row times the matrix of its group.

    Args:
        a: ``[n, F]``.
        matrices: ``[groups, F, W]``.
        blocks: The groups.
        out: ``[n, W]``, overwritten; it may be a slice of columns.
        add: Whether to add to it instead.
    """
    blocks = _blocks_for(matrices, blocks)
    if blocks.height:
        batch = torch.bmm(_padded(a, blocks), matrices).flatten(0, 1).index_select(0, blocks.place)
        if blocks.rows is None:
            out = out.add_(batch) if add else out.copy_(batch)
        elif add:
            out.index_add_(0, blocks.rows, batch)
        else:
            out.index_copy_(0, blocks.rows, batch)
    for matrix, part, result in zip(_own(matrices, blocks), _rows(a, blocks), _rows(out, blocks), strict=True):
        if add:
            result.addmm_(part, matrix)
        else:
            torch.mm(part, matrix, out=result)
    return out


def group_outer(a: Tensor, b: Tensor, blocks: Blocks, out: Tensor, *, add: bool = False) -> Tensor:
    r""":math:`\sum_v a_v b_v^\top` over the rows of each group.

    Args:
        a: ``[n, F]``.
        b: ``[n, W]``.
        blocks: The groups.
        out: ``[groups, F, W]``, overwritten.
        add: Whether to add to it instead.
    """
    blocks = _without_batch(blocks) if add else _blocks_for(out, blocks)
    if blocks.height:
        filled = blocks.filled.view(blocks.num_groups, blocks.height, 1)
        once = _padded(b, blocks).mul_(filled)  # count repeated rows once
        torch.bmm(_padded(a, blocks).transpose(1, 2), once, out=out)
    elif not add and len(blocks.rest) < blocks.num_groups:
        out.zero_()  # groups without rows
    for result, left, right in zip(_own(out, blocks), _rows(a, blocks), _rows(b, blocks), strict=True):
        if add:
            result.addmm_(left.t(), right)
        else:
            torch.mm(left.t(), right, out=result)
    return out


def _own(matrices: Tensor, blocks: Blocks) -> Sequence[Tensor]:
    """The matrices of the groups in the rest."""
    if len(blocks.rest) == blocks.num_groups:
        return matrices.unbind()
    return [matrices[group] for group, _, _ in blocks.rest]


def _rows(x: Tensor, blocks: Blocks) -> Sequence[Tensor]:
    """The rows of the groups in the rest; where that is all rows, they are cut in one call."""
    if blocks.rest is blocks.whole:
        return x.split_with_sizes(blocks.sizes)
    return [x[start:end] for _, start, end in blocks.rest]


def _blocks_for(matrices: Tensor, blocks: Blocks) -> Blocks:
    """Without a batch where the matrices are large: padding would cost more than a call."""
    large = matrices.size(1) * matrices.size(2) >= LARGE_MATRIX
    return _without_batch(blocks) if large else blocks


def _without_batch(blocks: Blocks) -> Blocks:
    return blocks._replace(height=0, rest=blocks.whole) if blocks.height else blocks


def _padded(a: Tensor, blocks: Blocks) -> Tensor:
    """``[groups, height, F]``: the rows in the batch, the last of each group repeated."""
    return a.index_select(0, blocks.gather).view(blocks.num_groups, blocks.height, a.size(1))
