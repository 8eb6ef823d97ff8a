r"""Layers, a linear head and its loss as one function on a CPU, with all derivatives, a few thousand rows at a time.

Layer by layer, every product reads rows that have left the cache since they were written. Here a piece of rows goes
through a whole layer while it is in the cache; of the last layer, also through the head, the loss and back through all
products of that layer. Arrays are overwritten by their own derivatives: :math:`h^k` by the one before its activation,
sums by those by the sums. The derivatives are ready with the loss; going back only multiplies them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from demonet.degree.blocks import Blocks
from demonet.errors import DemonetError
from demonet.ops import cpu, reference
from demonet.ops.cpu_conv import activate_
from demonet.ops.eager import is_eager
from demonet.ops.stack import Layers, Stack

PIECE = 8192  # rows: a few arrays of them and of usual width are in the cores' caches together
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
        head = _Head(weight, bias, stack.target, stack.share.to(x.dtype))
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

    def halves(self, y: Tensor, combine: str) -> tuple[Tensor, Tensor]:
        """The columns of the seed and those of the neighbourhood."""
        return (y, y) if combine == "add" else (y[:, : self.seed.size(1)], y[:, self.seed.size(1) :])

    def up(self, h: Tensor, a: Tensor, group: int, stack: Stack, out: Tensor) -> Tensor:
        """The output for rows of one group."""
        left, right = self.halves(out, stack.combine)
        torch.mm(h, self.seed, out=left)
        if stack.combine == "add":
            right.addmm_(a, self.matrices[group])
        else:
            torch.mm(a, self.matrices[group], out=right)
        return activate_(out if self.bias is None else out.add_(self.bias), stack.activation)

    def down(self, before: Tensor, h: Tensor, a: Tensor, group: int, stack: Stack) -> Tensor:
        """From the derivative before the activation to those by the parameters; what is left for the sums."""
        left, right = self.halves(before, stack.combine)
        self.by_seed.addmm_(h.t(), left)
        self.by_matrices[group].addmm_(a.t(), right)
        if self.by_bias is not None:
            self.by_bias.add_(before.sum(0))
        return right


class _Head(NamedTuple):
    """A linear head, the class of every row, and how much the row counts."""

    weight: Tensor
    bias: Tensor
    target: Tensor
    share: Tensor

    def down(self, h: Tensor, rows: slice, by_weight: Tensor, by_bias: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of some rows, and the derivative by them; those by the head are added to."""
        target, share = self.target[rows, None], self.share[rows, None]
        scores = torch.log_softmax(torch.addmm(self.bias, h, self.weight.t()), 1)
        loss = -(scores.gather(1, target) * share).sum()
        by_scores = scores.exp_().mul_(share)
        by_scores.scatter_add_(1, target, -share)
        by_weight.addmm_(by_scores.t(), h)
        by_bias.add_(by_scores.sum(0))
        return loss, by_scores @ self.weight


def _derive(stack: Stack, x: Tensor, layers: list[_Layer], head: _Head) -> tuple[Tensor, Tensor, Tensor]:
    """The loss and the derivatives by the head; those by the layers are written where they keep them."""
    layout = stack.layout
    pieces = list(_pieces(layout.blocks))
    outs: list[Tensor] = []
    sums: list[Tensor] = []
    loss, by_weight, by_bias = x.new_zeros(()), torch.zeros_like(head.weight), torch.zeros_like(head.bias)
    for k, layer in enumerate(layers):
        h = outs[-1] if outs else x
        known = stack.first if k == 0 else None
        a = cpu.aggregate(h, layout.pointer, layout.neighbours, None, stack.aggr) if known is None else known
        out = x.new_empty(x.size(0), _width(layer, stack))
        outs.append(out)
        sums.append(a)
        for group, rows in pieces:
            up = layer.up(h[rows], a[rows], group, stack, out[rows])
            if k == len(layers) - 1:
                part, by_up = head.down(up, rows, by_weight, by_bias)
                loss += part
                _back(stack, layers, k, group, rows, by_up, x, outs, sums)
    for k in range(len(layers) - 2, -1, -1):
        above, by_sums = layers[k + 1], sums[k + 1]
        scale = reference.aggregate_scale(layout.pointer, stack.aggr, x.dtype)
        by_sums = by_sums if scale is None else by_sums.mul_(scale[:, None])
        by_out = cpu.aggregate(by_sums, layout.back_pointer, layout.back_neighbours, None, "sum")
        for group, rows in pieces:
            left = above.halves(outs[k + 1][rows], stack.combine)[0]
            _back(stack, layers, k, group, rows, by_out[rows].addmm_(left, above.seed.t()), x, outs, sums)
    return loss, by_weight, by_bias


def _width(layer: _Layer, stack: Stack) -> int:
    return layer.matrices.size(2) + (0 if stack.combine == "add" else layer.seed.size(1))


def _back(
    stack: Stack,
    layers: list[_Layer],
    k: int,
    group: int,
    rows: slice,
    by_out: Tensor,
    x: Tensor,
    outs: list[Tensor],
    sums: list[Tensor],
) -> None:
    """Rows of one group back through layer k: over its output and, but for the first layer's, over its sums."""
    out, a = outs[k][rows], sums[k][rows]
    if stack.activation == "elu":
        torch.ops.aten.elu_backward.grad_input(by_out, 1, 1, 1, True, out, grad_input=out)
    elif stack.activation == "relu":
        torch.ops.aten.threshold_backward.grad_input(by_out, out, 0, grad_input=out)
    else:
        out.copy_(by_out)
    right = layers[k].down(out, (outs[k - 1] if k else x)[rows], a, group, stack)
    if k:
        torch.mm(right, layers[k].matrices[group].t(), out=a)


def _pieces(blocks: Blocks) -> Iterator[tuple[int, slice]]:
    """Groups of rows in equal pieces."""
    for group, start, end in blocks.whole:
        count = -(-(end - start) // PIECE)
        step = -(-(end - start) // count)
        yield from ((group, slice(first, min(first + step, end))) for first in range(start, end, step))
