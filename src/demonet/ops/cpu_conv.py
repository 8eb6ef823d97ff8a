"""A whole convolution on CPU: both halves are multiplied straight into one output, which is activated in place.

Every pass over the rows costs about as much as a product with them, and every fresh matrix of their size costs the
system as much again in new pages. So there is one output forward, and backward one gradient before the activation, one
by the sums, and one by the input.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from demonet.ops import cpu

SHARE = 8192  # rows of one share of a sum over all rows: torch gives each core its own shares


class ConvGradients(NamedTuple):
    """Derivatives by each argument; None where nobody asked."""

    x: Tensor | None
    a: Tensor | None
    seed: Tensor | None
    matrices: Tensor | None
    bias: Tensor | None


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
    add = combine == "add"
    split, width = seed.size(1), matrices.size(2)
    out = x.new_empty(x.size(0), width if add else split + width)
    left, right = (out, out) if add else (out[:, :split], out[:, split:])
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
    needs: tuple[bool, bool, bool, bool, bool],
    lists: tuple[Tensor, Tensor] | None = None,
) -> ConvGradients:
    """What a gradient by the output is by each argument of :func:`conv`, in the order in which they stand there.

    Args:
        grad, out: ``[n, width]`` the gradient, and what :func:`conv` returned.
        x, a, seed, matrices, offsets, combine, activation: As they were.
        needs: Which of the gradients by x, a, seed, matrices, bias are wanted.
        lists: Where a is the sum of rows of x, the reversed lists ``(pointer, neighbours)``: the gradient by a is then
            summed along them, and counted to x.
    """
    before = activation_backward(grad, out, activation)
    split = seed.size(1)
    left, right = (before, before) if combine == "add" else (before[:, :split], before[:, split:])
    by_x = by_a = by_seed = by_matrices = by_bias = None
    groups = list(pairwise(offsets.tolist()))
    if needs[1] or (needs[0] and lists is not None):
        by_a = torch.empty_like(a)
        for group, (start, end) in enumerate(groups):
            torch.mm(right[start:end], matrices[group].t(), out=by_a[start:end])
    if needs[0] and lists is not None and by_a is not None:
        by_x = cpu.aggregate(by_a, *lists, None, "sum").addmm_(left, seed.t())
    elif needs[0]:
        by_x = left @ seed.t()
    if needs[2]:
        by_seed = outer(x, left)
    if needs[3]:
        by_matrices = torch.empty_like(matrices)
        for group, (start, end) in enumerate(groups):
            torch.mm(a[start:end].t(), right[start:end], out=by_matrices[group])
    if needs[4]:
        by_bias = before.sum(0)
    return ConvGradients(by_x, by_a if needs[1] else None, by_seed, by_matrices, by_bias)


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
