r"""Layers, a linear head and its loss as one function on a GPU: every array is overwritten by its own derivative.

Layer by layer, autograd holds the output of a layer until its derivative is done, and that beside it. Here, going back,
the derivative by what the last activation was given takes the place of :math:`h^K`; those by the sums take the place of
the sums; and the derivative by :math:`h^{K-1}` that of the one before. For two layers that is three arrays of the size
of ``x`` less, and the last output is read but once for the slopes of its activation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from demonet.degree.layout import DegreeLayout
from demonet.degree.tiles import Groups, Tiles
from demonet.errors import DemonetError
from demonet.ops import cuda


@dataclass(frozen=True, eq=False)
class Stack:
    """What stays the same from epoch to epoch.

    Attributes:
        layout: The graph, cut for a GPU.
        target, share: As :func:`demonet.ops.linear_cross_entropy` takes them.
        first: ``[n, F]`` the sums of the first layer, where they are known.
        aggr, combine, activation: As every layer has them.
        keep: Whether the sums of the other layers are kept, or taken once more.
    """

    layout: DegreeLayout
    target: Tensor
    share: Tensor
    first: Tensor | None
    aggr: str
    combine: str
    activation: str
    keep: bool = True

    @property
    def tiles(self) -> Tiles:
        """The lists, cut."""
        assert self.layout.tiles is not None
        return self.layout.tiles

    @property
    def back_tiles(self) -> Tiles:
        """The reversed lists, cut."""
        assert self.layout.back_tiles is not None
        return self.layout.back_tiles

    @property
    def groups(self) -> Groups:
        """The rows of each degree, cut."""
        assert self.layout.groups is not None
        return self.layout.groups


Layers = list[tuple[Tensor, Tensor, Tensor | None]]


def stacks(x: Tensor, layers: Layers, head: Tensor) -> bool:
    """Whether all of it fits into the kernels, and nobody differentiates by the rows ``x``, traces, or casts."""
    if x.requires_grad or x.size(0) == 0 or torch.compiler.is_compiling() or torch.is_autocast_enabled(x.device.type):
        return False
    return cuda.applies(x) and cuda.fits_head(head) and all(cuda.fits(seed, own) for seed, own, _ in layers)


def stack_loss(stack: Stack, x: Tensor, layers: Layers, weight: Tensor, bias: Tensor) -> Tensor:
    """The loss of a linear head on layers.

    Args:
        stack: What stays the same.
        x: ``[n, F]`` rows in degree order.
        layers: Seed map, matrices and bias of each, as :func:`demonet.ops.conv` takes them.
        weight, bias: Of the head.
    """
    flat = [tensor for layer in layers for tensor in layer]
    loss: Tensor = _StackLoss.apply(stack, x, weight, bias, *flat)
    return loss


class _StackLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, stack: Stack, x: Tensor, weight: Tensor, bias: Tensor, *flat: Tensor | None) -> Tensor:
        ctx.stack = stack
        ctx.save_for_backward(x, weight, bias, *flat)
        ctx.kept = outs, _ = _up(stack, x, flat)
        from demonet.ops.triton import cross_entropy

        return cross_entropy.loss(outs[-1], weight, bias, stack.target, stack.share)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        if torch.is_grad_enabled():
            raise DemonetError("this loss has no second derivative", hint="take cross_entropy(model(...), y) instead")
        stack, (x, weight, bias, *flat) = ctx.stack, ctx.saved_tensors
        # What was kept is written over: a second time, it is made again.
        kept, ctx.kept = ctx.kept or _up(stack, x, flat), None
        return None, None, *_down(stack, grad, x, weight, bias, flat, *kept)


Arrays = list[Tensor]


def _up(stack: Stack, x: Tensor, flat: Any) -> tuple[Arrays, list[Tensor | None]]:
    """The output of every layer, and the sums that it took."""
    from demonet.ops.triton import conv as fused

    lists = (stack.layout.pointer, stack.layout.neighbours)
    outs: Arrays = []
    sums: list[Tensor | None] = []
    for k, (seed, matrices, bias) in enumerate(_triples(flat)):
        h = outs[-1] if outs else x
        options = (stack.combine, stack.activation)
        if k == 0 and stack.first is not None:
            outs.append(fused.rows_conv(h, stack.first, seed, matrices, bias, *options, stack.groups))
            sums.append(None)  # it is constant, and nothing may be written over it
        else:
            out, a = fused.gather_conv(
                h, seed, matrices, bias, stack.aggr, *options, *lists, stack.tiles, keep=stack.keep
            )
            outs.append(out)
            sums.append(a if stack.keep else None)
    return outs, sums


def _down(
    stack: Stack,
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    flat: Any,
    outs: Arrays,
    sums: list[Tensor | None],
) -> list[Tensor | None]:
    """The derivatives by the head and by every layer's parameters, from the last to the first."""
    from demonet.ops.triton import by_input, by_weights, cross_entropy

    layout, triples = stack.layout, _triples(flat)
    lists = (layout.pointer, layout.neighbours)
    back = (layout.back_pointer, layout.back_neighbours, stack.back_tiles)
    head = (weight, bias, stack.target, stack.share)
    g, by_weight, by_bias = cross_entropy.gradient(grad, outs[-1], *head, stack.activation, over=True)
    slope = "none"  # the last layer's derivative is through its activation already
    found: list[Tensor | None] = []
    for k in range(len(triples) - 1, -1, -1):
        seed, matrices, own_bias = triples[k]
        h, a = (outs[k - 1] if k else x), sums[k]
        if a is None:
            known = stack.first if k == 0 else None
            a = cuda.aggregate(h, *lists, None, stack.aggr, stack.tiles) if known is None else known
        has_bias = own_bias is not None
        same = (h, a, seed, matrices, stack.groups, stack.combine, slope)
        by_seed, by_matrices, by_own = by_weights.weights_backward(g, outs[k], *same, bias=has_bias)
        found = [by_seed, by_matrices, by_own if has_bias else None, *found]
        if k == 0:
            break
        begin = 0 if stack.combine == "add" else seed.size(1)
        cut = (stack.groups, begin, slope, layout.pointer, stack.aggr)
        z = by_input.half_backward(g, outs[k], matrices, *cut, into=a)
        g, slope = by_input.input_backward(g, outs.pop(), z, seed, slope, *back, over=True), stack.activation
    return [by_weight, by_bias, *found]


def _triples(flat: Any) -> list[tuple[Any, Any, Any]]:
    return [(flat[i], flat[i + 1], flat[i + 2]) for i in range(0, len(flat), 3)]
