"""Graph attention network of Veličković et al. (ICLR'18), on PyTorch Geometric's layer."""

from __future__ import annotations

from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv

from demonet.baselines import settings_networks as settings
from demonet.baselines.layers import TwoLayers
from demonet.baselines.network import Classifier, Network


class GAT(Network):
    """Eight attentions side by side, then one; dropout on inputs and attentions; graphs by the mean of their nodes."""

    name = "gat"
    defaults = settings.GAT
    chosen: settings.GATSettings

    def _module(self, in_channels: int, num_classes: int, seen: list[Data], *, graphs: bool) -> Classifier:
        heads, dropout = self.chosen.heads, self.chosen.dropout
        width = heads * self.chosen.hidden
        return TwoLayers(
            GATConv(in_channels, self.chosen.hidden, heads, dropout=dropout),
            GATConv(width, width if graphs else num_classes, dropout=dropout),
            dropout,
            nn.ELU(),
            nn.Linear(width, num_classes) if graphs else None,
        )
