"""Graph convolutional network of Kipf and Welling (ICLR'17), on PyTorch Geometric's layer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv, global_mean_pool

from demonet.baselines.base import Baseline, Items
from demonet.data.features import FeatureMap
from demonet.data.splits import Split
from demonet.train.config import TrainConfig
from demonet.train.loop import History, fit
from demonet.train.problem import GraphProblem, NodeProblem
from demonet.train.recipes import replace_features

# Their paper, section 5.2: 16 hidden units, dropout 0.5, L2 5e-4, Adam 0.01.
HIDDEN, DROPOUT = 16, 0.5
TRAIN = TrainConfig(lr=0.01, weight_decay=5e-4)


class _Network(nn.Module):
    """Two convolutions; graphs are read out by the mean of their nodes, then a linear layer."""

    def __init__(self, in_channels: int, num_classes: int, *, graphs: bool) -> None:
        super().__init__()
        self.first = GCNConv(in_channels, HIDDEN)
        self.second = GCNConv(HIDDEN, HIDDEN if graphs else num_classes)
        self.head = nn.Linear(HIDDEN, num_classes) if graphs else None

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, num_graphs: int | None = None
    ) -> Tensor:
        h = F.relu(self.first(F.dropout(x, DROPOUT, self.training), edge_index))
        h = self.second(F.dropout(h, DROPOUT, self.training), edge_index)
        return h if self.head is None else self.head(global_mean_pool(F.relu(h), batch, num_graphs))


class GCN(Baseline):
    """GCN with the features and the early stopping that every network here gets.

    Args:
        features: As :class:`~demonet.data.FeatureMap` names them; by default the attributes, or the one-hot degree.
        train: How it is trained.
    """

    name = "gcn"

    def __init__(self, features: str | None = None, train: TrainConfig = TRAIN) -> None:
        self.features, self.train = features, train
        self.history = History()

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> None:
        config = replace(self.train, seed=seed)
        one = isinstance(data, Data)
        first = data if isinstance(data, Data) else data[0]
        features = FeatureMap(self.features or ("degree-onehot" if first.x is None else "attributes"))
        problem: NodeProblem | GraphProblem
        if isinstance(data, Data):
            x = features.fit_transform(data)
            x = x if x.layout == torch.strided else x.to_dense()
            inputs: tuple[Any, ...] = (x, data.edge_index)
            problem = NodeProblem(inputs, y, split)
        else:
            features.fit([data[i] for i in split.train.tolist()])
            ready = [replace_features(graph, features.transform(graph)) for graph in data]
            problem = GraphProblem(ready, y, split, _collate, config.batch_size)
            inputs = _collate(Batch.from_data_list(ready))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = _Network(features.num_features, int(y.max()) + 1, graphs=not one)
        self.history = fit(model, problem, config)
        with torch.no_grad():
            self._prediction = model.eval()(*inputs).argmax(1)

    def predict(self) -> Tensor:
        """The class with the highest score."""
        return self._prediction


def _collate(batch: Batch) -> tuple[Any, ...]:
    return batch.x, batch.edge_index, batch.batch, batch.num_graphs
