"""Nearest neighbours on the bare degree: how much of a task the degree alone decides."""

from __future__ import annotations

import torch
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor
from torch_geometric.data import Data

from demonet.baselines.base import Baseline, Items
from demonet.data.splits import Split
from demonet.degree.count import count_degree

NEIGHBOURS = (1, 3, 5, 9, 15)


class DegreeKNN(Baseline):
    """Nearest neighbours by log(1 + degree); for graphs, by the shares of nodes at each degree.

    The number of neighbours is the one of 1, 3, 5, 9, 15 that does best on the validation part.
    """

    name = "degree-knn"

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> None:
        x = _degrees(data) if isinstance(data, Data) else torch.stack(_histograms(list(data)))
        sizes = [k for k in NEIGHBOURS if k <= split.train.numel()]
        models = [KNeighborsClassifier(k).fit(x[split.train], y[split.train]) for k in sizes]
        chosen = split.val if split.val.numel() else split.train
        best = max(models, key=lambda model: model.score(x[chosen], y[chosen]))
        self._prediction = torch.from_numpy(best.predict(x))

    def predict(self) -> Tensor:
        """The class of the nearest training items."""
        return self._prediction


def _degrees(data: Data) -> Tensor:
    return torch.log1p(count_degree(data.edge_index, int(data.num_nodes or 0)).double())[:, None]


def _histograms(graphs: list[Data]) -> list[Tensor]:
    degrees = [count_degree(graph.edge_index, int(graph.num_nodes or 0)) for graph in graphs]
    longest = max((int(degree.max()) for degree in degrees if degree.numel()), default=0) + 1
    return [torch.bincount(degree, minlength=longest).double() / max(1, degree.numel()) for degree in degrees]
