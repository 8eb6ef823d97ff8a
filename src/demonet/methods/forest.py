"""Forests whose fitted trees are plain arrays, with a NumPy predictor equal to scikit-learn's; forests on nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from demonet.features.structure import settled
from demonet.features.views import LARGE, Float, Int, View
from demonet.methods.base import Settings, at_least, register
from demonet.methods.model import MOST_SECONDS, TASKS, Labelled, Model
from demonet.options import Effort
from demonet.schema import check_trees

TREES: dict[Effort, int] = {"quick": 50, "standard": 100, "best": 400}
FOREST_ROWS = 20_000  # training items a tree is grown on, at most
COLUMN_SHARE = 1 / 3  # of the columns that are compared at a split of labels or numbers
FOREST_COLUMNS = 256  # attributes up to which a forest reads them
BLOCK = 16_384


def tree_arrays(forest: Any, outputs: int) -> dict[str, NDArray[Any]]:
    """The trees of a forest as :func:`stacked` has them; values are the shares of classes, or the means, in a leaf.

    Args:
        forest: A fitted scikit-learn forest: of numbers, or of classes that are numbers below ``outputs``.
        outputs: Number of columns of the values.
    """
    parts = []
    for tree in (estimator.tree_ for estimator in forest.estimators_):
        if hasattr(forest, "classes_"):
            value = np.zeros((tree.node_count, outputs))
            value[:, forest.classes_.astype(int)] = tree.value[:, 0] / tree.value[:, 0].sum(1, keepdims=True)
        else:
            value = tree.value[:, :, 0]
        leaf = tree.children_left < 0
        parts.append((tree.feature, tree.threshold, tree.children_left, tree.children_right, leaf, value))
    return stacked(parts)


def stacked(trees: Sequence[Sequence[NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """The nodes of all trees, one after the other, and where each tree begins; leaves point at themselves.

    Args:
        trees: For each of them, node by node: split feature, threshold, left and right child, whether it is a leaf, and
            ``[nodes, columns]`` values.
    """
    first = np.cumsum([0] + [len(tree[-1]) for tree in trees])
    parts = []
    for (feature, threshold, left, right, leaf, value), start in zip(trees, first[:-1], strict=True):
        here = np.arange(len(leaf))
        children = [start + np.where(leaf, here, child) for child in (left, right)]
        parts.append((np.where(leaf, 0, feature), np.where(leaf, 0.0, threshold), *children, value))
    feature, threshold, left, right, value = map(np.concatenate, zip(*parts, strict=True))
    return {
        "roots": first[:-1].astype(np.int64),
        "feature": feature.astype(np.int32),
        "threshold": threshold.astype(np.float64),
        "left": left.astype(np.int32),
        "right": right.astype(np.int32),
        "value": value,
    }


def predict_trees(arrays: dict[str, NDArray[Any]], x: NDArray[Any]) -> Float:
    """``[items, columns]`` the mean over trees of the values of the leaf that an item falls into."""
    check_trees(arrays, x.shape[1])
    feature, threshold, left, right = (arrays[name] for name in ("feature", "threshold", "left", "right"))
    leaf = left == np.arange(len(left))
    result = np.zeros((len(x), arrays["value"].shape[1]))
    for start in range(0, len(x), BLOCK):
        part = x[start : start + BLOCK]
        for root in arrays["roots"]:
            node = np.full(len(part), root)
            row = np.arange(0 if leaf[root] else len(part))  # those that have not reached a leaf
            while row.size:
                here = node[row]
                here = np.where(part[row, feature[here]] <= threshold[here], left[here], right[here])
                node[row] = here
                row = row[~leaf[here]]
            result[start : start + BLOCK] += arrays["value"][node]
    return result / len(arrays["roots"])


@dataclass(frozen=True)
class ForestSettings(Settings):
    """Settings of a forest.

    Attributes:
        columns: What trees of nodes read: the bare ``"degree"``, ``"structure"``, a node's ``"own"`` attributes, or
            with ``"attributes"`` all of these and the neighbours' mean attributes.
        trees: Their number.
        leaf: The fewest training items of a leaf.
        extra: Whether trees are extremely randomised.
    """

    columns: str = "structure"
    trees: int = at_least(1, 100)
    leaf: int = at_least(1, 1)
    extra: bool = False


class Forest(Model):
    """A random forest on dense rows of a view.

    Of labels and numbers, trees have the mean of each column in a leaf; unknown entries count as the column's mean.
    """

    kind = "forest"
    tasks = TASKS
    defaults = ForestSettings("Breiman, 2001, as in scikit-learn")
    settings: ForestSettings

    @abstractmethod
    def rows(self, view: View) -> Float:
        """``[items, columns]``."""

    @property
    def prediction(self) -> float:
        """Seconds that a tree takes for an item."""
        return 5e-7

    def _learn(self, view: View, labelled: Labelled) -> None:
        seed, train, wanted = labelled.seed_of(self.name) % 2**31, labelled.train, self.settings
        if len(train) > FOREST_ROWS:
            train = np.sort(np.random.default_rng(seed).choice(train, FOREST_ROWS, replace=False))
        weight = labelled.weights(train)
        options: dict[str, Any] = {"min_samples_leaf": wanted.leaf, "random_state": seed}
        if labelled.task == "classify":
            make = ExtraTreesClassifier if wanted.extra else RandomForestClassifier
            forest = make(wanted.trees, **options).fit(self.rows(view)[train], labelled.y[train], weight)
        else:
            make = ExtraTreesRegressor if wanted.extra else RandomForestRegressor
            y = labelled.table(train)
            forest = make(wanted.trees, max_features=COLUMN_SHARE, **options)
            forest.fit(self.rows(view)[train], y[:, 0] if labelled.outputs == 1 else y, weight)
        self.arrays |= tree_arrays(forest, labelled.outputs)

    def outputs(self, view: View) -> Float:
        """The mean over trees; of a single column once for each value."""
        return self._outputs(self.rows(view))

    def some_outputs(self, view: View, rows: Int) -> Float:
        """Down the trees with these rows alone."""
        return self._outputs(self.rows(view)[rows])

    def _outputs(self, rows: Float) -> Float:
        rows = rows.astype(np.float32)  # scikit-learn compares these with double precision thresholds
        if rows.shape[1] > 1:
            return predict_trees(self.arrays, rows)
        values, place = np.unique(rows[:, 0], return_inverse=True)
        return predict_trees(self.arrays, values[:, None])[place]

    def estimate(self, view: View, num_train: int) -> float:
        """Growing and prediction."""
        one = 1e-3 + 8e-6 * min(num_train, FOREST_ROWS) + self.prediction * view.num_items
        return self.settings.trees * one

    def memory(self, view: View, num_train: int) -> float:
        """Beside outputs, the value of every node of every tree: scikit-learn's and ours."""
        nodes = 2 * min(num_train, FOREST_ROWS) / self.settings.leaf
        return super().memory(view, num_train) + 16.0 * self.settings.trees * nodes * self.facts.get("outputs", 4)


