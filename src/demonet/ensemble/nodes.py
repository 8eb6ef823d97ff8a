"""Members that classify the nodes of a graph: kernels and forests on degree and structure, a linear model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from demonet.data.rows import Rows
from demonet.ensemble.forest import ForestMember, dense
from demonet.ensemble.member import Labelled, Member, seed_of, some_of
from demonet.ensemble.ridge import RidgeMember, fit_ordered, ordered_link
from demonet.ensemble.selection import log_losses
from demonet.features.graph import neighbour_mean
from demonet.features.views import LARGE, WIDE, Float, Int, NodeView, View

LENGTHS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
DEGREE_LENGTH = 0.3  # of the degree term beside another one, in deviations of log-degree
FACTORS = (0.1, 10.0, 0.01, 100.0)  # of the middle C of the logistic regression, which is tried first
SCALES = (0.5, 0.0, 1.0, 0.25, 2.0)  # of the neighbours' mean beside a node's own attributes
COARSE, COARSE_ROWS = 2, 1000  # with the option of this name: how many others of either are tried, on how many nodes
RESTARTS = (0.15, 0.05, 0.4)  # of the diffusion of attributes
TEMPERATURES = (1.0, 1.5, 2.2, 3.3, 5.0, 7.5)  # by which scores are multiplied: a strong penalty makes them timid
REACHES = (0.0, 0.4, 0.7, 0.9)  # of the smoothing of probabilities
SMOOTHING_STEPS = 10
FOREST_COLUMNS = 256  # attributes up to which a forest reads them
LINEAR_ROWS = 100_000  # training nodes of a large graph that a regression is fitted on, at most


def classes_by_degree(view: View, labelled: Labelled) -> tuple[Int, float]:
    """The classes in the order of their mean log-degree in training, and the share of variance that they explain."""
    value, y = view.raw_log_degree[labelled.train], labelled.y[labelled.train]
    count = np.bincount(y, minlength=labelled.classes)
    mean = np.where(count > 0, np.bincount(y, value, minlength=labelled.classes) / np.maximum(count, 1), value.mean())
    explained = float(mean[y].var() / max(value.var(), 1e-12))
    return np.argsort(mean, kind="stable"), explained


class NodeKernel(RidgeMember):
    """A kernel on log-degree and structure.

    The option ``kernel`` says which, l being the length that is chosen:

    - ``"degree"``: RBF of log-degree.
    - ``"structure"``: half an RBF of log-degree, half one of all structural features.
    - ``"ranks"``: RBF of the ranks of structural features.
    - ``"demo"``: half an RBF of log-degree, half DEMO-Net's product: an RBF of log-degree (which degrees share) times
      an RBF of what the neighbourhood looks like, as means over neighbours of radial functions of their log-degree.
    - ``"own"``: RBF of a node's own attributes, which are numbers.
    """

    entries = 2**18  # 2 MB: they stay in a processor's cache, and nothing has to be kept between blocks

    def rows(self, view: View) -> dict[str, Float]:
        """Log-degree, and the columns of the kernel."""
        beside = {"degree": "log_degree", "structure": "structure", "ranks": "ranks", "demo": "radial", "own": "own"}
        return {"degree": view.log_degree, "other": getattr(view, beside[self.options["kernel"]])}

    def settings(self) -> list[float]:
        """The lengths."""
        return list(LENGTHS)

    def grams(self, left: dict[str, Float], right: dict[str, Float], settings: list[float]) -> Iterator[Float]:
        """The kernel at each length."""
        kernel = self.options["kernel"]
        other = cdist(left["other"], right["other"], "sqeuclidean")
        if kernel != "demo":  # radial functions are scaled to variance one all together
            other /= left["other"].shape[1]
        if kernel in ("degree", "ranks", "own"):
            yield from (np.exp(-other / (2 * length**2)) for length in settings)
            return
        degree = cdist(left["degree"], right["degree"], "sqeuclidean")
        near = 0.5 * np.exp(-degree / (2 * DEGREE_LENGTH**2))
        shared = 0.5 * np.exp(-degree / 2) if kernel == "demo" else 0.5
        for length in settings:
            yield near + shared * np.exp(-other / (2 * length**2))

    def predict_proba(self, view: View) -> Float:
        """The regression's outputs through the fitted link; of the bare degree once for each degree."""
        if self.options["kernel"] != "degree":
            return super().predict_proba(view)
        degrees, place = np.unique(view.log_degree[:, 0], return_inverse=True)
        return self.probabilities({"degree": degrees[:, None], "other": degrees[:, None]})[place]

    def distinct(self, view: View) -> int:
        """All items; of the bare degree, so few that they do not count."""
        return 0 if self.options["kernel"] == "degree" else view.num_items

    def order(self, view: View, labelled: Labelled) -> Int:
        """By mean log-degree."""
        return classes_by_degree(view, labelled)[0]


