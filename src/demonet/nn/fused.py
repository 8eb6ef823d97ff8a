"""Several steps of a model as one function: what follows a convolution; all layers; convolutions, head and loss.

Layer by layer, a small graph spends most of its time on calling operators, and a GPU has to hold every layer's output
and its derivative side by side. Which function applies is decided here; the functions are in :mod:`demonet.ops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from demonet.degree.layout import DegreeLayout
from demonet.nn.dropout import Dropout
from demonet.nn.prepared import GraphInput, LayerInput
from demonet.ops import Weights, backend, deep, stack
from demonet.ops.graph import Graph
from demonet.ops.refine import Refine, applies, refine

if TYPE_CHECKING:
    from demonet.nn.conv import DEMOConv
    from demonet.nn.models import DegreeNetwork, NodeDEMONet

_DEEP_ROWS = 4096  # on a CPU, deep layers on fewer rows are one function


class After(nn.Sequential):
    """A norm, an activation, and dropout; between the last two perhaps a second linear map and its activation.

    While training, batch norm with ReLU is one function (:mod:`demonet.ops.refine`), which draws the same numbers.
    """

    def forward(self, y: Tensor) -> Tensor:
        """Apply them, as one function where there is a kernel."""
        fused = self.fused()
        if fused is None or not applies(y, fused[1]):
            return super().forward(y)
        norm, given, drop = fused
        width = y.size(1) if given.weight is None else given.weight.size(0)
        noise = drop.noise(y.size(0), (width, 0), y) if drop.active else None
        out, mean, variance = refine(y, given, noise)
        keep_statistics(norm, mean, variance * (y.size(0) / (y.size(0) - 1)))
        return out

    def fused(self) -> tuple[nn.BatchNorm1d, Refine, Dropout] | None:
        """Norm, parameters and dropout, where all may be one function: batch norm with ReLU while training."""
        norm, activation, *second, drop = self
        if not (self.training and type(norm) is nn.BatchNorm1d and isinstance(activation, nn.ReLU)):
            return None
        assert isinstance(drop, Dropout)
        mapped: list[Any] = [second[0].weight, second[0].bias] if second else [None, None]
        return norm, Refine(norm.weight, norm.bias, mapped[0], mapped[1], norm.eps), drop


@torch.no_grad()
def keep_statistics(norm: nn.BatchNorm1d, mean: Tensor, variance: Tensor) -> None:
    """Move the running statistics of a norm towards a mean and an unbiased variance, as the norm itself does."""
    running_mean, running_variance, momentum = count_batch(norm)
    running_mean.lerp_(mean.to(running_mean.dtype), momentum)
    running_variance.lerp_(variance.to(running_variance.dtype), momentum)


def count_batch(norm: nn.BatchNorm1d) -> tuple[Tensor, Tensor, float]:
    """Count one more batch; the running mean and variance, which are to be moved, and by how much."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    assert norm.momentum is not None
    norm.num_batches_tracked.add_(1)
    return norm.running_mean, norm.running_var, norm.momentum


def deep_levels(model: DegreeNetwork, h: Tensor, given: LayerInput) -> Sequence[Tensor] | None:
    """The outputs of all layers while a deep model trains on a small graph on a CPU; None where it does not apply.

    It draws the same random numbers, and moves the running statistics of the norms, as layer by layer.

    Args:
        model: The model.
        h: The input of the first layer.
        given: The graph.
    """
    if model.config.recompute:
        return None
    layout, convs = given.graph, [layer.conv for layer in model.hidden_layers()]
    after = [layer.after.fused() for layer in model.hidden_layers() if layer.after is not None]
    parts = [part for part in after if part is not None]
    if not convs or len(parts) < len(convs) or not isinstance(layout, DegreeLayout) or not _is_deep(h, given):
        return None
    if not all(conv.is_plain for conv in convs):
        return None
    convs[0]._check_layout(h, layout)
    convs[0].tasks.see(layout.degrees)
    matrices = [conv.weights.for_groups(layout) for conv in convs]
    if any(own is None for own in matrices):
        return None
    layers = []
    for conv, own, (norm, given_refine, drop) in zip(convs, matrices, parts, strict=True):
        assert own is not None
        noise = drop.noise(h.size(0), (model.config.hidden, 0), h) if drop.active else None
        assert conv.seed is not None
        weights = Weights(conv.seed.weight.t(), own, conv.bias)
        layers.append(deep.DeepLayer(weights, given_refine, count_batch(norm), noise))
    return deep.levels(deep.Deep(layers, Graph.of(layout), convs[0].options()), h, given.neighbourhood)


def _is_deep(h: Tensor, given: LayerInput) -> bool:
    """Whether sums are plain and all here, and rows are few and on a CPU."""
    if given.edge_weight is not None or given.fill is not None or given.degree is not None:
        return False
    if not 1 < h.size(0) < _DEEP_ROWS or torch.is_autocast_enabled(h.device.type):
        return False
    return h.layout == torch.strided and h.dtype in (torch.float32, torch.float64) and backend.direct(h)


def stack_loss(model: NodeDEMONet, given: LayerInput, target: Tensor, share: Tensor) -> Tensor | None:
    """:meth:`NodeDEMONet.loss` on a GPU; None where it does not apply.

    It draws the same random numbers as forward.

    Args:
        model: The model.
        given: The graph.
        target, share: As in :meth:`NodeDEMONet.loss`, in the order of the rows of ``given``.
    """
    x, layout, convs, head = given.x, given.graph, _plain_convs(model, given), model.head
    if not convs or not isinstance(layout, DegreeLayout) or not isinstance(head, nn.Linear):
        return None
    if backend.family(x) != "triton":
        return None
    convs[0]._check_layout(x, layout)
    layers = []
    for conv in convs:
        matrices = conv.weights.for_groups(layout)
        if matrices is None:
            return None
        assert conv.seed is not None
        layers.append(Weights(conv.seed.weight.t(), matrices, conv.bias))
    if not stack.stacks(x, layers, head.weight):
        return None
    options = convs[0].options(model.config.activation)._replace(keep=not model.config.recompute)
    halves = [(layer.seed.size(1), layer.matrices.size(2)) for layer in layers]
    noises = [conv.drop.noise(x.size(0), each, x) for conv, each in zip(convs, halves, strict=True) if conv.drop.active]
    whole = stack.Stack(Graph.of(layout), target, share, given.neighbourhood, options, noises)
    return stack.stack_loss(whole, x, layers, head.weight, head.bias)


def _plain_convs(model: NodeDEMONet, given: GraphInput | LayerInput) -> list[DEMOConv]:
    """The convolutions, if the model is nothing but these, and sums are plain and all here; otherwise none."""
    config = model.config
    if config.refine or config.stem or config.norm != "none":
        return []
    if given.edge_weight is not None or given.fill is not None:
        return []
    convs = [layer.conv for layer in model.hidden_layers()]
    return convs if all(conv.is_plain for conv in convs) else []
