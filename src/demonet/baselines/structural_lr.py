"""Logistic regression on local structural features: what is known of a node without any learned message."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch_geometric.data import Data

from demonet.baselines.base import Baseline, Items
from demonet.baselines.linear import logistic
from demonet.baselines.structure import simple_adjacency, structural_features
from demonet.data.splits import Split


class StructuralLR(Baseline):
    """Multinomial logistic regression with L2 on ten structural features and their squares, C by validation."""

    name = "structural-lr"

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> None:
        x = StandardScaler().fit_transform(structural_rows(data))
        x = StandardScaler().fit_transform(np.hstack([x, x**2]))
        self._prediction = logistic(x, y, split).predict(x)

    def predict(self) -> Tensor:
        """The class that the features speak for."""
        return self._prediction


def structural_rows(data: Items) -> NDArray[np.float64]:
    """A row a node; or a row a graph: mean and deviation over its nodes, and the logs of its nodes and arcs."""
    x = structural_features(simple_adjacency(data))
    if isinstance(data, Data):
        return x
    return _pooled(x, data)


def _pooled(x: NDArray[np.float64], graphs: Sequence[Data]) -> NDArray[np.float64]:
    sizes = np.array([int(graph.num_nodes or 0) for graph in graphs])
    arcs = np.array([graph.edge_index.size(1) for graph in graphs])
    rows = [
        np.concatenate([part.mean(0), part.std(0)]) if len(part) else np.zeros(2 * x.shape[1])
        for part in np.split(x, np.cumsum(sizes)[:-1])
    ]
    return np.column_stack([np.stack(rows), np.log1p(sizes), np.log1p(arcs)])
