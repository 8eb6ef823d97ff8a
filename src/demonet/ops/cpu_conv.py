"""A whole convolution on CPU: both halves are multiplied straight into one output, which is activated in place.

Every pass over the rows costs about as much as a product with them, and every fresh matrix of their size costs the
system as much again in new pages. So there is one output forward, and backward one gradient before the activation, one
by the sums, and one by the input.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from demonet.ops import cpu, reference

SHARE = 8192  # rows of one share of a sum over all rows: torch gives each core its own shares


def conv(
    x: Tensor,
    a: Tensor,
    seed: Tensor,
    matrices: Tensor,
    offsets: Tensor,
    bias: Tensor | None,
    combine: str,
    activation: str,
) -> Tensor:
    r""":func:`demonet.ops.reference.conv`.

    Args:
        x: ``[n, F]`` rows in groups.
        a: ``[n, F']`` the sums over their neighbours.
        seed: ``[F, S]``.
        matrices: ``[groups, F', W]``, the matrix of every group.
        offsets: ``[groups + 1]`` where each group begins and ends.
        bias: ``[S + W]`` (``[W]`` when the halves are added), or None.
        combine: ``"concat"`` or ``"add"``.
        activation: ``"none"``, ``"elu"`` or ``"relu"``.
    """
    add, split = combine == "add", seed.size(1)
    out = x.new_empty(x.size(0), matrices.size(2) + (0 if add else split))
    left, right = _halves(out, seed, combine)
    if bias is None:
        torch.mm(x, seed, out=left)
    else:
        torch.addmm(bias[:split], x, seed, out=left)
    for group, (start, end) in enumerate(pairwise(offsets.tolist())):
        if add:
            right[start:end].addmm_(a[start:end], matrices[group])
        elif bias is None:
            torch.mm(a[start:end], matrices[group], out=right[start:end])
        else:
            torch.addmm(bias[split:], a[start:end], matrices[group], out=right[start:end])
    return activate_(out, activation)


def conv_backward(
    grad: Tensor,
    out: Tensor,
    x: Tensor,
    a: Tensor,
    seed: Tensor,
    matrices: Tensor,
    offsets: Tensor,
    combine: str,
    activation: str,
    needs: Sequence[bool],
) -> list[Tensor]:
    """Its derivatives by x, a, the seed map, the matrices, the bias; empty where they are not needed."""
    before = activation_backward(grad, out, activation)
    left, right = _halves(before, seed, combine)
    nothing = x.new_empty(0)
    by_x = left @ seed.t() if needs[0] else nothing
    by_a = _by_sums(right, matrices, offsets) if needs[1] else nothing
    return [by_x, by_a, *_by_weights(x, a, before, left, right, matrices, offsets, needs[2:])]


def gather_conv_backward(
    grad: Tensor,
    out: Tensor,
    x: Tensor,
    a: Tensor,
    seed: Tensor,
    matrices: Tensor,
    offsets: Tensor,
    aggr: str,
    combine: str,
    activation: str,
    needs: Sequence[bool],
    pointer: Tensor,
    back_pointer: Tensor,
    back_neighbours: Tensor,
) -> list[Tensor]:
    """The derivatives where ``a`` are sums over rows of x: by x, the seed map, the matrices, the bias."""
    before = activation_backward(grad, out, activation)
    left, right = _halves(before, seed, combine)
    by_x = x.new_empty(0)
    if needs[0]:
        by_a = _by_sums(right, matrices, offsets)
        scale = reference.aggregate_scale(pointer, aggr, by_a.dtype)
        by_a = by_a if scale is None else by_a.mul_(scale[:, None])
        by_x = cpu.aggregate(by_a, back_pointer, back_neighbours, None, "sum").addmm_(left, seed.t())
    return [by_x, *_by_weights(x, a, before, left, right, matrices, offsets, needs[1:])]


def _halves(y: Tensor, seed: Tensor, combine: str) -> tuple[Tensor, Tensor]:
    """The columns of the seed and those of the neighbourhood."""
    return (y, y) if combine == "add" else (y[:, : seed.size(1)], y[:, seed.size(1) :])


def _by_sums(right: Tensor, matrices: Tensor, offsets: Tensor) -> Tensor:
    by_a = right.new_empty(right.size(0), matrices.size(1))
    for group, (start, end) in enumerate(pairwise(offsets.tolist())):
        torch.mm(right[start:end], matrices[group].t(), out=by_a[start:end])
    return by_a


def _by_weights(
    x: Tensor,
    a: Tensor,
    before: Tensor,
    left: Tensor,
    right: Tensor,
    matrices: Tensor,
    offsets: Tensor,
    needs: Sequence[bool],
) -> list[Tensor]:
    """Derivatives by the seed map, the matrices and the bias."""
    nothing = x.new_empty(0)
    by_matrices = torch.empty_like(matrices) if needs[1] else nothing
    if needs[1]:
        for group, (start, end) in enumerate(pairwise(offsets.tolist())):
            torch.mm(a[start:end].t(), right[start:end], out=by_matrices[group])
    return [outer(x, left) if needs[0] else nothing, by_matrices, before.sum(0) if needs[2] else nothing]


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
    r""":math:`\sum_v x_v y_v^\top`, in shares of rows."""
    whole = x.size(0) // SHARE * SHARE
    rest = x[whole:].t() @ y[whole:]
    if whole == 0:
        return rest
    shares = torch.bmm(x[:whole].view(-1, SHARE, x.size(1)).transpose(1, 2), y[:whole].unflatten(0, (-1, SHARE)))
    return rest.add_(shares.sum(0))
