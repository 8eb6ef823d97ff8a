"""Diffusion-convolutional network of Atwood and Towsley (NeurIPS'16)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from demonet.baselines import settings_networks as settings
from demonet.baselines.network import Classifier, Network
from demonet.data.features import adjacency

DEVIATION = 0.1  # of the first weights


class DCNN(Network):
    """``Z_v = tanh(W ⊙ [P^0 X, P^1 X, ...]_v)`` with a weight for each step and feature, then a linear layer.

    ``P = D^-1 A``. For a graph, the mean over its nodes stands inside the tanh. As the diffused features do not
    change, they are computed once.
    """

    name = "dcnn"
    defaults = settings.DCNN
    chosen: settings.DCNNSettings

    def _module(self, in_channels: int, num_classes: int, seen: list[Data], *, graphs: bool) -> Classifier:
        return DCNNetwork((self.chosen.hops + 1) * in_channels, num_classes)

    def _inputs(self, data: Data) -> tuple[Any, ...]:
        return (data.x,) if isinstance(data, Batch) else (diffused(data, self.chosen.hops),)

    def _layout(self, graphs: list[Data], seen: list[Data]) -> list[Data]:
        return [Data(x=diffused(graph, self.chosen.hops).mean(0, keepdim=True)) for graph in graphs]


def diffused(data: Data, hops: int) -> Tensor:
    """``[nodes, (hops + 1) * features]``: the features, the mean of the neighbours' features, and so on."""
    arcs = adjacency(data)
    total = np.asarray(arcs.sum(axis=1)).ravel()
    step = sparse.diags_array(1 / np.where(total == 0, 1, total)) @ arcs
    found = [data.x.to_dense().cpu().numpy()]
    for _ in range(hops):
        found.append(step @ found[-1])
    return torch.from_numpy(np.concatenate(found, axis=1, dtype=np.float32)).to(data.x.device)


class DCNNetwork(Classifier):
    """One weight for each diffused feature."""

    def __init__(self, channels: int, num_classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels) * DEVIATION)
        self.head = nn.Linear(channels, num_classes)

    def embed(self, z: Tensor) -> Tensor:
        """``tanh(W ⊙ z)``."""
        return torch.tanh(self.weight * z)

    def forward(self, z: Tensor) -> Tensor:
        """Scores."""
        return self.head(self.embed(z))
