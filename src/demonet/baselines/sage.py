"""``sage``: GraphSAGE of Hamilton et al. (NeurIPS'17) with the mean aggregator."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import global_mean_pool

from demonet.baselines.base import register
from demonet.baselines.layers import LinearFirstSAGE, dropout
from demonet.baselines.network import Classifier, DeepSettings, Network
from demonet.train.config import TrainConfig


@register
class GraphSAGE(Network):
    """Algorithm 1 of the paper on whole neighbourhoods, without sampling; graphs are the mean of their nodes.

    The paper samples 25 and 10 neighbours and trains on batches of 512 nodes.
    """

    name = "sage"
    defaults = DeepSettings(
        "Hamilton et al., NeurIPS'17, section 4; width as in the authors' supervised trainer",
        TrainConfig(lr=0.01, weight_decay=0.0),
        hidden=128,
    )
    settings: DeepSettings

    def _build(self, in_channels: int, num_classes: int, training: list[Data], *, graphs: bool) -> Classifier:
        return SAGENetwork(in_channels, num_classes, self.settings)


class SAGENetwork(Classifier):
    """Layers ``relu(W [h_v, mean_u h_u])``, embeddings normalised to length one, then a linear layer."""

    def __init__(self, in_channels: int, num_classes: int, settings: DeepSettings) -> None:
        super().__init__()
        widths = [in_channels] + [settings.hidden] * settings.layers
        self.convs = nn.ModuleList(LinearFirstSAGE(a, b) for a, b in pairwise(widths))
        self.head = nn.Linear(settings.hidden, num_classes)
        self.dropout = settings.dropout

    def embed(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, num_graphs: int | None = None
    ) -> Tensor:
        """Nodes, or graphs."""
        for conv in self.convs:
            x = F.relu(conv(dropout(x, self.dropout, self.training), edge_index))
        x = F.normalize(x)
        return x if batch is None else global_mean_pool(x, batch, num_graphs)

    def forward(self, *inputs: Any) -> Tensor:
        """Scores."""
        return self.head(self.embed(*inputs))
