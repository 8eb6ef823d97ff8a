"""GraphSAGE of Hamilton et al. (NeurIPS'17) with its mean aggregator, on PyTorch Geometric's layer."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import global_mean_pool

from demonet.baselines import settings_networks as settings
from demonet.baselines.layers import LinearFirstSAGE, drop
from demonet.baselines.network import Classifier, Network


class GraphSAGE(Network):
    """Whole neighbourhoods, where the paper samples 25 and 10; graphs by the mean of their nodes."""

    name = "sage"
    defaults = settings.SAGE
    chosen: settings.DeepSettings

    def _module(self, in_channels: int, num_classes: int, seen: list[Data], *, graphs: bool) -> Classifier:
        return SAGENetwork(in_channels, num_classes, self.chosen)


class SAGENetwork(Classifier):
    """Algorithm 1: ``relu(W [h_v, mean_u h_u])`` layer upon layer, embeddings of length one, then a linear layer."""

    def __init__(self, in_channels: int, num_classes: int, chosen: settings.DeepSettings) -> None:
        super().__init__()
        widths = [in_channels] + [chosen.hidden] * chosen.layers
        self.convs = nn.ModuleList(LinearFirstSAGE(a, b) for a, b in pairwise(widths))
        self.head = nn.Linear(chosen.hidden, num_classes)
        self.dropout = chosen.dropout

    def embed(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, num_graphs: int | None = None
    ) -> Tensor:
        """Nodes, or graphs."""
        for conv in self.convs:
            x = F.relu(conv(drop(x, self.dropout, self.training), edge_index))
        x = F.normalize(x)
        return x if batch is None else global_mean_pool(x, batch, num_graphs)

    def forward(self, *inputs: Any) -> Tensor:
        """Scores."""
        return self.head(self.embed(*inputs))
