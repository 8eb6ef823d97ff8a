r"""Layers, a linear head and its loss on a small graph as one function on a CPU, dropout included.

On a graph of a thousand nodes, calling operators and recording them for autograd takes longer than the arithmetic.
Here rows are padded in tiers (:class:`demonet.ops.schedule.cpu.Tiers`); both halves of a layer are stored one after the
other in one array, in the order in which dropout draws its factors; and in the backward pass every array is overwritten
by its own derivative.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from demonet.errors import DemonetError
from demonet.ops import cpu, reference
from demonet.ops.cpu import Head, activate_, activation_backward_
from demonet.ops.graph import Graph, Options


class Small(NamedTuple):
    """What stays the same from epoch to epoch.

    Attributes:
        graph: The graph.
        x: ``[places, F]`` the input, zero at empty places.
        first: ``[places, F]`` the sums of the first layer.
        options: Of every layer.
    """

    graph: Graph
    x: Tensor
    first: Tensor
    options: Options

    @property
    def scale(self) -> Tensor | None:
        """``[places, 1]`` what sums are multiplied by, or None."""
        scale = reference.aggregate_scale(self.graph.tiers.pointer, self.options.aggr, self.x.dtype)
        return None if scale is None else scale[:, None]


Layers = list[tuple[Tensor, Tensor | None, Tensor, Tensor | None]]


def head_loss(small: Small, noises: list[Tensor] | None, layers: Layers, head: Head) -> Tensor:
    """The loss of a linear head on layers.

    Args:
        small: What stays the same.
        noises: What dropout multiplies the halves of each layer by, first all of the left one; or None.
        layers: Of each, ``[S, F]`` the seed map; ``[F, W]`` a matrix that all groups share, or None, and
            ``[groups, F, W]`` what every group adds to it; the bias, or None.
        head: Its classes and shares are those of every place; an empty one has no share.
    """
    flat = [tensor for layer in layers for tensor in layer]
    loss: Tensor = _Loss.apply(small, noises, head.target, head.share, head.weight, head.bias, *flat)
    return loss


class _Level(NamedTuple):
    """What a layer leaves behind.

    Attributes:
        sums: ``[places, F]``.
        left, right: ``[places, S]`` and ``[places, W]``, its halves.
        by_tier: Sums and right half of every tier, ``[groups, height, F]`` and ``[groups, height, W]``.
        out: ``[places, S + W]`` (``[places, W]`` when the halves are added).
    """

    sums: Tensor
    left: Tensor
    right: Tensor
    by_tier: list[tuple[Tensor, Tensor]]
    out: Tensor


class _Loss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, small: Small, noises: list[Tensor] | None, target: Tensor, share: Tensor, *parameters: Tensor
    ) -> Tensor:
        ctx.given = small, noises, target, share
        ctx.save_for_backward(*parameters)
        loss, *ctx.kept = _loss(*ctx.given, *parameters)
        return loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        if torch.is_grad_enabled():
            raise DemonetError("this loss has no second derivative", hint="use cross_entropy(model(...), y) instead")
        # What was kept is overwritten: a second backward computes it again.
        (levels, *by_head), ctx.kept = ctx.kept or _loss(*ctx.given, *ctx.saved_tensors)[1:], None
        by_out, by_weight, by_bias = (by.mul_(grad) for by in by_head)
        small, noises, *_ = ctx.given
        found = [by_weight, by_bias, *_down(small, noises, ctx.saved_tensors[2:], levels, by_out)]
        needs = ctx.needs_input_grad[4:]
        return None, None, None, None, *[one if need else None for one, need in zip(found, needs, strict=True)]


def _loss(
    small: Small,
    noises: list[Tensor] | None,
    target: Tensor,
    share: Tensor,
    weight: Tensor,
    bias: Tensor,
    *flat: Tensor,
) -> tuple[Tensor, list[_Level], Tensor, Tensor, Tensor]:
    """The loss, what every layer leaves, and the derivatives by the last of them and by the head."""
    levels = _up(small, noises, flat)
    by_weight, by_bias = torch.zeros_like(weight), torch.zeros_like(bias)
    loss, by_out = Head(weight, bias, target, share).loss_and_gradient(levels[-1].out, slice(None), by_weight, by_bias)
    return loss, levels, by_out, by_weight, by_bias


def _up(small: Small, noises: list[Tensor] | None, flat: Any) -> list[_Level]:
    """Every layer, from the first to the last."""
    tiers, buffers, options, scale = small.graph.tiers, small.graph.buffers, small.options, small.scale
    h, sums, levels = small.x, small.first, []
    for k, (seed, shared, own, bias) in enumerate(_layers(flat)):
        if k:
            sums = cpu.aggregate(h, tiers.pointer, tiers.neighbours, None, "sum")
            sums = sums if scale is None else sums.mul_(scale)
        width = seed.size(0) + own.size(2)
        halves = buffers.empty((h.size(0) * width,), h)
        left, right = _cut(halves, h.size(0), seed)
        torch.mm(h, seed.t(), out=left)
        by_tier = list(zip(tiers.blocks(sums), tiers.blocks(right), strict=True))
        if shared is not None:  # cheaper than adding it to every group's matrix
            torch.mm(sums, shared, out=right)
        for (a, b), group in zip(by_tier, tiers.groups(own), strict=True):
            torch.baddbmm(b, a, group, beta=0 if shared is None else 1, out=b)
        if noises is not None:
            halves.mul_(noises[k])
        if options.combine == "add":
            h = torch.add(left, right, out=buffers.empty((h.size(0), own.size(2)), h))
        else:
            h = torch.cat((left, right), 1, out=buffers.empty((h.size(0), width), h))
        activate_(h if bias is None else h.add_(bias), options.activation)
        levels.append(_Level(sums, left, right, by_tier, h))
    return levels


def _down(
    small: Small, noises: list[Tensor] | None, flat: Any, levels: list[_Level], by_out: Tensor
) -> list[Tensor | None]:
    """The derivatives by every layer's parameters, from the last layer to the first; over what the layers left."""
    tiers, options, scale, layers = small.graph.tiers, small.options, small.scale, _layers(flat)
    found: list[Tensor | None] = []
    for k in range(len(levels) - 1, -1, -1):
        (seed, shared, own, bias), (sums, left, right, by_tier, out) = layers[k], levels[k]
        before = activation_backward_(by_out, out, options.activation)
        split = 0 if options.combine == "add" else seed.size(0)
        parts = (before, before) if options.combine == "add" else (before[:, :split], before[:, split:])
        if noises is None:
            left.copy_(parts[0])
            right.copy_(parts[1])
        else:
            for half, part, factor in zip((left, right), parts, _cut(noises[k], out.size(0), seed), strict=True):
                torch.mul(part, factor, out=half)
        h = levels[k - 1].out if k else small.x
        by_own = small.graph.buffers.empty(tuple(own.shape), own)
        for (a, b), group in zip(by_tier, tiers.groups(by_own), strict=True):
            torch.bmm(a.transpose(1, 2), b, out=group)
        by_shared = None if shared is None else sums.t() @ right
        found = [left.t() @ h, by_shared, by_own, None if bias is None else before.sum(0), *found]
        if k:
            for (a, b), group in zip(by_tier, tiers.groups(own.transpose(1, 2)), strict=True):
                torch.bmm(b, group, out=a)
            if shared is not None:
                sums.addmm_(right, shared.t())
            by_sums = sums if scale is None else sums.mul_(scale)
            by_out = cpu.aggregate(by_sums, tiers.back_pointer, tiers.back_neighbours, None, "sum").addmm_(left, seed)
    return found


def _cut(halves: Tensor, places: int, seed: Tensor) -> tuple[Tensor, Tensor]:
    """The half of the seed and that of the neighbourhood."""
    split = places * seed.size(0)
    return halves[:split].view(places, -1), halves[split:].view(places, -1)


def _layers(flat: Any) -> Any:
    return [flat[i : i + 4] for i in range(0, len(flat), 4)]
