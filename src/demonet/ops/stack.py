r"""Layers, a linear head and its loss as one function on a GPU: every array is overwritten by its own derivative.

Layer by layer, autograd holds the output of a layer until its derivative is done, and that beside it. Here, going back,
the derivative by what the last activation was given takes the place of :math:`h^K`; those by the sums take the place of
the sums; and the derivative by :math:`h^{K-1}` that of the one before. For two layers that is three arrays of the size
of ``x`` less, and the last output is read but once for the slopes of its activation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from demonet.errors import DemonetError
from demonet.ops import backend
from demonet.ops.graph import Graph, Options, Weights
from demonet.ops.noise import Noise
from demonet.ops.schedule.gpu import fits_conv, fits_head


class Stack(NamedTuple):
    """What the loss is computed of, besides parameters.

    Attributes:
        graph: The graph.
        target, share: As :func:`demonet.ops.linear_cross_entropy` takes them.
        first: ``[n, F]`` the sums of the first layer, where they are known.
        options: Of every layer.
        noises: What dropout multiplies the halves of each layer by, of this epoch; none without dropout.
    """

    graph: Graph
    target: Tensor
    share: Tensor
    first: Tensor | None
    options: Options
    noises: Sequence[Noise | None] = ()

    def noise(self, layer: int) -> Noise | None:
        """Of one layer."""
        return self.noises[layer] if self.noises else None


def stacks(x: Tensor, layers: list[Weights], head: Tensor) -> bool:
    """Whether layers and head fit into the kernels, and :func:`demonet.ops.backend.fuses_loss`."""
    if backend.family(x) != "triton" or not backend.fuses_loss(x):
        return False
    return fits_head(head) and all(fits_conv(layer.seed, layer.matrices) for layer in layers)


def stack_loss(stack: Stack, x: Tensor, layers: list[Weights], weight: Tensor, bias: Tensor) -> Tensor:
    """The loss of a linear head on layers.

    Args:
        stack: What stays the same.
        x: ``[n, F]`` rows in degree order.
        layers: Weights of each.
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
            raise DemonetError("this loss has no second derivative", hint="use cross_entropy(model(...), y) instead")
        stack, (x, weight, bias, *flat) = ctx.stack, ctx.saved_tensors
        # What was kept is overwritten: a second backward computes it again.
        kept, ctx.kept = ctx.kept or _up(stack, x, flat), None
        return None, None, *_down(stack, grad, x, weight, bias, flat, *kept)


Arrays = list[Tensor]


def _up(stack: Stack, x: Tensor, flat: Any) -> tuple[Arrays, list[Tensor | None]]:
    """The output of every layer, and the sums that it computed."""
    from demonet.ops.triton import conv as fused

    outs: Arrays = []
    sums: list[Tensor | None] = []
    for k, weights in enumerate(_layers(flat)):
        first = stack.first if k == 0 else None
        out, a = fused.conv(outs[-1] if outs else x, first, weights, stack.graph, stack.options, stack.noise(k))
        outs.append(out)
        sums.append(a if first is None and stack.options.keep else None)  # nothing may be written over ``first``
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
    from demonet.ops.triton import by_input, by_weights, cross_entropy, gather

    graph, options, layers = stack.graph, stack.options, _layers(flat)
    head = (weight, bias, stack.target, stack.share)
    g, by_weight, by_bias = cross_entropy.gradient(grad, outs[-1], *head, options.activation, over=True)
    slope = options._replace(activation="none")  # the last derivative is already taken through its activation
    found: list[Tensor | None] = []
    for k in range(len(layers) - 1, -1, -1):
        weights, h, a = layers[k], (outs[k - 1] if k else x), sums[k]
        if a is None:
            known = stack.first if k == 0 else None
            a = gather.aggregate(h, *graph.lists, None, options.aggr, graph.tiles) if known is None else known
        has_bias = weights.bias is not None
        noise = stack.noise(k)
        own = by_weights.weights_backward(g, outs[k], h, a, weights, graph, slope, bias=has_bias, noise=noise)
        found = [*own[:2], own[2] if has_bias else None, *found]
        if k == 0:
            break
        begin = 0 if options.combine == "add" else weights.seed.size(1)
        half = (graph.groups, begin, slope.activation, graph.pointer, options.aggr)
        factors: Any = {"noise": noise, "place": weights.seed.size(1)}
        z = by_input.half_backward(g, outs[k], weights.matrices, *half, into=a, **factors)
        g = by_input.input_backward(g, outs.pop(), z, weights.seed, slope.activation, graph, over=True, noise=noise)
        slope = options
    return [by_weight, by_bias, *found]


def _layers(flat: Any) -> list[Weights]:
    return [Weights(*flat[i : i + 3]) for i in range(0, len(flat), 3)]
