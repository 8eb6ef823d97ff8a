"""The Chebyshev filters of Defferrard et al. (NeurIPS'16) in the network of Kipf and Welling (ICLR'17)."""

from __future__ import annotations

from torch import nn
from torch_geometric.data import Data

from demonet.baselines import settings_networks as settings
from demonet.baselines.layers import LinearFirstCheb, TwoLayers
from demonet.baselines.network import Classifier, Network


class GCNCheby(Network):
    """``Σ_k T_k(L̂) X W_k`` with k from 0 to the order, twice; graphs by the mean of their nodes."""

    name = "gcn-cheby"
    defaults = settings.GCN_CHEBY
    chosen: settings.ChebSettings

    def _module(self, in_channels: int, num_classes: int, seen: list[Data], *, graphs: bool) -> Classifier:
        width, terms = self.chosen.hidden, self.chosen.order + 1
        return TwoLayers(
            LinearFirstCheb(in_channels, width, terms),
            LinearFirstCheb(width, width if graphs else num_classes, terms),
            self.chosen.dropout,
            nn.ReLU(),
            nn.Linear(width, num_classes) if graphs else None,
        )
