"""Graph convolutional network of Kipf and Welling (ICLR'17), on PyTorch Geometric's layer."""

from __future__ import annotations

from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from demonet.baselines import settings_networks as settings
from demonet.baselines.layers import TwoLayers
from demonet.baselines.network import Classifier, Network


class GCN(Network):
    """``Â relu(Â X W_1) W_2`` with ``Â = D^-1/2 (A + I) D^-1/2``; graphs by the mean of their nodes."""

    name = "gcn"
    defaults = settings.GCN
    chosen: settings.LayerSettings

    def _module(self, in_channels: int, num_classes: int, seen: list[Data], *, graphs: bool) -> Classifier:
        width = self.chosen.hidden
        return TwoLayers(
            GCNConv(in_channels, width),
            GCNConv(width, width if graphs else num_classes),
            self.chosen.dropout,
            nn.ReLU(),
            nn.Linear(width, num_classes) if graphs else None,
        )
