"""``boosted-trees``: gradient boosting on attributes, neighbours' mean attributes and structure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from demonet.features.views import WIDE, Float, Int, View
from demonet.methods.base import Settings, at_least, register
from demonet.methods.cost import Cost
from demonet.methods.forest import node_columns, predict_trees, stacked
from demonet.methods.linear import SURE, linked
from demonet.methods.model import TASKS, Labelled, Model
from demonet.methods.selection import Choice, item_losses
from demonet.methods.wl_models import common_colours, graph_columns
from demonet.options import Effort
from demonet.schema import Array, check_arrays

ROUNDS: dict[Effort, int] = {"quick": 40, "standard": 100, "best": 200}
TREES = 1200  # rounds times outputs, at most
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
    Classes are not weighted by the metric: probabilities stay those of the data, unless the problem has weights.
    Every label and every number is boosted on its own, on its known entries.
    """

    name = "boosted-trees"
    kind = "boosting"
    in_tables = True
    tasks = TASKS
    cost = Cost(0.5, 0.05)
    defaults = BoostedSettings("Ke et al., NeurIPS'17 (LightGBM), as in scikit-learn")
    settings: BoostedSettings

    @classmethod
    def candidates(cls, view: View, labelled: Labelled, effort: Effort) -> list[Self]:
        """One; with the effort ``"quick"``, where it takes little time."""
        found = cls(rounds=ROUNDS[effort]).for_problem(labelled)
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
        train, rows = labelled.some(self.name, view.num_items, ROWS), self._rows(view)
        if labelled.task == "classify":
            fits = [(train, labelled.y[train], labelled.judges(train))]
        else:  # of every column the known entries
            known = ~np.isnan(labelled.y)
            parts = [(train[known[train, c]], labelled.val[known[labelled.val, c]]) for c in range(labelled.outputs)]
            fits = [(some, labelled.y[some, c], val) for c, (some, val) in enumerate(parts)]
        self.arrays["seen"] = np.unique(fits[0][1]) if labelled.task == "classify" else np.arange(labelled.outputs)
        kept = [None] * len(fits) if self.chosen is None else self.chosen["rounds"]
        found = [self._boosted(labelled, column, rows, *fit, kept[column]) for column, fit in enumerate(fits)]
        self.arrays |= _side_by_side([trees for trees, _, _ in found])
        if self.chosen is None and labelled.task != "classify" and len(labelled.val):
            self.judged = self._outputs(rows[labelled.val])
            for column, (_, _, others) in enumerate(found):
                if others is not None:
                    self.judged[known[labelled.val, column], column] = others
        self.chosen = {"rounds": [rounds for _, rounds, _ in found]}

    def check_chosen(self, chosen: Any) -> None:
        """No more rounds than a fit without a choice tries."""
        super().check_chosen(chosen)
        check_arrays(chosen, {"rounds": Array("i", ("columns",), 1, self.settings.rounds + 1)})

    def _boosted(
        self,
        labelled: Labelled,
        column: int,
        rows: Float,
        train: Int,
        target: NDArray[Any],
        val: Int,
        kept: int | None,
    ) -> tuple[dict[str, NDArray[Any]], int, Float | None]:
        """The trees of all classes or of one column, and the number of rounds: ``kept``, or chosen on ``val``.

        Of one column also the outputs of ``val``, each by the number that is best without it.
        """
        values = np.unique(target)
        if len(values) == 1:  # there is nothing to learn
            value = {"classify": 0.0, "regress": values[0], "multilabel": logit(np.clip(values[0], SURE, 1 - SURE))}
            return {"baseline": np.array([value[labelled.task]]), "roots": np.zeros((1, 0), np.int64)}, 1, None
        scores = 1 if labelled.task == "regress" else len(values)
        make = HistGradientBoostingRegressor if labelled.task == "regress" else HistGradientBoostingClassifier
        model = make(
            max_iter=min(self.settings.rounds, max(1, TREES // max(scores, labelled.outputs)))
            if kept is None
            else kept,
            learning_rate=self.settings.rate,
            max_leaf_nodes=self.settings.leaves,
            min_samples_leaf=max(2, min(20, len(train) // 20)),
            l2_regularization=1.0,
            early_stopping=False,
            random_state=labelled.seed_of(self.name) % 2**31,
        )
        model.fit(rows[train], target, labelled.weights(train))
        if kept is not None:
            return _tree_arrays(model, kept), kept, None
        if not len(val):
            kept = -(-model.n_iter_ // 3)
            return _tree_arrays(model, kept), kept, None
        y, choice, weight = labelled.y[val], Choice(len(val), labelled.seed), labelled.weights(val)
        y = y if labelled.task == "classify" else y[:, [column]]
        for rounds, score in enumerate(_staged(model, rows[val]), 1):
            outputs = linked(labelled.task, score, values, labelled.outputs)
            choice.offer(rounds, outputs[:, 0], item_losses(labelled.task, outputs, y, weight))
        return _tree_arrays(model, choice.best), choice.best, choice.outputs

    def outputs(self, view: View) -> Float:
        """The sums over trees, for probabilities through softmax or sigmoid."""
        return self._outputs(self._rows(view))

    def some_outputs(self, view: View, rows: Int) -> Float:
        """Down the trees with these rows alone."""
        return self._outputs(self._rows(view)[rows])

    def _outputs(self, rows: Float) -> Float:
        columns = []
        for baseline, roots in zip(self.arrays["baseline"], self.arrays["roots"], strict=True):
            own = roots[roots >= 0]
            trees = predict_trees(self.arrays | {"roots": own}, rows) if len(own) else np.zeros((len(rows), 1))
            columns.append(baseline + len(own) * trees)
        return linked(self.facts["task"], np.hstack(columns), self.arrays["seen"], self.facts["outputs"])

    def _columns(self, view: View) -> int:
        attributes = view.facts["columns"]
        return COLOURS + 17 if view.family == "graphs" else 25 + 2 * (attributes if attributes <= WIDE else AXES)

    def estimate(self, view: View, num_train: int) -> float:
        """Histograms of all columns, and walks of all items down the trees."""
        columns = self.facts.get("outputs", 4)
        if columns == 2 and self.facts.get("task", "classify") == "classify":
            columns = 1
        trees = min(TREES, self.settings.rounds * columns)
        return trees * (1.5e-3 + 2.7e-8 * min(num_train, ROWS) * self._columns(view) + 2e-7 * view.num_items)

    def memory(self, view: View, num_train: int) -> float:
        """The columns of all items, twice."""
        return super().memory(view, num_train) + 16.0 * view.num_items * self._columns(view)


def _staged(model: Any, rows: Float) -> Iterator[Float]:
    """``[items, scores]`` after every round."""
    staged = getattr(model, "staged_decision_function", None) or model.staged_predict
    return (score.reshape(len(rows), -1) for score in staged(rows))


def _tree_arrays(model: Any, rounds: int) -> dict[str, NDArray[Any]]:
    """The nodes of all trees, one after the other, and ``[scores, rounds]`` where each tree begins."""
    trees = [tree.nodes for each in model._predictors[:rounds] for tree in each]
    names = ("feature_idx", "num_threshold", "left", "right")
    parts = [[*(tree[name] for name in names), tree["is_leaf"] == 1, tree["value"][:, None]] for tree in trees]
    arrays = stacked(parts)
    baseline = np.ravel(model._baseline_prediction).astype(np.float64)
    return arrays | {"baseline": baseline, "roots": arrays["roots"].reshape(rounds, -1).T}


def _side_by_side(found: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """The trees of several fits in one set of arrays; ``roots`` of fewer rounds are filled up with -1."""
    rounds = max(each["roots"].shape[1] for each in found)
    parts: dict[str, list[NDArray[Any]]] = {}
    first = 0
    for each in found:
        for name, array in each.items():
            if name == "roots":
                array = np.pad(array + first, ((0, 0), (0, rounds - array.shape[1])), constant_values=-1)
            elif name in ("left", "right"):
                array = array + np.int32(first)
            parts.setdefault(name, []).append(array)
        first += len(each.get("left", ()))
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}