class OrderedLogit(Member):
    """Proportional odds on log-degree: as many cuts as classes but one, in the order of their mean log-degree."""

    kind = "linear"

    def _fit(self, view: View, labelled: Labelled, chosen: dict[str, Any] | None) -> None:
        order = classes_by_degree(view, labelled)[0]
        place = np.argsort(order)[labelled.y[labelled.train]]
        fit_ordered(self, view.log_degree[labelled.train, 0], place, order)

    def predict_proba(self, view: View) -> Float:
        """The cumulative logit."""
        return np.exp(ordered_link(self).log_probabilities(view.log_degree))

    def cost(self, view: View, num_train: int) -> float:
        """One small optimisation."""
        return 0.05 + 1e-5 * num_train * self.facts.get("classes", 4)


class NodeForest(ForestMember):
    """A forest on columns of a view (option ``columns``).

    They are the bare degree, structural features, a node's ``own`` attributes, or all of them with the neighbours'.
    """

    def rows(self, view: View) -> Float:
        """The columns."""
        if self.options["columns"] == "degree":
            return view.log_degree
        if self.options["columns"] == "structure":
            return np.hstack([view.log_degree, view.structure])
        if self.options["columns"] == "own":
            return dense(view.own)
        return np.hstack([view.log_degree, view.structure, dense(view.own), dense(view.neighbours)])

    @property
    def prediction(self) -> float:
        """Of the bare degree, a prediction is made once for each degree."""
        return 0.0 if self.options["columns"] == "degree" else super().prediction

    def memory(self, view: View, num_train: int) -> float:
        """The columns of all nodes, in double and single precision."""
        attributes = 2 * view.facts["columns"] if self.options["columns"] == "attributes" else 0
        return super().memory(view, num_train) + 12.0 * view.num_items * (25 + attributes)


def smoothed(view: NodeView, probability: Float, reach: float) -> Float:
    r""":math:`P \leftarrow r D^{-1} A P + (1 - r) P_0`, ten times; a node without neighbours keeps its own."""
    alone = np.diff(view.adjacency.indptr) == 0
    found = probability
    for _ in range(SMOOTHING_STEPS if reach else 0):
        found = reach * neighbour_mean(view.adjacency, found) + (1 - reach) * probability
        found[alone] = probability[alone]
    return found


