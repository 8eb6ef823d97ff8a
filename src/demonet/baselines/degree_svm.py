"""A support vector machine on the bare degree: as nearest neighbours, with a smoother boundary."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC
from torch import Tensor
from torch_geometric.data import Data

from demonet.baselines.base import Baseline, Items
from demonet.baselines.choice import choose
from demonet.baselines.degree_knn import degree_shares, log_degree
from demonet.data.splits import Split

STRENGTHS = (1.0, 10.0, 100.0, 1000.0)  # of C
WIDTHS = (0.1, 1.0, 10.0)  # of gamma: exp(-gamma * distance ** 2)


class DegreeSVM(Baseline):
    """RBF kernel on log(1 + degree), for graphs on the shares of nodes at each degree; C and gamma by validation."""

    name = "degree-svm"

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> None:
        x = log_degree(data) if isinstance(data, Data) else degree_shares(data)
        models = [_Machine(C=strength, gamma=width) for strength in STRENGTHS for width in WIDTHS]
        self._prediction = choose(models, x, y, split, untuned=_Machine(C=10.0, gamma=1.0)).predict(x)

    def predict(self) -> Tensor:
        """The class on whose side of the boundaries the degree lies."""
        return self._prediction


class _Machine(SVC):
    """Equal rows of one class are one row of that weight: the same machine, at the price of the distinct ones."""

    def fit(self, X: NDArray[np.float64], y: NDArray[np.int64]) -> Self:
        distinct, weight = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
        return super().fit(distinct[:, :-1], distinct[:, -1].astype(np.int64), sample_weight=weight)

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        distinct, place = np.unique(X, axis=0, return_inverse=True)
        found: NDArray[np.int64] = super().predict(distinct)[place]
        return found
