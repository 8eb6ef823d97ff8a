"""Logistic and ridge regression on the attributes of nodes, of their neighbours, and diffused over the graph."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, logit, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge

from demonet.data.rows import Rows
from demonet.features.graph import neighbour_mean
from demonet.features.views import LARGE, WIDE, Float, Int, NodeView, View
from demonet.methods.base import register
from demonet.methods.model import TASKS, CoarseSettings, Labelled, Model
from demonet.methods.selection import ByColumn, int32_indices
from demonet.train.metrics import Task

FACTORS = (0.1, 10.0, 0.01, 100.0)  # of the middle C of the logistic regression, which is tried first
SCALES = (0.5, 0.0, 1.0, 0.25, 2.0)  # of the neighbours' mean beside a node's own attributes
COARSE, COARSE_ROWS = 2, 1000  # with the setting of this name: how many others of either are tried, on how many nodes
RESTARTS = (0.15, 0.05, 0.4)  # of the diffusion of attributes
TEMPERATURES = (1.0, 1.5, 2.2, 3.3, 5.0, 7.5)  # by which scores are multiplied: a strong penalty makes them too small
REACHES = (0.0, 0.4, 0.7, 0.9)  # of the smoothing of outputs
SMOOTHING_STEPS = 10
LINEAR_ROWS = 100_000  # training nodes of a large graph that a regression is fitted on, at most


MANY_OUTPUTS = 10  # classes or columns above which a regression takes longer in proportion
RIDGE = 10.0  # the penalty of a ridge regression at C = 1
SURE = 1e-3  # the least and the greatest probability of a label that all training items agree about


def smoothed(view: NodeView, outputs: Float, reach: float) -> Float:
    r""":math:`P \leftarrow r D^{-1} A P + (1 - r) P_0`, ten times; a node without neighbours keeps its own."""
    alone = np.diff(view.adjacency.indptr) == 0
    found = outputs
    for _ in range(SMOOTHING_STEPS if reach else 0):
        found = reach * neighbour_mean(view.adjacency, found) + (1 - reach) * outputs
        found[alone] = outputs[alone]
    return found


@register
class Linear(Model):
    """Multinomial logistic regression on a node's own attributes and its neighbours' mean; scale and C by validation.

    Of labels there is one regression each; of numbers it is a ridge regression, whose penalty is 10 / C. A strong
    penalty often orders classes best, but makes scores too small, so settings are compared by the log-loss of scores
    that were multiplied by the best of :data:`TEMPERATURES`. Log-degree and structural features stand beside
    attributes that are numbers. Outputs are smoothed over the graph (predict, then propagate) as far as
    validation asks for it.
    """

    name = "linear"
    kind = "linear"
    kinds = ("nodes",)
    tasks = TASKS
    needs_attributes = True
    defaults = CoarseSettings("this project")
    settings: CoarseSettings
    scales: ClassVar[tuple[float, ...]] = SCALES  # the first is tried first

    def _blocks(self, view: NodeView, scale: float) -> list[tuple[float, Rows]]:
        """The columns of all nodes in blocks, each with its factor."""
        blocks = [(1.0, view.own)] if scale == 0 else [(1.0, view.own), (scale, view.neighbours)]
        if view.facts["attributes"] == "numbers" and not sparse.issparse(view.own):
            blocks.append((1.0, view.structure))
        return blocks

    def _rows(self, view: NodeView, scale: float, items: Int) -> Rows:
        """The columns of some nodes, side by side."""
        parts = [factor * block[items] for factor, block in self._blocks(view, scale)]
        if not any(map(sparse.issparse, parts)):
            return np.hstack(parts)
        return int32_indices(sparse.csr_array(sparse.hstack(parts, format="csr")))

    def _learn(self, view: View, labelled: Labelled) -> None:
        middle = 100.0 if view.facts["attributes"] == "counts" else 1.0  # rows of unit length want a weak penalty
        setting = {"scale": self.scales[0], "strength": middle, "temperature": 1.0}
        setting |= self.chosen or {}
        reach = setting.pop("reach", 0.0)
        train, coarse = labelled.some(self.name, view.num_items, LINEAR_ROWS), self.settings.coarse
        few = train
        if coarse and len(labelled.val) and len(train) > COARSE_ROWS:
            few = np.random.default_rng(labelled.seed_of(self.name)).choice(train, COARSE_ROWS, replace=False)

        @lru_cache(maxsize=1)
        def rows(scale: float) -> tuple[Rows, Rows]:
            return self._rows(view, scale, few), self._rows(view, scale, labelled.val)

        best = self._regression(rows, few, labelled, setting)
        if len(labelled.val):  # C at the middle scale, then the scale at that C
            for name, values in (("strength", [f * middle for f in FACTORS]), ("scale", list(self.scales[1:]))):
                for value in values[: COARSE if coarse else None]:
                    found = self._regression(rows, few, labelled, setting | {name: value})
                    if found[0] < best[0]:
                        best = found
                setting = best[2]
        if len(few) < len(train):
            rows.cache_clear()
            few = train
            best = self._regression(rows, train, labelled, setting)
        self.arrays |= best[1]
        self.chosen = best[2] | {"reach": reach}
        if len(labelled.val):
            before = self._unsmoothed(view)
            losses = [labelled.loss(smoothed(view, before, r)[labelled.val], labelled.val) for r in REACHES]
            self.chosen["reach"] = REACHES[int(np.argmin(losses))]

    def _regression(
        self, rows: Callable[[float], tuple[Rows, Rows]], train: Int, labelled: Labelled, setting: dict[str, float]
    ) -> tuple[float, dict[str, Any], dict[str, float]]:
        """Validation loss, the coefficients, and the setting with the best temperature."""
        strength = setting["strength"]
        known, others = rows(setting["scale"])
        if setting["temperature"] > 1:  # where the penalty rules, scores grow with the number of items
            strength *= setting["items"] / labelled.total(train)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = coefficients(labelled.task, known, labelled.y[train], strength, labelled.weights(train))
        if not len(labelled.val):
            return 0.0, found, setting
        score = others @ found["coef"].T + found["intercept"]
        temperatures = TEMPERATURES[: 1 if labelled.task == "regress" else None]
        given = [linked(labelled.task, t * score, found["seen"], labelled.outputs) for t in temperatures]
        losses = [labelled.loss(outputs, labelled.val) for outputs in given]
        best = int(np.argmin(losses))
        return losses[best], found, setting | {"temperature": temperatures[best], "items": labelled.total(train)}

    def outputs(self, view: View) -> Float:
        """The linear scores, for probabilities through softmax or sigmoid; smoothed."""
        return smoothed(view, self._unsmoothed(view), self.chosen["reach"])

    def _unsmoothed(self, view: NodeView) -> Float:
        score, first = self.arrays["intercept"], 0
        for factor, block in self._blocks(view, self.chosen["scale"]):
            columns = slice(first, first + block.shape[1])
            score = score + factor * (block @ self.arrays["coef"][:, columns].T)
            first = columns.stop
        score = self.chosen["temperature"] * score
        return linked(self.facts["task"], score, self.arrays["seen"], self.facts["outputs"])

    def estimate(self, view: View, num_train: int) -> float:
        """Nine regressions; or five on few nodes, and another one."""
        num_train = min(num_train, LINEAR_ROWS) if view.num_items >= LARGE else num_train
        filled = getattr(view.own, "nnz", view.own.shape[0] * view.own.shape[1]) / view.num_items
        steps = 100 * (9 * num_train if not self.settings.coarse else 5 * min(num_train, COARSE_ROWS) + num_train)
        more = max(1.0, self.facts.get("outputs", 4) / MANY_OUTPUTS)
        return 0.5 + 2e-8 * more * steps * min(10 * filled, 2 * view.facts["columns"])

    def memory(self, view: View, num_train: int) -> float:
        """The rows of all nodes, twice."""
        entries = getattr(view.own, "nnz", view.own.shape[0] * view.own.shape[1])
        return super().memory(view, num_train) + 8.0 * 2 * (2 * entries + 20 * view.num_items)


def coefficients(
    task: Task, rows: Rows, y: NDArray[Any], strength: float, weight: Float | None = None
) -> dict[str, Any]:
    """``coef`` and ``intercept`` of a regression, and the outputs that it has ``seen``.

    Args:
        task: What the targets are.
        rows: One row an item.
        y: ``[items]`` classes; or ``[items, outputs]``, of which every column has a regression on its known entries.
        strength: C.
        weight: ``[items]``; None if all are 1.
    """
    if task != "classify":
        base = Ridge(RIDGE / strength) if task == "regress" else LogisticRegression(C=strength, max_iter=100)
        models, seen = ByColumn(base).fit(rows, y, weight).models_, np.arange(y.shape[1])
    elif len(seen := np.unique(y)) > 1:
        model = LogisticRegression(C=strength, max_iter=100).fit(rows, y, weight)
        return {"coef": model.coef_, "intercept": model.intercept_, "seen": seen}
    else:
        models = []
    coef, intercept = np.zeros((len(seen), rows.shape[1])), np.zeros(len(seen))
    for column, model in enumerate(models):
        if hasattr(model, "coef_"):
            coef[column], intercept[column] = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
        else:  # all entries are the same
            value = float(np.ravel(model.constant_)[0])
            intercept[column] = logit(np.clip(value, SURE, 1 - SURE)) if task == "multilabel" else value
    return {"coef": coef, "intercept": intercept, "seen": seen}


def linked(task: Task, score: Float, seen: Int, outputs: int) -> Float:
    """``[items, outputs]`` from scores: softmax over the ``seen`` classes, sigmoids of labels, numbers as they are."""
    if task == "classify":
        if len(seen) > 1 and score.shape[1] == 1:  # of two classes, the regression scores the second
            score = np.hstack([np.zeros_like(score), score])
        return spread(score, seen, outputs)
    return expit(score) if task == "multilabel" else score


def spread(score: Float, seen: Int, classes: int) -> Float:
    """``[items, classes]`` the softmax of scores of the classes that were seen; the others have probability 0."""
    result = np.zeros((len(score), classes))
    result[:, seen] = softmax(score, axis=1)
    return result


@register
class OwnLinear(Linear):
    """The same regression on a node's own attributes alone, for graphs whose edges say nothing about classes."""

    name = "linear-own"
    scales = (0.0,)

    def _blocks(self, view: NodeView, scale: float) -> list[tuple[float, Rows]]:
        return [(1.0, view.own)]

    def estimate(self, view: View, num_train: int) -> float:
        """A tenth of the regression on neighbours, too."""
        return 0.5 + 0.1 * (super().estimate(view, num_train) - 0.5)


@register
class DiffusedLinear(Linear):
    """The same regression on attributes that were diffused over the graph; its ``scale`` is the restart."""

    name = "linear-diffused"
    scales = RESTARTS

    def _blocks(self, view: NodeView, scale: float) -> list[tuple[float, Rows]]:
        return [(1.0, view.diffused(scale))]

    def estimate(self, view: View, num_train: int) -> float:
        """Three diffusions and seven regressions; with ``coarse``, one of each."""
        num_train = min(num_train, LINEAR_ROWS) if view.num_items >= LARGE else num_train
        width, (walks, fits) = min(WIDE, view.facts["columns"]), (1, 1) if self.settings.coarse else (3, 7)
        return 0.5 + walks * 2e-8 * view.adjacency.nnz * width + fits * 4e-7 * num_train * width

    def memory(self, view: View, num_train: int) -> float:
        """Attributes before, during and after a diffusion."""
        width = min(WIDE, view.facts["columns"])
        return Model.memory(self, view, num_train) + 8.0 * 5 * view.num_items * width
