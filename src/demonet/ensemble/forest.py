"""Forests and extra-trees whose fitted trees are plain arrays, with a NumPy predictor equal to scikit-learn's."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from demonet.ensemble.member import Labelled, Member, seed_of
from demonet.features.views import Float, View

FOREST_ROWS = 20_000  # training items a tree is grown on, at most
BLOCK = 16_384


def tree_arrays(forest: Any, classes: int) -> dict[str, NDArray[Any]]:
    """The nodes of all trees, one after the other: split feature, threshold, children; leaves point at themselves.

    Args:
        forest: A fitted scikit-learn forest whose classes are numbers below ``classes``.
        classes: Number of columns of the leaves' shares.
    """
    trees = [estimator.tree_ for estimator in forest.estimators_]
    first = np.cumsum([0] + [tree.node_count for tree in trees])
    feature, threshold, left, right, share = [], [], [], [], []
    for tree, start in zip(trees, first[:-1], strict=True):
        leaf, me = tree.children_left < 0, np.arange(tree.node_count)
        feature.append(np.where(leaf, 0, tree.feature))
        threshold.append(np.where(leaf, 0.0, tree.threshold))
        left.append(start + np.where(leaf, me, tree.children_left))
        right.append(start + np.where(leaf, me, tree.children_right))
        value = np.zeros((tree.node_count, classes))
        value[:, forest.classes_.astype(int)] = tree.value[:, 0] / tree.value[:, 0].sum(1, keepdims=True)
        share.append(value)
    return {
        "roots": first[:-1].astype(np.int64),
        "feature": np.concatenate(feature).astype(np.int32),
        "threshold": np.concatenate(threshold).astype(np.float64),
        "left": np.concatenate(left).astype(np.int32),
        "right": np.concatenate(right).astype(np.int32),
        "share": np.concatenate(share),
    }


def predict_trees(arrays: dict[str, NDArray[Any]], x: Float) -> Float:
    """``[items, classes]`` the mean over trees of the shares in the leaf that an item falls into."""
    x = x.astype(np.float32)  # scikit-learn compares single precision values with double precision thresholds
    feature, threshold, left, right = (arrays[name] for name in ("feature", "threshold", "left", "right"))
    leaf = left == np.arange(len(left))
    result = np.zeros((len(x), arrays["share"].shape[1]))
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
            result[start : start + BLOCK] += arrays["share"][node]
    return result / len(arrays["roots"])


class ForestMember(Member):
    """A forest on dense rows of a view.

    Options: ``trees``, ``leaf`` (fewest training items of a leaf) and ``extra`` (extremely randomised trees).
    """

    kind = "forest"

    @property
    def prediction(self) -> float:
        """Seconds that a tree takes for an item."""
        return 5e-7

    @abstractmethod
    def rows(self, view: View) -> Float:
        """``[items, columns]``."""

    def prepare(self, view: View, labelled: Labelled) -> None:
        """Decide on columns before the forest is grown, where the training items decide them."""

    def _fit(self, view: View, labelled: Labelled, chosen: dict[str, Any] | None) -> None:
        seed = seed_of(labelled, self.name) % 2**31
        train = labelled.train
        if len(train) > FOREST_ROWS:
            train = np.sort(np.random.default_rng(seed).choice(train, FOREST_ROWS, replace=False))
        self.prepare(view, labelled)
        make = ExtraTreesClassifier if self.options.get("extra") else RandomForestClassifier
        forest = make(self.options["trees"], min_samples_leaf=self.options.get("leaf", 1), random_state=seed)
        forest.fit(self.rows(view)[train], labelled.y[train])
        self.arrays |= tree_arrays(forest, labelled.classes)

    def predict_proba(self, view: View) -> Float:
        """The mean over trees; of a single column once for each value."""
        rows = self.rows(view)
        if rows.shape[1] > 1:
            return predict_trees(self.arrays, rows)
        values, place = np.unique(rows[:, 0], return_inverse=True)
        return predict_trees(self.arrays, values[:, None])[place]

    def cost(self, view: View, num_train: int) -> float:
        """Growing and prediction."""
        return self.options["trees"] * (1e-3 + 8e-6 * min(num_train, FOREST_ROWS) + self.prediction * view.num_items)


def dense(rows: Any) -> Float:
    """A dense array."""
    return rows if isinstance(rows, np.ndarray) else rows.toarray()
