"""Nearest neighbours on the bare degree: how much of a task the degree alone decides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor
from torch_geometric.data import Data

from demonet.baselines.base import Baseline, Items
from demonet.baselines.choice import choose
from demonet.data.splits import Split
from demonet.degree.count import count_degree

NEIGHBOURS = (1, 3, 5, 9, 15)


class DegreeKNN(Baseline):
    """Nearest neighbours by log(1 + degree); for graphs, by the shares of nodes at each degree.

    The number of neighbours is the one of 1, 3, 5, 9, 15 that does best on the validation part.
    """

    name = "degree-knn"

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> None:
        x = log_degree(data) if isinstance(data, Data) else degree_shares(data)
        models = [_Neighbours(k) for k in NEIGHBOURS if k <= split.train.numel()]
        self._prediction = choose(models, x, y, split, untuned=models[0]).predict(x)

    def predict(self) -> Tensor:
        """The class of the nearest training items."""
        return self._prediction


class _Neighbours(KNeighborsClassifier):
    """Asks once for each distinct row: all nodes of one degree have one answer, however many they are."""

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        distinct, place = np.unique(X, axis=0, return_inverse=True)
        found: NDArray[np.int64] = super().predict(distinct)[place]
        return found


def log_degree(data: Data) -> NDArray[np.float64]:
    """``[nodes, 1]`` log(1 + degree)."""
    degree = count_degree(data.edge_index, int(data.num_nodes or 0))
    return torch.log1p(degree.double()).cpu().numpy()[:, None]


def degree_shares(graphs: Sequence[Data]) -> NDArray[np.float64]:
    """``[graphs, largest degree + 1]`` the share of a graph's nodes at each degree."""
    degrees = [count_degree(graph.edge_index, int(graph.num_nodes or 0)).cpu().numpy() for graph in graphs]
    longest = max((int(degree.max()) for degree in degrees if degree.size), default=0) + 1
    return np.stack([np.bincount(degree, minlength=longest) / max(1, degree.size) for degree in degrees])
