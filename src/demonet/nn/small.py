"""A model of nodes on a small graph in main memory: all its layers, its linear head and its loss as one function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from demonet.nn.door import GraphInput
from demonet.nn.dropout import draw_apart
from demonet.ops import reference
from demonet.ops.cpu_head import Head
from demonet.ops.cpu_small import Layers, Small, head_loss
from demonet.ops.cpu_stack import LEAST
from demonet.ops.eager import is_eager
from demonet.ops.sparse import is_sparse

if TYPE_CHECKING:
    from demonet.nn.models import NodeDEMONet


def small_loss(model: NodeDEMONet, graph: GraphInput, target: Tensor, share: Tensor) -> Tensor | None:
    """:meth:`NodeDEMONet.loss`, with the random numbers of forward; None where one function does not do, or not pay."""
    config, head, convs = model.config, model.head, model.chain(graph.edge_weight)
    if not convs or not isinstance(head, nn.Linear) or not _suits(graph, head.weight):
        return None
    convs[0].takes(graph.x, graph.rows)
    layers: Layers = []
    for conv in convs:
        plain = conv.keep_sums and conv.drop.noise is None and conv.drop.acts == convs[0].drop.acts
        terms = conv.weights.terms(graph.rows) if plain else None
        if terms is None or not is_eager(conv.seed.weight, terms[1]):
            return None
        layers.append((conv.seed.weight, *terms, conv.bias))
    tiers, x, folded = graph.tiers
    noises: list[Tensor] | None = None
    if convs[0].drop.acts:
        halves = [(seed.size(0), own.size(2)) for seed, _, own, _ in layers]
        noises = draw_apart(graph.x.size(0), halves, config.dropout, x, tiers.source, graph.rows.buffers)
    scale = reference.aggregate_scale(tiers.pointer, convs[0].scaling, x.dtype)
    scale = None if scale is None else scale[:, None]
    small = Small(tiers, graph.rows.buffers, x, folded, scale, config.combine, config.activation)
    nodes, taken = graph.places
    share = share.index_select(0, nodes).to(x.dtype).mul_(taken)
    return head_loss(small, noises, layers, Head(head.weight, head.bias, target.index_select(0, nodes), share))


def _suits(graph: GraphInput, head: Tensor) -> bool:
    """Whether the graph is small and plain, and nobody differentiates by its features, traces, or casts."""
    x, folded = graph.x, graph.folded
    if not 0 < x.size(0) < LEAST or is_sparse(x) or x.requires_grad or torch.is_autocast_enabled("cpu"):
        return False
    return is_eager(x, folded, head) and x.dtype in (torch.float32, torch.float64)
