"""``gcn-cheby``: Chebyshev filters (Defferrard et al., NeurIPS'16) in the network of Kipf and Welling (ICLR'17)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn
from torch_geometric.data import Data

from demonet.baselines.base import check_at_least, register
from demonet.baselines.gcn import GCN
from demonet.baselines.layers import LinearFirstCheb, TwoLayers
from demonet.baselines.network import Classifier, LayerSettings, Network


@dataclass(frozen=True)
class ChebSettings(LayerSettings):
    """``order`` is the largest power K of the Laplacian in the polynomial."""

    order: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, Chebyshev_order=self.order)


@register
class GCNCheby(Network):
    """Two layers ``Σ_k T_k(L̂) X W_k`` for k from 0 to the order; graphs are read out by the mean of their nodes."""

    name = "gcn-cheby"
    defaults = ChebSettings("Kipf and Welling, ICLR'17, section 6.2", GCN.defaults.train, hidden=16, dropout=0.5)
    settings: ChebSettings

    def _build(self, in_channels: int, num_classes: int, training: list[Data], *, graphs: bool) -> Classifier:
        width, terms = self.settings.hidden, self.settings.order + 1
        return TwoLayers(
            LinearFirstCheb(in_channels, width, terms),
            LinearFirstCheb(width, width if graphs else num_classes, terms),
            self.settings.dropout,
            nn.ReLU(),
            nn.Linear(width, num_classes) if graphs else None,
        )
