"""``gin``: the graph isomorphism network of Xu et al. (ICLR'19), in its variant GIN-0."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GINConv, global_add_pool

from demonet.methods.base import register
from demonet.methods.cost import Cost
from demonet.methods.network import Classifier, DeepSettings, Network, read_out
from demonet.train.config import TrainConfig


@register
class GIN(Network):
    """Sums over neighbours and two-layer perceptrons; graphs are read out by the sums of every layer.

    The paper counts the input as one of five layers, so there are four sums. Its batches have 32 or 128 graphs, its
    hidden layers 16, 32 (molecules) or 64 (social networks) units.
    """

    name = "gin"
    cost = Cost(1.5, 0.2)
    defaults = DeepSettings(
        "Xu et al., ICLR'19, section 7",
        TrainConfig(lr=0.01, weight_decay=0.0, batch_size=32, halve_lr_every=50),
        hidden=64,
        layers=4,
        dropout=0.5,
    )
    settings: DeepSettings

    def _build(self, in_channels: int, num_classes: int, training: list[Data], *, graphs: bool) -> Classifier:
        return GINNetwork(in_channels, num_classes, self.settings)


class GINNetwork(Classifier):
    """``h' = relu(bn(MLP(h_v + Σ_u h_u)))``, ``MLP = W_2 relu(bn(W_1 ·))``; scores are ``Σ_k dropout(V_k h_k)``.

    ``W_1`` is applied before the sum, with which it commutes: wide and sparse attributes are never summed. It has no
    bias, which batch normalisation would remove.
    """

    def __init__(self, in_channels: int, num_classes: int, settings: DeepSettings) -> None:
        super().__init__()
        width, self.dropout = settings.hidden, settings.dropout
        widths = [in_channels] + [width] * settings.layers
        self.lins = nn.ModuleList(nn.Linear(before, width, bias=False) for before in widths[:-1])
        self.convs = nn.ModuleList(
            GINConv(nn.Sequential(nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width), nn.BatchNorm1d(width)))
            for _ in self.lins
        )
        self.heads = nn.ModuleList(nn.Linear(before, num_classes) for before in widths)

    def layers(self, x: Tensor, edge_index: Tensor) -> list[Tensor]:
        """Nodes after every layer, the input first."""
        found = [x]
        for lin, conv in zip(self.lins, self.convs, strict=True):
            found.append(F.relu(conv(lin(found[-1]), edge_index)))
        return found

    def embed(self, x: Tensor, edge_index: Tensor, *graphs: Any) -> Tensor:
        """Nodes of the last layer, or their sum over each graph."""
        return read_out(global_add_pool, self.layers(x, edge_index)[-1], *graphs)

    def forward(self, x: Tensor, edge_index: Tensor, *graphs: Any) -> Tensor:
        """Scores."""
        read = [read_out(global_add_pool, h, *graphs) for h in self.layers(x, edge_index)]
        parts = [F.dropout(head(h), self.dropout, self.training) for head, h in zip(self.heads, read, strict=True)]
        return sum(parts[1:], parts[0])
