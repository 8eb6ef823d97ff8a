"""``structural-lr`` and ``structural-rf``: simple baselines on ten structural features of a node.

The features are degree, degrees of the neighbours, clustering, egonet, two-step neighbourhood, core number and
PageRank, computed for all nodes of a graph or of many graphs at once. A graph is described by the mean and standard
deviation of each feature over its nodes, and by the logarithms of its numbers of nodes and edges.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch_geometric.data import Data

from demonet.data.splits import Split
from demonet.features.graph import Float, simple_adjacency
from demonet.features.structure import Surroundings
from demonet.methods.base import Items, Method, Predicted, Settings, register
from demonet.methods.cost import Cost
from demonet.methods.selection import logistic, select

_TREES = 200
_LEAF_SIZES = (10, 5, 2, 1)  # the smallest number of training items in a leaf
FEATURES = (
    "log-degree",
    *(f"log-degree of neighbours, {what}" for what in ("mean", "minimum", "maximum")),
    *("closed triangles", "edges inside the egonet", "edges leaving the egonet", "others within two steps"),
    *("core number", "PageRank"),
)


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
