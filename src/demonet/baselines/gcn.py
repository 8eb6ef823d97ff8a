"""Graph convolutional network of Kipf and Welling (ICLR'17), on PyTorch Geometric's layer."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch_geometric.data import Batch, Data

from demonet.baselines import settings_networks as settings
from demonet.baselines.layers import ProductGCN, TwoLayers, gcn_product
from demonet.baselines.network import Classifier, Network
from demonet.baselines.products import Product


class GCN(Network):
    """``Â relu(Â X W_1) W_2`` with ``Â = D^-1/2 (A + I) D^-1/2``; graphs by the mean of their nodes."""

    name = "gcn"
    defaults = settings.GCN
    chosen: settings.LayerSettings

    def _module(self, in_channels: int, num_classes: int, seen: list[Data], *, graphs: bool) -> Classifier:
        width = self.chosen.hidden
        return TwoLayers(
            ProductGCN(in_channels, width),
            ProductGCN(width, width if graphs else num_classes),
            self.chosen.dropout,
            nn.ReLU(),
            nn.Linear(width, num_classes) if graphs else None,
        )

    def _inputs(self, data: Data) -> tuple[Any, ...]:
        x = data.x if data.x.layout == torch.strided else Product.of(data.x)
        arcs = gcn_product(data.edge_index, int(data.num_nodes or 0))
        return (x, arcs, data.batch, data.num_graphs) if isinstance(data, Batch) else (x, arcs)
