"""All layers of a model as one function; for node models that are nothing but convolutions, with head and loss.

Layer by layer, a small graph spends most of its time on calling operators, and a GPU has to hold every layer's output
and its derivative side by side. Which function applies is decided here; the functions are in :mod:`demonet.ops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from demonet.degree.layout import DegreeLayout
from demonet.nn.after import count_batch
from demonet.nn.prepared import GraphInput, LayerInput
from demonet.ops import Weights, backend, deep, stack
from demonet.ops.graph import Graph

if TYPE_CHECKING:
    from demonet.nn.conv import DEMOConv
    from demonet.nn.models import DegreeNetwork, NodeDEMONet


def deep_levels(model: DegreeNetwork, h: Tensor, given: LayerInput) -> Sequence[Tensor] | None:
    """The outputs of all layers while a deep model trains on a small graph on a CPU; None where it does not apply.

    It draws the same random numbers, and moves the running statistics of the norms, as layer by layer.

    Args:
        model: The model.
        h: The input of the first layer.
        given: The graph.
    """
    layout, convs = given.graph, [layer.conv for layer in model.hidden_layers()]
    after = [layer.after.fused() for layer in model.hidden_layers() if layer.after is not None]
    parts = [part for part in after if part is not None]
    if not convs or len(parts) < len(convs) or not isinstance(layout, DegreeLayout) or not _is_deep(h, given):
        return None
    convs[0]._check_layout(h, layout)
    convs[0].tasks.see(layout.degrees)
    matrices = [conv.weights.for_groups(layout) for conv in convs]
    if not all(own is not None and conv.keep_sums for conv, own in zip(convs, matrices, strict=True)):
        return None
    layers = []
    for conv, own, (norm, refine, drop) in zip(convs, matrices, parts, strict=True):
        assert own is not None
        noise = drop.noise(h.size(0), (model.config.hidden, 0), h) if drop.active else None
        weights = Weights(conv.seed.weight.t(), own, conv.bias)
        layers.append(deep.DeepLayer(weights, refine, count_batch(norm), noise))
    return deep.levels(deep.Deep(layers, Graph.of(layout), convs[0].options()), h, given.neighbourhood)


def _is_deep(h: Tensor, given: LayerInput) -> bool:
    """Whether sums are plain and all here, and rows are few and on a CPU."""
    if given.edge_weight is not None or given.fill is not None or given.degree is not None:
        return False
    if not 1 < h.size(0) < backend.current().deep_rows or torch.is_autocast_enabled(h.device.type):
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
        layers.append(Weights(conv.seed.weight.t(), matrices, conv.bias))
    if not stack.stacks(x, layers, head.weight):
        return None
    options = convs[0].options(model.config.activation)
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
    return [layer.conv for layer in model.hidden_layers()]
