"""Principal neighbourhood aggregation of Corso et al. (NeurIPS'20), on PyTorch Geometric's layer."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import PNAConv, global_add_pool

from demonet.baselines import settings_networks as settings
from demonet.baselines.network import Classifier, Network
from demonet.degree.count import count_degree

AGGREGATORS = ["mean", "max", "min", "std"]
SCALERS = ["identity", "amplification", "attenuation"]


class PNA(Network):
    """Four aggregators times three scalers, which know the degrees of the training graphs."""

    name = "pna"
    defaults = settings.PNA
    chosen: settings.PNASettings

    def _module(self, in_channels: int, num_classes: int, seen: list[Data], *, graphs: bool) -> Classifier:
        degrees = [count_degree(graph.edge_index, int(graph.num_nodes or 0)) for graph in seen]
        return PNANetwork(in_channels, num_classes, torch.bincount(torch.cat(degrees)), self.chosen)


class PNANetwork(Classifier):
    """``h' = h + dropout(relu(bn(PNA(h))))`` after a linear map of the input, then a perceptron that halves twice.

    Args:
        in_channels, num_classes: Features and classes.
        histogram: How many training nodes have degree 0, 1, 2 and so on.
        chosen: The other settings.
    """

    def __init__(self, in_channels: int, num_classes: int, histogram: Tensor, chosen: settings.PNASettings) -> None:
        super().__init__()
        width, self.dropout = chosen.hidden, chosen.dropout
        self.input = nn.Linear(in_channels, width)
        options: dict[str, Any] = {"towers": chosen.towers, "divide_input": True}
        self.convs = nn.ModuleList(
            PNAConv(width, width, AGGREGATORS, SCALERS, histogram, **options) for _ in range(chosen.layers)
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in self.convs)
        half, quarter = max(1, width // 2), max(1, width // 4)
        self.head = nn.Sequential(
            nn.Linear(width, half), nn.ReLU(), nn.Linear(half, quarter), nn.ReLU(), nn.Linear(quarter, num_classes)
        )

    def embed(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, num_graphs: int | None = None
    ) -> Tensor:
        """Nodes, or their sum over each graph."""
        h = self.input(x)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            h = h + F.dropout(F.relu(norm(conv(h, edge_index))), self.dropout, self.training)
        return h if batch is None else global_add_pool(h, batch, num_graphs)

    def forward(self, *inputs: Any) -> Tensor:
        """Scores."""
        return self.head(self.embed(*inputs))
