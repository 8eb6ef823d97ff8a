"""Graph isomorphism network of Xu et al. (ICLR'19), GIN-0, on PyTorch Geometric's layer."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GINConv, global_add_pool

from demonet.baselines import settings_networks as settings
from demonet.baselines.network import Classifier, Network


class GIN(Network):
    """Sums and two-layer perceptrons; every layer's sum over a graph has its say. Nodes speak for themselves."""

    name = "gin"
    defaults = settings.GIN
    chosen: settings.DeepSettings

    def _module(self, in_channels: int, num_classes: int, seen: list[Data], *, graphs: bool) -> Classifier:
        return GINNetwork(in_channels, num_classes, self.chosen)


class GINNetwork(Classifier):
    """``h' = relu(bn(MLP(h_v + Σ_u h_u)))``, ``MLP = W_2 relu(bn(W_1 ·))``; scores are ``Σ_k dropout(V_k h_k)``.

    ``W_1`` stands before the sum, with which it commutes, so that wide and sparse attributes are never summed; its
    bias would be lost in the batch norm anyway.
    """

    def __init__(self, in_channels: int, num_classes: int, chosen: settings.DeepSettings) -> None:
        super().__init__()
        width, self.dropout = chosen.hidden, chosen.dropout
        widths = [in_channels] + [width] * chosen.layers
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

    def embed(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, num_graphs: int | None = None
    ) -> Tensor:
        """Nodes of the last layer, or their sum over each graph."""
        return _readout(self.layers(x, edge_index)[-1], batch, num_graphs)

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, num_graphs: int | None = None
    ) -> Tensor:
        """Scores."""
        read = [_readout(h, batch, num_graphs) for h in self.layers(x, edge_index)]
        parts = [F.dropout(head(h), self.dropout, self.training) for head, h in zip(self.heads, read, strict=True)]
        return sum(parts[1:], parts[0])


def _readout(h: Tensor, batch: Tensor | None, num_graphs: int | None) -> Tensor:
    return h if batch is None else global_add_pool(h, batch, num_graphs)
