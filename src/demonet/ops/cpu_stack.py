r"""Layers, a linear head and its loss as one function on a CPU, with all derivatives, a few thousand rows at a time.

Layer by layer, every product reads rows that have left the cache since they were written. Here a piece of rows goes
through a whole layer while it is in the cache; of the last layer, also through the head, the loss and back through all
products of that layer. Arrays are overwritten by their own derivatives: :math:`h^k` by the one before its activation,
sums by those by the sums; and they are the same memory in every epoch. The derivatives are ready with the loss; going
back only multiplies them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from demonet.degree.pieces import Piece
from demonet.errors import DemonetError
from demonet.ops import cpu, reference
from demonet.ops.cpu_conv import activate_, activation_backward_, outer
from demonet.ops.cpu_head import Head
from demonet.ops.eager import is_eager
from demonet.ops.stack import Layers, Stack

LEAST = 16384  # rows below which there is nothing to gain: all of them are in the cache anyway


def stacks(x: Tensor, head: Tensor) -> bool:
    """Whether it pays, and nobody differentiates by the rows ``x``, traces, or casts."""
    if x.size(0) < LEAST or x.requires_grad or not torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"):
        return False
    return is_eager(x, head) and x.dtype in (torch.float32, torch.float64)  # 16 bits are too few to add pieces in


def stack_loss(stack: Stack, x: Tensor, layers: Layers, weight: Tensor, bias: Tensor) -> Tensor:
    """:func:`demonet.ops.stack.stack_loss`."""
    flat = [tensor for layer in layers for tensor in layer]
    loss: Tensor = _StackLoss.apply(stack, x, weight, bias, *flat)
    return loss


class _StackLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, stack: Stack, x: Tensor, weight: Tensor, bias: Tensor, *flat: Tensor) -> Tensor:
        layers = [_Layer.of(*flat[i : i + 3]) for i in range(0, len(flat), 3)]
        head = Head(weight, bias, stack.target, stack.share.to(x.dtype))
        loss, by_weight, by_bias = _derive(stack, x, layers, head)
        found = [by for layer in layers for by in (layer.by_seed, layer.by_matrices, layer.by_bias)]
        ctx.found = (by_weight, by_bias, *found)
        return loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        if torch.is_grad_enabled():
            raise DemonetError("this loss has no second derivative", hint="take cross_entropy(model(...), y) instead")
        needs = ctx.needs_input_grad[2:]
        pairs = zip(ctx.found, needs, strict=True)
        return None, None, *[by * grad if need and by is not None else None for by, need in pairs]


class _Layer(NamedTuple):
    """The parameters of a layer, and the derivatives by them as far as they are known."""

    seed: Tensor
    matrices: Tensor
    bias: Tensor | None
    by_seed: Tensor
    by_matrices: Tensor
    by_bias: Tensor | None

    @classmethod
    def of(cls, seed: Tensor, matrices: Tensor, bias: Tensor | None) -> _Layer:
        by_bias = None if bias is None else torch.zeros_like(bias)
        return cls(seed, matrices, bias, torch.zeros_like(seed), torch.zeros_like(matrices), by_bias)

    def width(self, combine: str) -> int:
        """How many columns come out."""
        return self.matrices.size(2) + (0 if combine == "add" else self.seed.size(1))

    def halves(self, y: Tensor, combine: str) -> tuple[Tensor, Tensor]:
        """The columns of the seed and those of the neighbourhood."""
        return (y, y) if combine == "add" else (y[:, : self.seed.size(1)], y[:, self.seed.size(1) :])

    def up(self, h: Tensor, a: Tensor, piece: Piece, stack: Stack, out: Tensor) -> Tensor:
        """The output for a piece of rows."""
        left, right = self.halves(out, stack.combine)
        torch.mm(h, self.seed, out=left)
        for group, rows in piece.groups:
            if stack.combine == "add":
                right[rows].addmm_(a[rows], self.matrices[group])
            else:
                torch.mm(a[rows], self.matrices[group], out=right[rows])
        return activate_(out if self.bias is None else out.add_(self.bias), stack.activation)

    def down(self, before: Tensor, h: Tensor, a: Tensor, piece: Piece, stack: Stack, by_sums: Tensor | None) -> None:
        """From the derivative before the activation to those by the parameters, and by the sums if there is room."""
        left, right = self.halves(before, stack.combine)
        self.by_seed.add_(outer(h, left))
        for group, rows in piece.groups:
            self.by_matrices[group].addmm_(a[rows].t(), right[rows])
            if by_sums is not None:
                torch.mm(right[rows], self.matrices[group].t(), out=by_sums[rows])
        if self.by_bias is not None:
            self.by_bias.addmv_(before.t(), before.new_ones(before.size(0)))  # sooner done than sum(0)
        if by_sums is not None:
            scale = reference.aggregate_scale(piece.lists[0], stack.aggr, before.dtype)
            if scale is not None:
                by_sums.mul_(scale[:, None])


def _derive(stack: Stack, x: Tensor, layers: list[_Layer], head: Head) -> tuple[Tensor, Tensor, Tensor]:
    """The loss and the derivatives by the head; those by the layers are written where they keep them."""
    layout, last = stack.layout, len(layers) - 1
    outs = [layout.buffers.empty((x.size(0), layer.width(stack.combine)), x) for layer in layers]
    inputs = [x, *outs[:-1]]
    # Of the last layer, only what the derivatives by its sums are written to: its sums go by piece by piece.
    known = [stack.first, *[None] * last]
    sums = [layout.buffers.empty(tuple(h.shape), x) if a is None else a for a, h in zip(known, inputs, strict=True)]
    loss, by_weight, by_bias = x.new_zeros(()), torch.zeros_like(head.weight), torch.zeros_like(head.bias)
    for k, layer in enumerate(layers):
        for piece in layout.pieces:
            h, a, out = inputs[k][piece.rows], sums[k][piece.rows], outs[k][piece.rows]
            if known[k] is None:
                found = cpu.aggregate(inputs[k], *piece.lists, None, stack.aggr)
                a = found if k == last else a.copy_(found)
            layer.up(h, a, piece, stack, out)
            if k == last:
                part, by_out = head.down(out, piece.rows, by_weight, by_bias)
                loss += part
                before = activation_backward_(by_out, out, stack.activation)
                layer.down(before, h, a, piece, stack, sums[k][piece.rows] if k else None)
    for k in range(last - 1, -1, -1):
        above = layers[k + 1]
        for piece in layout.pieces:
            h, a, out = inputs[k][piece.rows], sums[k][piece.rows], outs[k][piece.rows]
            left, _ = above.halves(outs[k + 1][piece.rows], stack.combine)
            by_out = cpu.aggregate(sums[k + 1], *piece.back, None, "sum").addmm_(left, above.seed.t())
            layers[k].down(activation_backward_(by_out, out, stack.activation), h, a, piece, stack, a if k else None)
    return loss, by_weight, by_bias
