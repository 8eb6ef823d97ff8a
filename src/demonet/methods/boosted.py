"""``boosted-trees``: gradient boosting on attributes, neighbours' mean attributes and structure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from demonet.features.views import WIDE, Float, Int, View
from demonet.methods.base import Settings, at_least, register
from demonet.methods.cost import Cost
from demonet.methods.forest import node_columns, predict_trees, stacked
from demonet.methods.linear import spread, two_columns
from demonet.methods.model import Labelled, Model
from demonet.methods.selection import log_losses
from demonet.methods.wl_models import common_colours, graph_columns
from demonet.options import Effort

ROUNDS: dict[Effort, int] = {"quick": 40, "standard": 100, "best": 200}
TREES = 1200  # rounds times classes, at most
ROWS = 100_000  # training nodes of a large graph, at most
COLOURS = 64  # columns with counts of colours, at most
AXES, RESTART = 32, 0.15  # leading axes of wide attributes, and the restart of their diffusion
QUICK = 2.0  # seconds that a fit may take with the effort "quick"


@dataclass(frozen=True)
class BoostedSettings(Settings):
    """``rounds`` at most, of which validation chooses; the learning ``rate``; ``leaves`` of a tree at most."""

    rounds: int = at_least(1, 100)
    rate: float = 0.1
    leaves: int = at_least(2, 15)


@register
class BoostedTrees(Model):
    """Histogram-based gradient boosting; the number of rounds is selected on validation.

    A node has its own attributes, the mean of its neighbours' and structural features. Of wide attributes it has the
    leading axes: its own, and diffused over the graph. A graph has counts of its commonest colours, and descriptors.
    Classes are not weighted: probabilities stay those of the data, and the weights of an ensemble follow the metric.
    """

    name = "boosted-trees"
    kind = "boosting"
    in_tables = True
    cost = Cost(0.5, 0.05)
    defaults = BoostedSettings("Ke et al., NeurIPS'17 (LightGBM), as in scikit-learn")
    settings: BoostedSettings

    @classmethod
    def candidates(cls, view: View, labelled: Labelled, effort: Effort) -> list[Self]:
        """One; with the effort ``"quick"``, where it takes little time."""
        found = cls(rounds=ROUNDS[effort])
        found.facts["classes"] = labelled.classes
        return [found] if effort != "quick" or found.estimate(view, len(labelled.train)) <= QUICK else []

    def _rows(self, view: View) -> Float:
        if view.family == "graphs":
            return graph_columns(view, self.arrays["ids"])
        if view.facts["columns"] <= WIDE:
            return node_columns(view, attributes=bool(view.facts["attributes"]))
        axes = view.arrays["attributes.axes"][:, :AXES]
        return np.hstack([node_columns(view, attributes=False), view.own @ axes, view.diffused(RESTART)[:, :AXES]])

    def _learn(self, view: View, labelled: Labelled) -> None:
        if view.family == "graphs":
            self.arrays["ids"] = common_colours(view, labelled.train, COLOURS)
        train, y = labelled.some(self.name, view.num_items, ROWS), labelled.y
        seen, rows = np.unique(y[train]), self._rows(view)
        rounds = min(self.settings.rounds, max(1, TREES // len(seen)))
        self.arrays |= {"seen": seen, "baseline": np.zeros(1), "roots": np.zeros((1, 0), np.int64)}
        if len(seen) == 1:  # there is nothing to learn
            return
        model = HistGradientBoostingClassifier(
            max_iter=rounds if self.chosen is None else self.chosen["rounds"],
            learning_rate=self.settings.rate,
            max_leaf_nodes=self.settings.leaves,
            min_samples_leaf=max(2, min(20, len(train) // 20)),
            l2_regularization=1.0,
            early_stopping=False,
            random_state=labelled.seed_of(self.name) % 2**31,
        )
        model.fit(rows[train], y[train])
        val = labelled.val[np.isin(y[labelled.val], seen)]
        if self.chosen is None:
            self.chosen = {"rounds": self._best_rounds(model, rows[val], y[val], labelled.classes)}
        self.arrays |= _tree_arrays(model, self.chosen["rounds"])

    def _best_rounds(self, model: Any, rows: Float, y: Int, classes: int) -> int:
        """After how many rounds the log-loss on validation is lowest; without validation items, a third of them."""
        if not len(y):
            return -(-model.n_iter_ // 3)
        scores = (score.reshape(len(y), -1) for score in model.staged_decision_function(rows))
        losses = [log_losses(spread(two_columns(score), model.classes_, classes), y).mean() for score in scores]
        return int(np.argmin(losses)) + 1

    def outputs(self, view: View) -> Float:
        """The softmax of the sums over trees."""
        rows, columns = self._rows(view), []
        for baseline, roots in zip(self.arrays["baseline"], self.arrays["roots"], strict=True):
            trees = predict_trees(self.arrays | {"roots": roots}, rows) if len(roots) else np.zeros((len(rows), 1))
            columns.append(baseline + len(roots) * trees)
        score = np.hstack(columns)
        seen = self.arrays["seen"]
        return spread(two_columns(score) if len(seen) > 1 else score, seen, self.facts["classes"])

    def _columns(self, view: View) -> int:
        attributes = view.facts["columns"]
        return COLOURS + 17 if view.family == "graphs" else 25 + 2 * (attributes if attributes <= WIDE else AXES)

    def estimate(self, view: View, num_train: int) -> float:
        """Histograms of all columns, and walks of all items down the trees."""
        classes = self.facts.get("classes", 4)
        trees = min(TREES, self.settings.rounds * (classes if classes > 2 else 1))
        return trees * (1.5e-3 + 2.7e-8 * min(num_train, ROWS) * self._columns(view) + 2e-7 * view.num_items)

    def memory(self, view: View, num_train: int) -> float:
        """The columns of all items, twice."""
        return super().memory(view, num_train) + 16.0 * view.num_items * self._columns(view)


def _tree_arrays(model: Any, rounds: int) -> dict[str, NDArray[Any]]:
    """The nodes of all trees, one after the other, and ``[classes, rounds]`` where each tree begins."""
    trees = [tree.nodes for each in model._predictors[:rounds] for tree in each]
    names = ("feature_idx", "num_threshold", "left", "right")
    parts = [[*(tree[name] for name in names), tree["is_leaf"] == 1, tree["value"][:, None]] for tree in trees]
    arrays = stacked(parts)
    baseline = np.ravel(model._baseline_prediction).astype(np.float64)
    return arrays | {"baseline": baseline, "roots": arrays["roots"].reshape(rounds, -1).T}
