"""``gcn``: the graph convolutional network of Kipf and Welling (ICLR'17)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch_geometric.data import Batch, Data

from demonet.baselines.base import register
from demonet.baselines.layers import Product, ProductGCN, TwoLayers, gcn_product
from demonet.baselines.network import Classifier, LayerSettings, Network
from demonet.train.config import TrainConfig


@register
class GCN(Network):
    """``Â relu(Â X W_1) W_2`` with ``Â = D^-1/2 (A + I) D^-1/2``; graphs are read out by the mean of their nodes.

    The paper decays the first layer only, stops after 200 epochs or 10 without a lower loss, and divides the rows of X
    by their sums.
    """

    name = "gcn"
    defaults = LayerSettings(
        "Kipf and Welling, ICLR'17, section 5.2", TrainConfig(lr=0.01, weight_decay=5e-4), hidden=16, dropout=0.5
    )
    settings: LayerSettings

    def _build(self, in_channels: int, num_classes: int, training: list[Data], *, graphs: bool) -> Classifier:
        width = self.settings.hidden
        return TwoLayers(
            ProductGCN(in_channels, width),
            ProductGCN(width, width if graphs else num_classes),
            self.settings.dropout,
            nn.ReLU(),
            nn.Linear(width, num_classes) if graphs else None,
        )

    def _inputs(self, data: Data) -> tuple[Any, ...]:
        x = data.x if data.x.layout == torch.strided else Product.of(data.x)
        adjacency = gcn_product(data.edge_index, int(data.num_nodes or 0))
        return (x, adjacency, data.batch, data.num_graphs) if isinstance(data, Batch) else (x, adjacency)
