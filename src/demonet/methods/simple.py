r"""Simple baselines that see the degree (``majority``, ``mean``, ``degree-knn``, ``degree-svm``) or the structure.

The first show how much of a task the class frequencies and the degree decide. A node is described by
:math:`\log(1 + deg(v))`, a graph by the share of its nodes at each degree.

``structural-lr`` and ``structural-rf`` have ten features of a node: degree, degrees of the neighbours, clustering,
egonet, two-step neighbourhood, core number and PageRank, computed for all nodes of a graph or of many graphs at once. A
graph is described by the mean and standard deviation of each feature over its nodes, and by the logarithms of its
numbers of nodes and edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from torch import Tensor
from torch_geometric.data import Data

from demonet.data.splits import Split
from demonet.degree.count import count_degree
from demonet.features.graph import Float, simple_adjacency
from demonet.features.structure import Surroundings
from demonet.methods.base import Items, Method, Predicted, Settings, register
from demonet.methods.cost import Cost
from demonet.methods.selection import logistic, select
from demonet.train.metrics import Task

_NEIGHBOURS = (1, 3, 5, 9, 15)
_STRENGTHS = (1.0, 10.0, 100.0, 1000.0)  # C of the support vector machine
_GAMMAS = (0.1, 1.0, 10.0)  # of its kernel exp(-gamma * distance ** 2)
ENTRIES = 2**27  # of shares of degrees, 1 GiB
_TREES = 200
_LEAF_SIZES = (10, 5, 2, 1)  # the smallest number of training items in a leaf
FEATURES = (
    "log-degree",
    *(f"log-degree of neighbours, {what}" for what in ("mean", "minimum", "maximum")),
    *("closed triangles", "edges inside the egonet", "edges leaving the egonet", "others within two steps"),
    *("core number", "PageRank"),
)


@register
class Majority(Method):
    """Predicts the most frequent class of the training part for every item; of several labels, the share of each."""

    name = "majority"
    tasks: ClassVar[tuple[Task, ...]] = ("classify", "multilabel")
    beside_fit = True
    defaults = Settings("simple baseline of this project")

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> Predicted:
        if y.dim() == 2:
            mean = y[split.train].double().nanmean(0).expand(len(y), -1)
            return mean, mean
        share = torch.bincount(y[split.train], minlength=int(y.max()) + 1) / split.train.numel()
        return torch.full_like(y, int(share.argmax())), share.double().expand(y.numel(), -1)


@register
class Mean(Majority):
    """Predicts the mean of the training part for every item."""

    name = "mean"
    tasks = ("regress",)


@register
class DegreeKNN(Method):
    """Nearest neighbours by degree; 1, 3, 5, 9 or 15 neighbours, selected on validation."""

    name = "degree-knn"
    tasks = ("classify", "multilabel", "regress")
    beside_fit = True
    defaults = Settings("simple baseline of this project")

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> Predicted:
        x = degree_rows(data)
        make = _DistinctKNN if self.task == "classify" else _DistinctMean
        models = [make(k) for k in _NEIGHBOURS if k <= split.train.numel()]
        selected = select(models, x, y, split, default=models[0], kept=self.chosen, judge=self._judge)
        self.chosen = selected.model
        return selected.outputs(x)


@register
class DegreeSVM(Method):
    """Support vector machine with an RBF kernel on the degree; C and gamma are selected on validation."""

    name = "degree-svm"
    defaults = Settings("simple baseline of this project")

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> Predicted:
        x = degree_rows(data)
        models = [_DistinctSVC(C=strength, gamma=gamma) for strength in _STRENGTHS for gamma in _GAMMAS]
        selected = select(models, x, y, split, default=_DistinctSVC(C=10.0, gamma=1.0), kept=self.chosen)
        self.chosen = selected.model
        return selected.outputs(x)


class _Distinct:
    """Predicts each distinct row once: all nodes of one degree get the same answer."""

    def predict(self, X: Float) -> NDArray[Any]:
        distinct, inverse = np.unique(X, axis=0, return_inverse=True)
        found: NDArray[Any] = super().predict(distinct)[inverse]  # type: ignore[misc]
        return found


class _DistinctKNN(_Distinct, KNeighborsClassifier):
    def predict_proba(self, X: Float) -> Float:
        distinct, inverse = np.unique(X, axis=0, return_inverse=True)
        found: Float = super().predict_proba(distinct)[inverse]
        return found


class _DistinctMean(_Distinct, KNeighborsRegressor):
    """The mean of the neighbours' targets."""


