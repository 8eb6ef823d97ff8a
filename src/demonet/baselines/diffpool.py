"""Differentiable pooling of Ying et al. (NeurIPS'18), on PyTorch Geometric's layers."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import DenseSAGEConv, dense_diff_pool, global_max_pool

from demonet.baselines import settings_networks as settings
from demonet.baselines.layers import LinearFirstSAGE
from demonet.baselines.network import Classifier, Network
from demonet.errors import DemonetError

READ = 50  # units between the readout and the scores, as in the authors' program


class DiffPool(Network):
    """One pooling into clusters that are learned: GraphSAGE layers before, beside and after it."""

    name = "diffpool"
    kinds = ("graphs",)
    defaults = settings.DIFFPOOL
    chosen: settings.DiffPoolSettings

    def _module(self, in_channels: int, num_classes: int, seen: list[Data], *, graphs: bool) -> Classifier:
        largest = max(int(graph.num_nodes or 0) for graph in seen)
        clusters = self.chosen.clusters or math.ceil(self.chosen.ratio * largest)
        if clusters > largest:
            raise DemonetError(
                f"{clusters} clusters of graphs with at most {largest} nodes", hint="fewer clusters, or none given"
            )
        return DiffPoolNetwork(in_channels, num_classes, clusters, self.chosen)

    def _inputs(self, data: Data) -> tuple[Any, ...]:
        return *super()._inputs(data), buckets(data.edge_index, data.batch, data.num_graphs)


class Bucket(NamedTuple):
    """Graphs of nearly one size, laid out densely: ``nodes[b, i]`` is a node where ``mask[b, i]``."""

    graphs: Tensor
    nodes: Tensor
    mask: Tensor
    adj: Tensor


def buckets(edge_index: Tensor, batch: Tensor, num_graphs: int) -> list[Bucket]:
    """Graphs by the power of two that their nodes fit in: one large graph does not make all others as large."""
    sizes = torch.bincount(batch, minlength=num_graphs)
    first = sizes.cumsum(0) - sizes
    power = sizes.clamp(min=1).double().log2().ceil().long()
    found = []
    for level in power.unique().tolist():
        graphs = (power == level).nonzero()[:, 0]
        places = torch.arange(2**level, device=batch.device)
        mask = places < sizes[graphs, None]
        nodes = torch.where(mask, first[graphs, None] + places, 0)
        inside = torch.isin(batch[edge_index[0]], graphs)
        source, target = edge_index[:, inside]
        slot = torch.searchsorted(graphs, batch[source])
        adj = torch.zeros(graphs.numel(), 2**level, 2**level, device=batch.device)
        adj[slot, target - first[batch[target]], source - first[batch[source]]] = 1.0
        found.append(Bucket(graphs, nodes, mask, adj))
    return found


def pool(z: Tensor, s: Tensor, laid: list[Bucket]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """``Sᵀ Z``, ``Sᵀ A S`` and the two losses, of node embeddings and assignments before their softmax.

    The losses are those of the paper, of all graphs as one with A in blocks: ``||A - S Sᵀ||_F`` over the blocks,
    divided by their number of entries, and the mean entropy of a row of S. Padding counts in neither.
    """
    pooled = [dense_diff_pool(z[b.nodes], b.adj, s[b.nodes], b.mask, normalize=False) for b in laid]
    order = torch.cat([b.graphs for b in laid]).argsort()
    x, adj = (torch.cat([part[i] for part in pooled])[order] for i in (0, 1))
    sizes = torch.cat([b.mask.sum(1) for b in laid])
    link = torch.stack([part[2] for part in pooled]).norm() / sizes.square().sum()
    rows = torch.stack([part[3] * b.mask.numel() for part, b in zip(pooled, laid, strict=True)])
    return x, adj, link, rows.sum() / sizes.sum()


class Stack(nn.Module):
    """GraphSAGE layers of length one; all but the last with relu and batch norm; outputs side by side."""

    def __init__(self, in_channels: int, hidden: int, out_channels: int, layers: int, *, dense: bool) -> None:
        super().__init__()
        widths = [in_channels] + [hidden] * (layers - 1) + [out_channels]
        conv = DenseSAGEConv if dense else LinearFirstSAGE
        self.convs = nn.ModuleList(conv(a, b) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths[1:-1])
        self.out_channels = sum(widths[1:])

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """Nodes, by ``edge_index``, or clusters, by their dense adjacency."""
        found = []
        for number, conv in enumerate(self.convs):
            x = F.normalize(conv(x, edges), dim=-1)
            if number < len(self.norms):
                x = F.relu(x)
                x = self.norms[number](x.flatten(0, -2)).view_as(x)
            found.append(x)
        return torch.cat(found, dim=-1)


class DiffPoolNetwork(Classifier):
    """The maximum over nodes and the maximum over clusters, side by side, then a perceptron."""

    auxiliary_loss: Tensor

    def __init__(self, in_channels: int, num_classes: int, clusters: int, chosen: settings.DiffPoolSettings) -> None:
        super().__init__()
        hidden, layers = chosen.hidden, chosen.layers
        self.before = Stack(in_channels, hidden, hidden, layers, dense=False)
        self.assign = Stack(in_channels, hidden, clusters, layers, dense=False)
        self.assigned = nn.Linear(self.assign.out_channels, clusters)
        self.after = Stack(self.before.out_channels, hidden, hidden, layers, dense=True)
        self.read = nn.Linear(self.before.out_channels + self.after.out_channels, READ)
        self.head = nn.Linear(READ, num_classes)
        self.dropout = chosen.dropout

    def embed(self, x: Tensor, edge_index: Tensor, batch: Tensor, num_graphs: int, laid: list[Bucket]) -> Tensor:
        """Graphs."""
        z = self.before(x, edge_index)
        clusters, adj, link, entropy = pool(z, self.assigned(self.assign(x, edge_index)), laid)
        self.auxiliary_loss = link + entropy
        highest = [global_max_pool(z, batch, num_graphs), self.after(clusters, adj).amax(1)]
        return F.relu(self.read(torch.cat(highest, 1)))

    def forward(self, *inputs: Any) -> Tensor:
        """Scores; the two losses are left in ``auxiliary_loss``."""
        return self.head(F.dropout(self.embed(*inputs), self.dropout, self.training))
