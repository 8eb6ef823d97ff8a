r"""The hidden layers of a deep model on a small graph as one function on a CPU.

.. math:: h^k = \mathrm{refine}_k(\mathrm{conv}_k(h^{k-1}))

A layer is a convolution (:mod:`demonet.ops.cpu`) and what follows it (:mod:`demonet.ops.refine`). On a batch of small
graphs, calling these one by one and recording them for autograd takes longer than their arithmetic. For the same reason
the norm is torch's own, one call each way; :mod:`demonet.ops.cpu_refine` in its place makes an epoch 7 % longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from demonet.ops import cpu, reference
from demonet.ops import refine as refining
from demonet.ops.graph import Graph, Options, Weights
from demonet.ops.noise import Noise
from demonet.ops.refine import Refine

_PARAMETERS = 7  # of a layer


class DeepLayer(NamedTuple):
    """One layer.

    Attributes:
        weights: Of the convolution.
        refine: Of what follows.
        running: Running mean and variance of the norm, which are moved, and the momentum by which they are.
        noise: The factors of dropout, or None.
    """

    weights: Weights
    refine: Refine
    running: tuple[Tensor, Tensor, float]
    noise: Noise | None

    @property
    def parameters(self) -> tuple[Tensor | None, ...]:
        """All that has a derivative."""
        return *self.weights, *self.refine[:4]

    def replaced(self, parameters: Sequence[Any]) -> DeepLayer:
        """The layer with other parameters."""
        gamma, beta, weight, bias = parameters[3:]
        refine = Refine(gamma, beta, weight, bias, self.refine.eps)
        return self._replace(weights=Weights(*parameters[:3]), refine=refine)


class Deep(NamedTuple):
    """What has no derivative: the layers, the graph, and the options of all convolutions."""

    layers: list[DeepLayer]
    graph: Graph
    options: Options


def definition(deep: Deep, x: Tensor, first: Tensor | None) -> list[Tensor]:
    """Every layer's output, in plain PyTorch; no running statistic is moved."""
    levels, a = [x], first
    for layer in deep.layers:
        y, _ = reference.conv(levels[-1], a, layer.weights, deep.graph, deep.options)
        levels.append(refining.definition(y, layer.refine, layer.noise)[0])
        a = None
    return levels[1:]


def levels(deep: Deep, x: Tensor, first: Tensor | None) -> Sequence[Tensor]:
    """Every layer's output.

    Args:
        deep: Layers and graph.
        x: ``[n, F]`` rows in degree order.
        first: ``[n, F]`` the scaled sums over their neighbours, or None to compute them.
    """
    parameters = [parameter for layer in deep.layers for parameter in layer.parameters]
    found: Sequence[Tensor] = _Levels.apply(deep, x, first, *parameters)
    return found


class _Level(NamedTuple):
    """What a layer leaves: sums, convolution, its norm after the ReLU, and mean and inverse deviation of columns."""

    sums: Tensor
    y: Tensor
    z: Tensor
    mean: Tensor
    inverse: Tensor


class _Levels(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, deep: Deep, x: Tensor, first: Tensor | None, *parameters: Tensor | None
    ) -> tuple[Tensor, ...]:
        h, a, kept, found = x, first, [], []
        for layer in deep.layers:
            y, sums = cpu.conv(h, a, layer.weights, deep.graph, deep.options)
            gamma, beta, weight, bias, eps = layer.refine
            z, mean, inverse = torch.native_batch_norm(y, gamma, beta, *layer.running[:2], True, layer.running[2], eps)
            kept.append(_Level(sums, y, z.relu_(), mean, inverse))
            if weight is not None and bias is not None:
                z = torch.addmm(bias, z, weight.t()).relu_()
            elif layer.noise is not None:
                z = z.clone()
            h = z if layer.noise is None else z.mul_(layer.noise.values.view(z.shape))
            a = None
            found.append(h)
        ctx.deep, ctx.kept = deep, kept
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, first, *found, *parameters)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        x, first, *saved = ctx.saved_tensors
        count = len(ctx.deep.layers)
        parameters = [saved[i : i + _PARAMETERS] for i in range(count, len(saved), _PARAMETERS)]
        deep = ctx.deep._replace(layers=[*map(DeepLayer.replaced, ctx.deep.layers, parameters)])
        if torch.is_grad_enabled():
            given = [x, first, *(parameter for layer in deep.layers for parameter in layer.parameters)]
            found = reference.derivatives(definition(deep, x, first), given, grads)
        else:
            found = _down(deep, [x, *saved[:count]], first, ctx.kept, grads, ctx.needs_input_grad[1:])
        return None, *(by if need else None for by, need in zip(found, ctx.needs_input_grad[1:], strict=True))


def _down(
    deep: Deep,
    outputs: list[Tensor],
    first: Tensor | None,
    kept: list[_Level],
    grads: Sequence[Tensor | None],
    needs: Sequence[bool],
) -> list[Tensor | None]:
    """The derivatives by x, the first sums and every parameter, from the last layer to the first."""
    found: list[Tensor | None] = []
    by_h = by_first = None
    for k in range(len(kept) - 1, -1, -1):
        grad = grads[k]
        by_h = grad if by_h is None else by_h if grad is None else by_h + grad
        if by_h is None:  # nothing reads this layer
            found = [*[None] * _PARAMETERS, *found]
            continue
        (sums, y, z, mean, inverse), layer = kept[k], deep.layers[k]
        gamma, _, weight, _, eps = layer.refine
        behind = torch.ops.aten.threshold_backward(by_h, outputs[k + 1], 0)  # what was dropped is zero
        if layer.noise is not None:
            behind.mul_(layer.noise.scale)
        by_weight = by_bias = None
        if weight is not None:
            by_weight, by_bias = behind.t() @ z, behind.sum(0)
            behind = torch.ops.aten.threshold_backward(behind @ weight, z, 0)
        by_y, by_gamma, by_beta = torch.ops.aten.native_batch_norm_backward(
            behind, y, gamma, None, None, mean, inverse, True, eps, [True, True, True]
        )
        own, known = needs[2 + k * _PARAMETERS :], k == 0 and first is not None
        wanted = [k > 0 or needs[0], known and needs[1], *own[:3]]
        by_h, by_a, *by_weights = cpu.conv_backward(
            by_y, y, outputs[k], sums, layer.weights, deep.graph, deep.options, wanted, known=known
        )
        by_first = by_a if known else None
        found = [*by_weights, by_gamma, by_beta, by_weight, by_bias, *found]
    return [by_h, by_first, *found]
