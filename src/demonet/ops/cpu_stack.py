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

from demonet.errors import DemonetError
from demonet.ops import backend, cpu, reference
from demonet.ops.cpu import Head, activate_, activation_backward_, outer
from demonet.ops.graph import Options, Weights
from demonet.ops.schedule.cpu import Piece
from demonet.ops.stack import Stack


def stacks(x: Tensor, head: Tensor) -> bool:
    """Whether the graph is large enough, and :func:`demonet.ops.backend.fuses_loss`."""
    if x.size(0) < backend.current().fused_rows or not torch.is_grad_enabled() or not backend.fuses_loss(x):
        return False
    return backend.direct(x, head) and x.dtype in (torch.float32, torch.float64)  # pieces add up badly in 16 bits


def stack_loss(stack: Stack, x: Tensor, layers: list[Weights], weight: Tensor, bias: Tensor) -> Tensor:
    """:func:`demonet.ops.stack.stack_loss`."""
    flat = [tensor for layer in layers for tensor in layer]
    loss: Tensor = _StackLoss.apply(stack, x, weight, bias, *flat)
    return loss


class _StackLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, stack: Stack, x: Tensor, weight: Tensor, bias: Tensor, *flat: Tensor) -> Tensor:
        layers = [_Layer.of(Weights(*flat[i : i + 3])) for i in range(0, len(flat), 3)]
        head = Head(weight, bias, stack.target, stack.share.to(x.dtype))
        loss, by_weight, by_bias = _derive(stack, x, layers, head)
        found = [by for layer in layers for by in layer.by]
        ctx.found = (by_weight, by_bias, *found)
        return loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        if torch.is_grad_enabled():
            raise DemonetError("this loss has no second derivative", hint="use cross_entropy(model(...), y) instead")
        needs = ctx.needs_input_grad[2:]
        pairs = zip(ctx.found, needs, strict=True)
        return None, None, *[by * grad if need and by is not None else None for by, need in pairs]


class _Layer(NamedTuple):
    """The weights of a layer, and the derivatives by them as far as they are computed."""

    weights: Weights
    by: Weights

    @classmethod
    def of(cls, weights: Weights) -> _Layer:
        return cls(weights, Weights(*(None if tensor is None else torch.zeros_like(tensor) for tensor in weights)))  # type: ignore[arg-type]

    def forward(self, h: Tensor, a: Tensor, piece: Piece, options: Options, out: Tensor) -> Tensor:
        """The output for a piece of rows."""
        seed, matrices, bias = self.weights
        left, right = self.weights.halves(out, options.combine)
        torch.mm(h, seed, out=left)
        for group, rows in piece.groups:
            if options.combine == "add":
                right[rows].addmm_(a[rows], matrices[group])
            else:
                torch.mm(a[rows], matrices[group], out=right[rows])
        return activate_(out if bias is None else out.add_(bias), options.activation)

    def backward(
        self, before: Tensor, h: Tensor, a: Tensor, piece: Piece, options: Options, by_sums: Tensor | None
    ) -> None:
        """From the derivative before the activation to those by the weights, and by the sums if they are wanted."""
        left, right = self.weights.halves(before, options.combine)
        self.by.seed.add_(outer(h, left))
        for group, rows in piece.groups:
            self.by.matrices[group].addmm_(a[rows].t(), right[rows])
            if by_sums is not None:
                torch.mm(right[rows], self.weights.matrices[group].t(), out=by_sums[rows])
        if self.by.bias is not None:
            self.by.bias.addmv_(before.t(), before.new_ones(before.size(0)))  # faster than sum(0)
        if by_sums is not None:
            scale = reference.aggregate_scale(piece.lists[0], options.aggr, before.dtype)
            if scale is not None:
                by_sums.mul_(scale[:, None])


def _derive(stack: Stack, x: Tensor, layers: list[_Layer], head: Head) -> tuple[Tensor, Tensor, Tensor]:
    """The loss and the derivatives by the head; those by the layers are written where they keep them."""
    graph, options, last = stack.graph, stack.options, len(layers) - 1
    outs = [graph.buffers.empty((x.size(0), layer.weights.width(options.combine)), x) for layer in layers]
    inputs = [x, *outs[:-1]]
    # Of the last layer, only what the derivatives by its sums are written to: its sums go by piece by piece.
    known = [stack.first, *[None] * last]
    sums = [graph.buffers.empty(tuple(h.shape), x) if a is None else a for a, h in zip(known, inputs, strict=True)]
    loss, by_weight, by_bias = x.new_zeros(()), torch.zeros_like(head.weight), torch.zeros_like(head.bias)
    for k, layer in enumerate(layers):
        for piece in graph.pieces:
            h, a, out = inputs[k][piece.rows], sums[k][piece.rows], outs[k][piece.rows]
            if known[k] is None:
                found = cpu.aggregate(inputs[k], *piece.lists, None, options.aggr)
                a = found if k == last else a.copy_(found)
            layer.forward(h, a, piece, options, out)
            if k == last:
                part, by_out = head.loss_and_gradient(out, piece.rows, by_weight, by_bias)
                loss += part
                before = activation_backward_(by_out, out, options.activation)
                layer.backward(before, h, a, piece, options, sums[k][piece.rows] if k else None)
    for k in range(last - 1, -1, -1):
        above = layers[k + 1].weights
        for piece in graph.pieces:
            h, a, out = inputs[k][piece.rows], sums[k][piece.rows], outs[k][piece.rows]
            left, _ = above.halves(outs[k + 1][piece.rows], options.combine)
            by_out = cpu.aggregate(sums[k + 1], *piece.back, None, "sum").addmm_(left, above.seed.t())
            before = activation_backward_(by_out, out, options.activation)
            layers[k].backward(before, h, a, piece, options, a if k else None)
    return loss, by_weight, by_bias