class LinearMember(Member):
    """Multinomial logistic regression on a node's own attributes and its neighbours' mean; scale and C by validation.

    A strong penalty often orders classes best, but makes scores too small, so settings are compared by the log-loss of
    scores that were multiplied by the best of :data:`TEMPERATURES`. Log-degree and structural features stand beside
    attributes that are numbers. Probabilities are smoothed over the graph (predict, then propagate) as far as
    validation asks for it. With the option ``coarse`` fewer values of scale and C are tried, on fewer nodes.
    """

    kind = "linear"
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
        rows = sparse.hstack(parts, format="csr")
        rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)  # as solvers want them
        return rows

    def _fit(self, view: View, labelled: Labelled, chosen: dict[str, Any] | None) -> None:
        middle = 100.0 if view.facts["attributes"] == "counts" else 1.0  # rows of unit length want a weak penalty
        setting = {"scale": self.scales[0], "strength": middle, "temperature": 1.0}
        setting |= chosen or {}
        reach = setting.pop("reach", 0.0)
        train, coarse = some_of(labelled, self.name, view.num_items, LINEAR_ROWS), bool(self.options.get("coarse"))
        few = train
        if coarse and len(labelled.val) and len(train) > COARSE_ROWS:
            few = np.random.default_rng(seed_of(labelled, self.name)).choice(train, COARSE_ROWS, replace=False)

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
        self.facts["chosen"] = setting | {"reach": reach}
        if len(labelled.val):
            before, y = self._unsmoothed(view), labelled.y[labelled.val]
            losses = [log_losses(smoothed(view, before, r)[labelled.val], y).mean() for r in REACHES]
            self.facts["chosen"]["reach"] = REACHES[int(np.argmin(losses))]

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
        score = _two(others @ model.coef_.T + model.intercept_)
        given = [_spread(t * score, model.classes_, labelled.classes) for t in TEMPERATURES]
        losses = [float(log_losses(p, y[val]).mean()) for p in given]
        best = int(np.argmin(losses))
        return losses[best], model, setting | {"temperature": TEMPERATURES[best], "items": len(train)}

    def predict_proba(self, view: View) -> Float:
        """The softmax of the linear scores, smoothed."""
        return smoothed(view, self._unsmoothed(view), self.facts["chosen"]["reach"])

    def _unsmoothed(self, view: NodeView) -> Float:
        chosen = self.facts["chosen"]
        score, first = self.arrays["intercept"], 0
        for factor, block in self._blocks(view, chosen["scale"]):
            columns = slice(first, first + block.shape[1])
            score = score + factor * (block @ self.arrays["coef"][:, columns].T)
            first = columns.stop
        return _spread(chosen["temperature"] * _two(score), self.arrays["seen"], self.facts["classes"])

    def cost(self, view: View, num_train: int) -> float:
        """Nine regressions; or five on few nodes, and another one."""
        num_train = min(num_train, LINEAR_ROWS) if view.num_items >= LARGE else num_train
        filled = getattr(view.own, "nnz", view.own.shape[0] * view.own.shape[1]) / view.num_items
        steps = 100 * (9 * num_train if not self.options.get("coarse") else 5 * min(num_train, COARSE_ROWS) + num_train)
        return 0.5 + 2e-8 * steps * min(10 * filled, 2 * view.facts["columns"])

    def memory(self, view: View, num_train: int) -> float:
        """The rows of all nodes, twice."""
        entries = getattr(view.own, "nnz", view.own.shape[0] * view.own.shape[1])
        return super().memory(view, num_train) + 8.0 * 2 * (2 * entries + 20 * view.num_items)


def _two(score: Float) -> Float:
    """``[items, seen classes]``: of two classes, the regression scores the second."""
    return np.hstack([np.zeros_like(score), score]) if score.shape[1] == 1 else score


def _spread(score: Float, seen: Int, classes: int) -> Float:
    """``[items, classes]`` the softmax of scores of the classes that were seen; the others have probability 0."""
    result = np.zeros((len(score), classes))
    result[:, seen] = softmax(score, axis=1)
    return result


class OwnLinear(LinearMember):
    """The same regression on a node's own attributes alone, for graphs whose edges say nothing about classes."""

    scales = (0.0,)

    def _blocks(self, view: NodeView, scale: float) -> list[tuple[float, Rows]]:
        return [(1.0, view.own)]

    def cost(self, view: View, num_train: int) -> float:
        """That of the regression on neighbours, too; with ``coarse``, a tenth of it."""
        found = super().cost(view, num_train)
        return 0.5 + 0.1 * (found - 0.5) if self.options.get("coarse") else found


class DiffusedLinear(LinearMember):
    """The same regression on attributes that were diffused over the graph; its ``scale`` is the restart."""

    scales = RESTARTS

    def _blocks(self, view: NodeView, scale: float) -> list[tuple[float, Rows]]:
        return [(1.0, view.diffused(scale))]

    def cost(self, view: View, num_train: int) -> float:
        """Three diffusions and seven regressions; with ``coarse``, as they take."""
        num_train = min(num_train, LINEAR_ROWS) if view.num_items >= LARGE else num_train
        width = min(WIDE, view.facts["columns"])
        if self.options.get("coarse"):
            return 0.5 + 2e-9 * 10 * view.adjacency.nnz * width + 100 * 4e-9 * num_train * width
        return 0.5 + 3e-8 * 10 * view.adjacency.nnz * width + 7 * 100 * 4e-9 * num_train * width

    def memory(self, view: View, num_train: int) -> float:
        """Attributes before, during and after a diffusion."""
        width = min(WIDE, view.facts["columns"])
        return Member.memory(self, view, num_train) + 8.0 * 5 * view.num_items * width
