"""``gat``: the graph attention network of Veličković et al. (ICLR'18)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv

from demonet.baselines.base import check_at_least, register
from demonet.baselines.layers import TwoLayers
from demonet.baselines.network import Classifier, LayerSettings, Network
from demonet.train.config import TrainConfig


@dataclass(frozen=True)
class GATSettings(LayerSettings):
    """``heads`` is the number of attention heads of the first layer, each of width ``hidden``."""

    heads: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, heads=self.heads)


@register
class GAT(Network):
    """``elu(Σ_u α_vu W h_u)`` with eight heads, then with one; graphs are read out by the mean of their nodes.

    ``α_vu = softmax_u(leaky_relu(a · [W h_v, W h_u]))``. Dropout acts on inputs and attention coefficients.
    """

    name = "gat"
    defaults = GATSettings(
        "Veličković et al., ICLR'18, section 3.3, transductive",
        TrainConfig(lr=0.005, weight_decay=5e-4),
        hidden=8,
        dropout=0.6,
    )
    settings: GATSettings

    def _build(self, in_channels: int, num_classes: int, training: list[Data], *, graphs: bool) -> Classifier:
        heads, dropout = self.settings.heads, self.settings.dropout
        width = heads * self.settings.hidden
        return TwoLayers(
            GATConv(in_channels, self.settings.hidden, heads, dropout=dropout),
            GATConv(width, width if graphs else num_classes, dropout=dropout),
            dropout,
            nn.ELU(),
            nn.Linear(width, num_classes) if graphs else None,
        )
