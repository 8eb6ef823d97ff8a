"""A whole convolution on CPU: both halves are multiplied straight into one output, which is activated in place.

Every pass over the rows costs about as much as a product with them, and every fresh matrix of their size costs the
system as much again in new pages. So there is one output forward, and backward one gradient before the activation, one
by the sums, and one by the input.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from demonet.degree.blocks import Blocks
from demonet.degree.buffers import Buffers
from demonet.ops import cpu, cpu_groups, reference

SHARE = 8192  # rows of one share of a sum over all rows: torch gives each core its own shares


def conv(
    x: Tensor,
    a: Tensor,
    seed: Tensor,
    matrices: Tensor,
    blocks: Blocks,
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
        blocks: The groups.
        bias: ``[S + W]`` (``[W]`` when the halves are added), or None.
        combine: ``"concat"`` or ``"add"``.
        activation: ``"none"``, ``"elu"`` or ``"relu"``.
    """
    add, split = combine == "add", seed.size(1)
    out = x.new_empty(x.size(0), matrices.size(2) + (0 if add else split))
    left, right = _halves(out, seed, combine)
    torch.mm(x, seed, out=left)
    cpu_groups.multiply(a, matrices, blocks, right, add=add)
    if bias is not None:
        out.add_(bias)
    return activate_(out, activation)


def conv_backward(
    grad: Tensor,
    out: Tensor,
    x: Tensor,
    a: Tensor,
    seed: Tensor,
    matrices: Tensor,
    blocks: Blocks,
    combine: str,
    activation: str,
    needs: Sequence[bool],
    buffers: Buffers | None = None,
) -> list[Tensor]:
    """Its derivatives by x, a, the seed map, the matrices, the bias; empty where they are not needed."""
    before = activation_backward(grad, out, activation)
    left, right = _halves(before, seed, combine)
    nothing = x.new_empty(0)
    by_x = left @ seed.t() if needs[0] else nothing
    by_a = _by_sums(right, matrices, blocks) if needs[1] else nothing
    return [by_x, by_a, *_by_weights(x, a, before, left, right, blocks, needs[2:], buffers)]


def gather_conv_backward(
    grad: Tensor,
    out: Tensor,
    x: Tensor,
    a: Tensor,
    seed: Tensor,
    matrices: Tensor,
    blocks: Blocks,
    aggr: str,
    combine: str,
    activation: str,
    needs: Sequence[bool],
    pointer: Tensor,
    back_pointer: Tensor,
    back_neighbours: Tensor,
    buffers: Buffers | None = None,
) -> list[Tensor]:
    """The derivatives where ``a`` are sums over rows of x: by x, the seed map, the matrices, the bias."""
    before = activation_backward(grad, out, activation)
    left, right = _halves(before, seed, combine)
    by_x = x.new_empty(0)
    if needs[0]:
        by_a = _by_sums(right, matrices, blocks)
        scale = reference.aggregate_scale(pointer, aggr, by_a.dtype)
        by_a = by_a if scale is None else by_a.mul_(scale[:, None])
        by_x = cpu.aggregate(by_a, back_pointer, back_neighbours, None, "sum").addmm_(left, seed.t())
    return [by_x, *_by_weights(x, a, before, left, right, blocks, needs[1:], buffers)]


def _halves(y: Tensor, seed: Tensor, combine: str) -> tuple[Tensor, Tensor]:
    """The columns of the seed and those of the neighbourhood."""
    return (y, y) if combine == "add" else (y[:, : seed.size(1)], y[:, seed.size(1) :])


def _by_sums(right: Tensor, matrices: Tensor, blocks: Blocks) -> Tensor:
    by_a = right.new_empty(right.size(0), matrices.size(1))
    return cpu_groups.multiply(right, matrices.transpose(1, 2), blocks, by_a)


def _by_weights(
    x: Tensor,
    a: Tensor,
    before: Tensor,
    left: Tensor,
    right: Tensor,
    blocks: Blocks,
    needs: Sequence[bool],
    buffers: Buffers | None,
) -> list[Tensor]:
    """Derivatives by the seed map, the matrices and the bias."""
    nothing = x.new_empty(0)
    by_matrices = cpu_groups.outer(a, right, blocks, buffers) if needs[1] else nothing
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


def activation_backward_(grad: Tensor, out: Tensor, activation: str) -> Tensor:
    """The same, over the output."""
    if activation == "elu":
        return torch.ops.aten.elu_backward.grad_input(grad, 1, 1, 1, True, out, grad_input=out)
    if activation == "relu":
        return torch.ops.aten.threshold_backward.grad_input(grad, out, 0, grad_input=out)
    return out.copy_(grad)


def outer(x: Tensor, y: Tensor) -> Tensor:
    r""":math:`\sum_v x_v y_v^\top`, in equal shares of rows."""
    count = -(-x.size(0) // SHARE)
    if count < 2:
        return x.t() @ y
    size = x.size(0) // count
    whole = count * size
    shares = torch.bmm(x[:whole].unflatten(0, (count, size)).transpose(1, 2), y[:whole].unflatten(0, (count, size)))
    return torch.addmm(shares.sum(0), x[whole:].t(), y[whole:])
