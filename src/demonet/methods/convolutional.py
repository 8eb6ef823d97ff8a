"""``gcn``, ``gcn-cheby``, ``sage`` and ``gat``: graph convolutional networks.

``gcn`` is that of Kipf and Welling (ICLR'17); ``gcn-cheby`` has the Chebyshev filters of Defferrard et al. (NeurIPS'16)
in the same network; ``sage`` is GraphSAGE of Hamilton et al. (NeurIPS'17) with the mean aggregator; ``gat`` is the
graph attention network of Veličković et al. (ICLR'18).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, global_mean_pool

from demonet.degree.keep import Memo
from demonet.methods.base import at_least, register
from demonet.methods.cost import Cost
from demonet.methods.layers import (
    LinearFirstCheb,
    LinearFirstSAGE,
    Product,
    ProductGCN,
    TwoLayers,
    dropout,
    gcn_product,
)
from demonet.methods.network import Classifier, DeepSettings, LayerSettings, Network, read_out
from demonet.train.config import TrainConfig


@register
class GCN(Network):
    """``Â relu(Â X W_1) W_2`` with ``Â = D^-1/2 (A + I) D^-1/2``; graphs are read out by the mean of their nodes.

    The paper decays the first layer only, stops after 200 epochs or 10 without a lower loss, and divides the rows of X
    by their sums.
    """

    name = "gcn"
    cost = Cost(1.0, 0.1)
    defaults = LayerSettings(
        "Kipf and Welling, ICLR'17, section 5.2", TrainConfig(lr=0.01, weight_decay=5e-4), hidden=16, dropout=0.5
    )
    settings: LayerSettings

    def _build(self, in_channels: int, num_classes: int, training: list[Data], *, graphs: bool) -> Classifier:
        width = self.settings.hidden
        first, second = ProductGCN(in_channels, width), partial(ProductGCN, width)
        return TwoLayers(first, second, width, num_classes, self.settings.dropout, nn.ReLU(), graphs=graphs)

    def _inputs(self, data: Data) -> tuple[Any, ...]:
        x = data.x if data.x.layout == torch.strided else Product(data.x, Memo())
        adjacency = gcn_product(data.edge_index, int(data.num_nodes or 0))
        return (x, adjacency, data.batch, data.num_graphs) if isinstance(data, Batch) else (x, adjacency)


@dataclass(frozen=True)
class ChebSettings(LayerSettings):
    """``order`` is the largest power K of the Laplacian in the polynomial."""

    order: int = at_least(1, 3)


@register
class GCNCheby(Network):
    """Two layers ``Σ_k T_k(L̂) X W_k`` for k from 0 to the order; graphs are read out by the mean of their nodes."""

    name = "gcn-cheby"
    cost = Cost(2.0, 0.3)
    defaults = ChebSettings("Kipf and Welling, ICLR'17, section 6.2", GCN.defaults.train, hidden=16, dropout=0.5)
    settings: ChebSettings

    def _build(self, in_channels: int, num_classes: int, training: list[Data], *, graphs: bool) -> Classifier:
        width, terms = self.settings.hidden, self.settings.order + 1
        first, second = LinearFirstCheb(in_channels, width, terms), partial(LinearFirstCheb, width, K=terms)
        return TwoLayers(first, second, width, num_classes, self.settings.dropout, nn.ReLU(), graphs=graphs)


@register
class GraphSAGE(Network):
    """Algorithm 1 of the paper on whole neighbourhoods, without sampling; graphs are the mean of their nodes.

    The paper samples 25 and 10 neighbours and trains on batches of 512 nodes.
    """

    name = "sage"
    cost = Cost(0.5, 0.2)
    defaults = DeepSettings(
        "Hamilton et al., NeurIPS'17, section 4; width as in the authors' supervised trainer",
        TrainConfig(lr=0.01, weight_decay=0.0),
        hidden=128,
    )
    settings: DeepSettings

    def _build(self, in_channels: int, num_classes: int, training: list[Data], *, graphs: bool) -> Classifier:
        return SAGENetwork(in_channels, num_classes, self.settings)


class SAGENetwork(Classifier):
    """Layers ``relu(W [h_v, mean_u h_u])``, embeddings normalised to length one, then a linear layer."""

    def __init__(self, in_channels: int, num_classes: int, settings: DeepSettings) -> None:
        super().__init__()
        widths = [in_channels] + [settings.hidden] * settings.layers
        self.convs = nn.ModuleList(LinearFirstSAGE(a, b) for a, b in pairwise(widths))
        self.head = nn.Linear(settings.hidden, num_classes)
        self.dropout = settings.dropout

    def embed(self, x: Tensor, edge_index: Tensor, *graphs: Any) -> Tensor:
        """Nodes, or graphs."""
        for conv in self.convs:
            x = F.relu(conv(dropout(x, self.dropout, self.training), edge_index))
        return read_out(global_mean_pool, F.normalize(x), *graphs)


@dataclass(frozen=True)
class GATSettings(LayerSettings):
    """``heads`` is the number of attention heads of the first layer, each of width ``hidden``."""

    heads: int = at_least(1, 8)


@register
class GAT(Network):
    """``elu(Σ_u α_vu W h_u)`` with eight heads, then with one; graphs are read out by the mean of their nodes.

    ``α_vu = softmax_u(leaky_relu(a · [W h_v, W h_u]))``. Dropout acts on inputs and attention coefficients.
    """

    name = "gat"
    cost = Cost(4.0, 0.4)
    defaults = GATSettings(
        "Veličković et al., ICLR'18, section 3.3, transductive",
        TrainConfig(lr=0.005, weight_decay=5e-4),
        hidden=8,
        dropout=0.6,
    )
    settings: GATSettings

    def _build(self, in_channels: int, num_classes: int, training: list[Data], *, graphs: bool) -> Classifier:
        heads, rate = self.settings.heads, self.settings.dropout
        width = heads * self.settings.hidden
        first = GATConv(in_channels, self.settings.hidden, heads, dropout=rate)
        second = partial(GATConv, width, dropout=rate)
        return TwoLayers(first, second, width, num_classes, rate, nn.ELU(), graphs=graphs)
