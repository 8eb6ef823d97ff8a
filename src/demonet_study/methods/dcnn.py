"""``dcnn``: the diffusion-convolutional network of Atwood and Towsley (NeurIPS'16)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from demonet.features.graph import adjacency
from demonet.methods.base import at_least, register
from demonet.methods.cost import Cost
from demonet.methods.network import Classifier, Network, NetworkSettings
from demonet.train.config import TrainConfig

_INITIAL_STD = 0.1  # of the diffusion weights


@dataclass(frozen=True)
class DCNNSettings(NetworkSettings):
    """``hops`` is the largest number of diffusion steps."""

    hops: int = at_least(0, 2)


@register
class DCNN(Network):
    """``Z_v = tanh(W ⊙ [P^0 X, P^1 X, ...]_v)`` with one weight per step and feature, then a linear layer.

    ``P = D^-1 A``. For a graph, the mean over its nodes is taken inside the tanh. The diffused features are constant
    and are computed once. The paper uses AdaGrad with the same learning rate.
    """

    name = "dcnn"
    cost = Cost(0.2, 0.02, nodes=0.1)
    defaults = DCNNSettings("Atwood and Towsley, NeurIPS'16, section 3", TrainConfig(lr=0.05, weight_decay=0.0))
    settings: DCNNSettings

    def _build(self, in_channels: int, num_classes: int, training: list[Data], *, graphs: bool) -> Classifier:
        return DCNNetwork((self.settings.hops + 1) * in_channels, num_classes)

    def _inputs(self, data: Data) -> tuple[Any, ...]:
        return (data.x,) if isinstance(data, Batch) else (diffused(data, self.settings.hops),)

    def _preprocess(self, graphs: list[Data], training: list[Data]) -> list[Data]:
        return [Data(x=diffused(graph, self.settings.hops).mean(0, keepdim=True)) for graph in graphs]


def diffused(data: Data, hops: int) -> Tensor:
    """``[nodes, (hops + 1) * features]``: the features, the mean of the neighbours' features, and so on."""
    edges = adjacency(data)
    total = np.asarray(edges.sum(axis=1)).ravel()
    step = sparse.diags_array(1 / np.where(total == 0, 1, total)) @ edges
    found = [data.x.to_dense().cpu().numpy()]
    for _ in range(hops):
        found.append(step @ found[-1])
    return torch.from_numpy(np.concatenate(found, axis=1, dtype=np.float32)).to(data.x.device)


class DCNNetwork(Classifier):
    """One weight per diffused feature, then a linear layer."""

    def __init__(self, channels: int, num_classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels) * _INITIAL_STD)
        self.head = nn.Linear(channels, num_classes)

    def embed(self, z: Tensor) -> Tensor:
        """``tanh(W ⊙ z)``."""
        return torch.tanh(self.weight * z)