@register
class NodeForest(Forest):
    """A random forest on the degree, structure or attributes of nodes."""

    name = "node-forest"
    kinds = ("nodes",)

    @classmethod
    def candidates(cls, view: View, labelled: Labelled, effort: Effort) -> list[Self]:
        """On attributes where there are not too many, on structure, and on the degree."""
        trees = TREES[effort]
        if view.num_items >= LARGE:  # as many as the effort has time for
            one = cls(trees=1).estimate(view, len(labelled.train))
            trees = int(min(trees, max(10, MOST_SECONDS[effort] // one)))
        columns = ["structure"]
        if view.facts["attributes"] and view.facts["columns"] <= FOREST_COLUMNS:
            own = ["own"] if view.facts["attributes"] == "numbers" else []
            columns = ["attributes", *own, *columns]
        found = [cls(f"forest-{name}", columns=name, trees=trees, leaf=2) for name in columns]
        return [*found, cls("forest-degree", columns="degree", trees=trees)]

    def rows(self, view: View) -> Float:
        """The columns that the settings name."""
        if self.settings.columns == "degree":
            return view.log_degree
        if self.settings.columns == "own":
            return dense(view.own)
        return node_columns(view, attributes=self.settings.columns == "attributes")

    @property
    def prediction(self) -> float:
        """Of the bare degree, a prediction is made once for each degree."""
        return 0.0 if self.settings.columns == "degree" else super().prediction

    def memory(self, view: View, num_train: int) -> float:
        """The columns of all nodes, in double and single precision."""
        attributes = 2 * view.facts["columns"] if self.settings.columns == "attributes" else 0
        return super().memory(view, num_train) + 12.0 * view.num_items * (25 + attributes)


def node_columns(view: View, *, attributes: bool) -> Float:
    """``[nodes, columns]`` log-degree and structure; a node's own attributes and its neighbours' mean beside them.

    Means are settled: trees split between values that differ only by the order of a sum.
    """
    beside = [dense(view.own), settled(dense(view.neighbours))] if attributes else []
    return np.hstack([view.log_degree, view.structure, *beside])


def dense(rows: Any) -> Float:
    """A dense array."""
    return rows if isinstance(rows, np.ndarray) else rows.toarray()
