"""``pna``: principal neighbourhood aggregation of Corso et al. (NeurIPS'20)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import PNAConv, global_add_pool

from demonet.degree.count import count_degree
from demonet.errors import DemonetError
from demonet.methods.base import at_least, register
from demonet.methods.cost import Cost
from demonet.methods.network import Classifier, DeepSettings, Network, read_out
from demonet.train.config import TrainConfig

_AGGREGATORS = ["mean", "max", "min", "std"]
_SCALERS = ["identity", "amplification", "attenuation"]


@dataclass(frozen=True)
class PNASettings(DeepSettings):
    """``towers`` is the number of towers; each gets an equal share of the hidden units."""

    towers: int = at_least(1, 5)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden % self.towers:
            raise DemonetError(f"hidden={self.hidden} is not divisible by towers={self.towers}")


@register
class PNA(Network):
    """Four aggregators times three degree scalers, fitted to the degrees of the training graphs.

    The settings are those of the paper's classifier of images as graphs.
    """

    name = "pna"
    cost = Cost(30.0, 5.0)
    defaults = PNASettings(
        "Corso et al., NeurIPS'20, and the authors' command for CIFAR10",
        TrainConfig(lr=0.001, weight_decay=3e-6, batch_size=128),
        hidden=75,
        layers=4,
        dropout=0.1,
    )
    settings: PNASettings

    def _build(self, in_channels: int, num_classes: int, training: list[Data], *, graphs: bool) -> Classifier:
        degrees = [count_degree(graph.edge_index, int(graph.num_nodes or 0)) for graph in training]
        return PNANetwork(in_channels, num_classes, torch.bincount(torch.cat(degrees)), self.settings)


class PNANetwork(Classifier):
    """``h' = h + dropout(relu(bn(PNA(h))))`` after a linear layer, then a perceptron that halves the width twice.

    ``histogram`` has the number of training nodes of degree 0, 1, 2 and so on.
    """

    def __init__(self, in_channels: int, num_classes: int, histogram: Tensor, settings: PNASettings) -> None:
        super().__init__()
        width, self.dropout = settings.hidden, settings.dropout
        self.input = nn.Linear(in_channels, width)
        options: dict[str, Any] = {"towers": settings.towers, "divide_input": True}
        self.convs = nn.ModuleList(
            PNAConv(width, width, _AGGREGATORS, _SCALERS, histogram, **options) for _ in range(settings.layers)
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in self.convs)
        half, quarter = max(1, width // 2), max(1, width // 4)
        self.head = nn.Sequential(
            nn.Linear(width, half), nn.ReLU(), nn.Linear(half, quarter), nn.ReLU(), nn.Linear(quarter, num_classes)
        )

    def embed(self, x: Tensor, edge_index: Tensor, *graphs: Any) -> Tensor:
        """Nodes, or their sum over each graph."""
        h = self.input(x)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            h = h + F.dropout(F.relu(norm(conv(h, edge_index))), self.dropout, self.training)
        return read_out(global_add_pool, h, *graphs)
