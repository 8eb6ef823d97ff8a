"""The models, node by node and graph by graph: hidden layers over Eq. 5, and the readout of Eq. 12.

As in ``layers.py``, nothing here calls the code under test; parameters are taken from it as given.
"""

from __future__ import annotations

import torch
from tests.reference.layers import convolution, degree_pooling, node_degrees
from torch import Tensor


def elu(x: Tensor) -> Tensor:
    return torch.where(x > 0, x, torch.exp(x) - 1)


def relu(x: Tensor) -> Tensor:
    return torch.where(x > 0, x, torch.zeros_like(x))


def normed(norm, x: Tensor) -> Tensor:
    """Batch normalisation with its running moments, as in evaluation."""
    return (x - norm.running_mean) / torch.sqrt(norm.running_var + norm.eps) * norm.weight + norm.bias


def layer_normed(norm, row: Tensor) -> Tensor:
    """A row with mean 0 and variance 1."""
    centred = row - row.mean()
    return centred / torch.sqrt((centred**2).mean() + norm.eps) * norm.weight + norm.bias


def linear(layer, x: Tensor) -> Tensor:
    return torch.stack([layer.weight @ row + (0 if layer.bias is None else layer.bias) for row in x])


def levels(model, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, degree=None) -> list[Tensor]:
    """h^0 = x, h^1, ..., h^K."""
    sigma = {"elu": elu, "relu": relu}[model.config.activation]
    found, h = [x], x if model.stem is None else linear(model.stem.linear, x)
    for layer in model.layers:
        h = convolution(layer.conv, h, edge_index, edge_weight, degree)
        if model.config.norm == "layer":
            h = torch.stack([layer_normed(layer.after[0], row) for row in h])
        if model.config.refine or model.config.norm == "batch":
            h = normed(layer.after[0], h)
        if model.config.refine:
            h = linear(layer.after[2], sigma(h))
        h = sigma(h)
        found.append(h)
    return found


def node_scores(model, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, degree=None) -> Tensor:
    """The scores of every node before the softmax."""
    found = levels(model, x, edge_index, edge_weight, degree)
    read = found[-1]
    if model.config.head == "degree":
        return convolution(model.head, read, edge_index, edge_weight, degree)
    if model.config.head == "mlp":
        return linear(model.head[2], relu(linear(model.head[0], read)))
    return linear(model.head, read)


def readout(model, x: Tensor, edge_index: Tensor, batch: list[int], num_graphs: int) -> Tensor:
    """Eq. 12: every level pooled (Eq. 11), the input included, side by side."""
    degree = node_degrees(edge_index, x.size(0))
    blocks = []
    for h in levels(model, x, edge_index):
        by_degree = degree_pooling(h, degree, batch, num_graphs, model.tasks, "sum")
        rows = [[h[v] for v in range(x.size(0)) if batch[v] == graph] for graph in range(num_graphs)]
        total = torch.stack([sum(group, h.new_zeros(h.size(1))) for group in rows])
        count = torch.tensor([max(len(group), 1) for group in rows], dtype=h.dtype)
        pooled = {
            "degree": [by_degree],
            "sum": [total],
            "mean": [total / count[:, None]],
            "sum+degree": [total, by_degree / 2],
        }
        blocks += pooled[model.config.pooling]
    return torch.cat(blocks, 1)
