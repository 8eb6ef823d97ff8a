"""``diffpool``: differentiable pooling of Ying et al. (NeurIPS'18)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import DenseSAGEConv, dense_diff_pool, global_max_pool

from demonet.errors import DemonetError
from demonet.methods.base import at_least, register
from demonet.methods.cost import Cost
from demonet.methods.layers import LinearFirstSAGE
from demonet.methods.network import Classifier, DeepSettings, Network
from demonet.train.config import TrainConfig

_READOUT_WIDTH = 50  # units between the readout and the scores, as in the authors' program


@dataclass(frozen=True)
class DiffPoolSettings(DeepSettings):
    """``clusters`` is the size of the pooled graph; None for ``ratio`` of the nodes of the largest training graph."""

    ratio: float = 0.1
    clusters: int | None = at_least(1, None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.ratio <= 1.0:
            raise DemonetError(f"ratio of clusters to nodes must be in (0, 1], got {self.ratio!r}")


@register
class DiffPool(Network):
    """GraphSAGE layers, one pooling into learned clusters ``S = softmax(GNN(A, X))``, and layers on the clusters.

    ``X' = Sᵀ Z`` and ``A' = Sᵀ A S``. The paper finds one pooling as good as two on small sets; there are then 10 %
    as many clusters as nodes, instead of 25 %.
    """

    name = "diffpool"
    cost = Cost(2.0, 1.3, dense=2000.0)
    kinds = ("graphs",)
    defaults = DiffPoolSettings(
        "Ying et al., NeurIPS'18, section 4.1; width, rate and batches as in the authors' example for ENZYMES",
        TrainConfig(lr=0.001, weight_decay=0.0, batch_size=20),
        hidden=30,
        layers=3,
    )
    settings: DiffPoolSettings

    def _build(self, in_channels: int, num_classes: int, training: list[Data], *, graphs: bool) -> Classifier:
        largest = max(int(graph.num_nodes or 0) for graph in training)
        clusters = self.settings.clusters or math.ceil(self.settings.ratio * largest)
        if clusters > largest:
            raise DemonetError(
                f"clusters={clusters}, but training graphs have at most {largest} nodes", hint="use fewer clusters"
            )
        return DiffPoolNetwork(in_channels, num_classes, clusters, self.settings)

    def _inputs(self, data: Data) -> tuple[Any, ...]:
        return *super()._inputs(data), make_buckets(data.edge_index, data.batch, data.num_graphs)


class Bucket(NamedTuple):
    """Graphs of similar size in a dense layout: ``nodes[b, i]`` is a node where ``mask[b, i]`` is true."""

    graphs: Tensor
    nodes: Tensor
    mask: Tensor
    adj: Tensor


def make_buckets(edge_index: Tensor, batch: Tensor, num_graphs: int) -> list[Bucket]:
    """Group graphs by size, rounded up to a power of two, so that one large graph does not pad all others."""
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


def pool(z: Tensor, s: Tensor, buckets: list[Bucket]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """``Sᵀ Z``, ``Sᵀ A S`` and the two auxiliary losses, from node embeddings and assignments before their softmax.

    The losses are those of the paper on the disjoint union of all graphs: ``||A - S Sᵀ||_F`` over the diagonal blocks,
    divided by their number of entries, and the mean entropy of a row of S. Both ignore padding.
    """
    pooled = [dense_diff_pool(z[b.nodes], b.adj, s[b.nodes], b.mask, normalize=False) for b in buckets]
    order = torch.cat([b.graphs for b in buckets]).argsort()
    x, adj = (torch.cat([part[i] for part in pooled])[order] for i in (0, 1))
    sizes = torch.cat([b.mask.sum(1) for b in buckets])
    link = torch.stack([part[2] for part in pooled]).norm() / sizes.square().sum()
    rows = torch.stack([part[3] * b.mask.numel() for part, b in zip(pooled, buckets, strict=True)])
    return x, adj, link, rows.sum() / sizes.sum()


class _SAGEStack(nn.Module):
    """GraphSAGE layers with normalised outputs, which are concatenated; relu and batch norm after all but the last."""

    def __init__(self, in_channels: int, hidden: int, out_channels: int, layers: int, *, dense: bool) -> None:
        super().__init__()
        widths = [in_channels] + [hidden] * (layers - 1) + [out_channels]
        conv = DenseSAGEConv if dense else LinearFirstSAGE
        self.convs = nn.ModuleList(conv(a, b) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths[1:-1])
        self.out_channels = sum(widths[1:])

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """``edges`` is the ``edge_index`` of nodes, or the dense adjacency of clusters."""
        found = []
        for number, conv in enumerate(self.convs):
            x = F.normalize(conv(x, edges), dim=-1)
            if number < len(self.norms):
                x = F.relu(x)
                x = self.norms[number](x.flatten(0, -2)).view_as(x)
            found.append(x)
        return torch.cat(found, dim=-1)


class DiffPoolNetwork(Classifier):
    """The maximum over nodes and the maximum over clusters, concatenated, then a perceptron."""

    auxiliary_loss: Tensor

    def __init__(self, in_channels: int, num_classes: int, clusters: int, settings: DiffPoolSettings) -> None:
        super().__init__()
        hidden, layers = settings.hidden, settings.layers
        self.before = _SAGEStack(in_channels, hidden, hidden, layers, dense=False)
        self.assign = _SAGEStack(in_channels, hidden, clusters, layers, dense=False)
        self.assigned = nn.Linear(self.assign.out_channels, clusters)
        self.after = _SAGEStack(self.before.out_channels, hidden, hidden, layers, dense=True)
        self.read = nn.Linear(self.before.out_channels + self.after.out_channels, _READOUT_WIDTH)
        self.head = nn.Linear(_READOUT_WIDTH, num_classes)
        self.dropout = settings.dropout

    def embed(self, x: Tensor, edge_index: Tensor, batch: Tensor, num_graphs: int, buckets: list[Bucket]) -> Tensor:
        """Graphs."""
        z = self.before(x, edge_index)
        clusters, adj, link, entropy = pool(z, self.assigned(self.assign(x, edge_index)), buckets)
        self.auxiliary_loss = link + entropy
        highest = [global_max_pool(z, batch, num_graphs), self.after(clusters, adj).amax(1)]
        return F.relu(self.read(torch.cat(highest, 1)))

    def forward(self, *inputs: Any) -> Tensor:
        """Scores; the sum of the two losses is stored in ``auxiliary_loss``."""
        return self.head(F.dropout(self.embed(*inputs), self.dropout, self.training))