class _DistinctSVC(_Distinct, SVC):
    """Fits equal rows of one class as one weighted row: the same classifier, at the cost of the distinct rows."""

    def fit(self, X: Float, y: NDArray[np.int64]) -> Self:
        distinct, weight = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
        return super().fit(distinct[:, :-1], distinct[:, -1].astype(np.int64), sample_weight=weight)


def degree_rows(data: Items) -> Float:
    """The rows that these baselines see: the logarithm of a node's degree, or a graph's shares of degrees."""
    if isinstance(data, Data):
        degree = count_degree(data.edge_index, int(data.num_nodes or 0))
        return torch.log1p(degree.double()).cpu().numpy()[:, None]
    return _degree_shares(data)


def _degree_shares(graphs: Sequence[Data]) -> Float:
    """``[graphs, largest degree + 1]`` the share of a graph's nodes at each degree.

    Of many graphs beside one with a hub, degrees that no node has are left out.
    """
    degrees = [count_degree(graph.edge_index, int(graph.num_nodes or 0)).cpu().numpy() for graph in graphs]
    width = max((int(degree.max()) for degree in degrees if degree.size), default=0) + 1
    if width * len(degrees) > ENTRIES:
        found, place = np.unique(np.concatenate(degrees), return_inverse=True)
        width, degrees = len(found), np.split(place, np.cumsum([degree.size for degree in degrees])[:-1])
    return np.stack([np.bincount(degree, minlength=width) / max(1, degree.size) for degree in degrees])


@register
class StructuralLR(Method):
    """Multinomial logistic regression on ten structural features and their squares; C is selected on validation."""

    name = "structural-lr"
    defaults = Settings("simple baseline of this project")

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> Predicted:
        x = StandardScaler().fit_transform(structural_rows(data))
        x = StandardScaler().fit_transform(np.hstack([x, x**2]))
        selected = logistic(x, y, split, kept=self.chosen)
        self.chosen = selected.model
        return selected.outputs(x)


@register
class StructuralRF(Method):
    """Random forest of 200 trees on ten structural features; the size of leaves is selected on validation."""

    name = "structural-rf"
    cost = Cost(1.5, 0.05)
    defaults = Settings("simple baseline of this project")

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> Predicted:
        x = structural_rows(data)
        models = [_forest(leaf, seed) for leaf in _LEAF_SIZES]
        selected = select(models, x, y, split, default=_forest(2, seed), kept=self.chosen)
        self.chosen = selected.model
        return selected.outputs(x)


def _forest(leaf: int, seed: int) -> RandomForestClassifier:
    return RandomForestClassifier(_TREES, min_samples_leaf=leaf, random_state=seed)


def structural_rows(data: Items) -> Float:
    """One row per node of a graph, or one row per graph of a sequence."""
    x = Surroundings(simple_adjacency(data)).columns(FEATURES)
    return x if isinstance(data, Data) else _pool(x, data)


def _pool(x: Float, graphs: Sequence[Data]) -> Float:
    sizes = np.array([int(graph.num_nodes or 0) for graph in graphs])
    edges = np.array([graph.edge_index.size(1) for graph in graphs])
    rows = [
        np.concatenate([part.mean(0), part.std(0)]) if len(part) else np.zeros(2 * x.shape[1])
        for part in np.split(x, np.cumsum(sizes)[:-1])
    ]
    return np.column_stack([np.stack(rows), np.log1p(sizes), np.log1p(edges)])
