"""Logistic regression on the attributes of nodes, of their neighbours, and diffused over the graph."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar

import numpy as np
from scipy import sparse
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from demonet.data.rows import Rows
from demonet.features.graph import neighbour_mean
from demonet.features.views import LARGE, WIDE, Float, Int, NodeView, View
from demonet.methods.base import register
from demonet.methods.model import CoarseSettings, Labelled, Model
from demonet.methods.selection import int32_indices, log_losses

FACTORS = (0.1, 10.0, 0.01, 100.0)  # of the middle C of the logistic regression, which is tried first
SCALES = (0.5, 0.0, 1.0, 0.25, 2.0)  # of the neighbours' mean beside a node's own attributes
COARSE, COARSE_ROWS = 2, 1000  # with the setting of this name: how many others of either are tried, on how many nodes
RESTARTS = (0.15, 0.05, 0.4)  # of the diffusion of attributes
TEMPERATURES = (1.0, 1.5, 2.2, 3.3, 5.0, 7.5)  # by which scores are multiplied: a strong penalty makes them too small
REACHES = (0.0, 0.4, 0.7, 0.9)  # of the smoothing of probabilities
SMOOTHING_STEPS = 10
LINEAR_ROWS = 100_000  # training nodes of a large graph that a regression is fitted on, at most


def smoothed(view: NodeView, probability: Float, reach: float) -> Float:
    r""":math:`P \leftarrow r D^{-1} A P + (1 - r) P_0`, ten times; a node without neighbours keeps its own."""
    alone = np.diff(view.adjacency.indptr) == 0
    found = probability
    for _ in range(SMOOTHING_STEPS if reach else 0):
        found = reach * neighbour_mean(view.adjacency, found) + (1 - reach) * probability
        found[alone] = probability[alone]
    return found


@register
class Linear(Model):
    """Multinomial logistic regression on a node's own attributes and its neighbours' mean; scale and C by validation.

    A strong penalty often orders classes best, but makes scores too small, so settings are compared by the log-loss of
    scores that were multiplied by the best of :data:`TEMPERATURES`. Log-degree and structural features stand beside
    attributes that are numbers. Probabilities are smoothed over the graph (predict, then propagate) as far as
    validation asks for it.
    """

    name = "linear"
    kind = "linear"
    kinds = ("nodes",)
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
        _, model, setting = best
        self.arrays |= {"coef": model.coef_, "intercept": model.intercept_, "seen": model.classes_.astype(np.int64)}
        self.chosen = setting | {"reach": reach}
        if len(labelled.val):
            before, y = self._unsmoothed(view), labelled.y[labelled.val]
            losses = [log_losses(smoothed(view, before, r)[labelled.val], y).mean() for r in REACHES]
            self.chosen["reach"] = REACHES[int(np.argmin(losses))]

    def _regression(
        self, rows: Callable[[float], tuple[Rows, Rows]], train: Int, labelled: Labelled, setting: dict[str, float]
    ) -> tuple[float, LogisticRegression, dict[str, float]]:
        """Validation loss, the fitted regression, and its setting with the best temperature."""
        y, val, strength = labelled.y, labelled.val, setting["strength"]
        known, others = rows(setting["scale"])
        if setting["temperature"] > 1:  # where the penalty rules, scores grow with the number of items
            strength *= setting["items"] / len(train)
        model = LogisticRegression(C=strength, max_iter=100)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(known, y[train])
        if not len(val):
            return 0.0, model, setting
        score = two_columns(others @ model.coef_.T + model.intercept_)
        given = [spread(t * score, model.classes_, labelled.classes) for t in TEMPERATURES]
        losses = [float(log_losses(p, y[val]).mean()) for p in given]
        best = int(np.argmin(losses))
        return losses[best], model, setting | {"temperature": TEMPERATURES[best], "items": len(train)}

    def outputs(self, view: View) -> Float:
        """The softmax of the linear scores, smoothed."""
        return smoothed(view, self._unsmoothed(view), self.chosen["reach"])

    def _unsmoothed(self, view: NodeView) -> Float:
        score, first = self.arrays["intercept"], 0
        for factor, block in self._blocks(view, self.chosen["scale"]):
            columns = slice(first, first + block.shape[1])
            score = score + factor * (block @ self.arrays["coef"][:, columns].T)
            first = columns.stop
        return spread(self.chosen["temperature"] * two_columns(score), self.arrays["seen"], self.facts["classes"])

    def estimate(self, view: View, num_train: int) -> float:
        """Nine regressions; or five on few nodes, and another one."""
        num_train = min(num_train, LINEAR_ROWS) if view.num_items >= LARGE else num_train
        filled = getattr(view.own, "nnz", view.own.shape[0] * view.own.shape[1]) / view.num_items
        steps = 100 * (9 * num_train if not self.settings.coarse else 5 * min(num_train, COARSE_ROWS) + num_train)
        return 0.5 + 2e-8 * steps * min(10 * filled, 2 * view.facts["columns"])

    def memory(self, view: View, num_train: int) -> float:
        """The rows of all nodes, twice."""
        entries = getattr(view.own, "nnz", view.own.shape[0] * view.own.shape[1])
        return super().memory(view, num_train) + 8.0 * 2 * (2 * entries + 20 * view.num_items)


def two_columns(score: Float) -> Float:
    """``[items, seen classes]``: of two classes, the regression scores the second."""
    return np.hstack([np.zeros_like(score), score]) if score.shape[1] == 1 else score


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
        """That of the regression on neighbours, too; with ``coarse``, a tenth of it."""
        found = super().estimate(view, num_train)
        return 0.5 + 0.1 * (found - 0.5) if self.settings.coarse else found


@register
class DiffusedLinear(Linear):
    """The same regression on attributes that were diffused over the graph; its ``scale`` is the restart."""

    name = "linear-diffused"
    scales = RESTARTS

    def _blocks(self, view: NodeView, scale: float) -> list[tuple[float, Rows]]:
        return [(1.0, view.diffused(scale))]

    def estimate(self, view: View, num_train: int) -> float:
        """Three diffusions and seven regressions; with ``coarse``, as they take."""
        num_train = min(num_train, LINEAR_ROWS) if view.num_items >= LARGE else num_train
        width = min(WIDE, view.facts["columns"])
        if self.settings.coarse:
            return 0.5 + 2e-9 * 10 * view.adjacency.nnz * width + 100 * 4e-9 * num_train * width
        return 0.5 + 3e-8 * 10 * view.adjacency.nnz * width + 7 * 100 * 4e-9 * num_train * width

    def memory(self, view: View, num_train: int) -> float:
        """Attributes before, during and after a diffusion."""
        width = min(WIDE, view.facts["columns"])
        return Model.memory(self, view, num_train) + 8.0 * 5 * view.num_items * width
