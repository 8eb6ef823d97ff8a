r"""Kernel ridge regression on class targets, settings by closed-form leave-one-out, and probabilities from its outputs.

With :math:`G = (K + \sigma I)^{-1}` and :math:`\alpha = G (Y - \mu)` the residual of an item that is left out is
:math:`\alpha_i / G_{ii}`, so one eigendecomposition of K gives all of them for every noise :math:`\sigma`.
Validation items are judged beside those that are left out: with few labels, twice as many to choose by.
Targets are one column a class; or, for ordered classes, one column of normal scores. Outputs become probabilities by a
softmax or a cumulative logit whose few parameters are fitted to these outputs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize, sparse, stats
from scipy.special import softmax

from demonet.ensemble.member import Labelled, Member, seed_of
from demonet.ensemble.selection import log_losses
from demonet.ensemble.views import Float, Int, View

NOISES = tuple(0.02 * 10 ** (2 * i / 6) for i in range(7))  # .02 to 2
DUAL_ROWS, TUNING_ROWS = 3000, 1000  # training items a kernel member is fitted on, and its settings chosen on, at most
COARSE_ROWS, COARSE_TUNING = 1000, 400  # the same with the option ``coarse``
SHARPNESS = np.geomspace(0.5, 60.0, 40)


class Solution(NamedTuple):
    """A ridge regression at its best noise: dual coefficients, outputs for unseen items and their squared error."""

    noise: float
    alpha: Float
    unseen: Float
    error: float


def solve(gram: Float, target: Float, cross: Float, noises: Sequence[float] = NOISES) -> Solution:
    """The noise of least squared error for one kernel, over training items that are left out and validation items.

    Args:
        gram: ``[n, n]``, symmetric and positive semidefinite.
        target: ``[n + m, columns]``, of training and of validation items.
        cross: ``[m, n]``, of validation and training items; m may be 0.
        noises: What to choose from.
    """
    known, others = target[: len(gram)], target[len(gram) :]
    value, vector = linalg.eigh(gram, check_finite=False)
    value, rotated = np.maximum(value, 0.0), vector.T @ known
    best: Solution | None = None
    for noise in noises:
        alpha = vector @ (rotated / (value + noise)[:, None])
        residual = alpha / (vector**2 @ (1 / (value + noise)))[:, None]
        residual = np.concatenate([residual, others - cross @ alpha])
        error = float((residual**2).mean())
        if best is None or error < best.error - 1e-12:
            best = Solution(noise, alpha, target - residual, error)
    assert best is not None
    return best


def fit_sharpness(output: Float, y: Int) -> float:
    """The factor of the softmax under which the outputs give the classes the least log-loss."""
    return float(SHARPNESS[np.argmin([log_losses(softmax(s * output, axis=1), y).mean() for s in SHARPNESS])])


def normal_scores(count: NDArray[Any]) -> Float:
    """``[classes]`` the mean of a standard normal between the quantiles that an ordered class covers."""
    share = count / count.sum()
    edge = stats.norm.pdf(stats.norm.ppf(np.clip(np.concatenate([[0.0], np.cumsum(share)]), 0, 1)))
    return np.diff(-edge) / np.maximum(share, 1e-12)


def cumulative_logit(output: Float, slope: float, cuts: Float) -> Float:
    """``[n, len(cuts) + 1]``: P(class <= k) is the logistic function of ``cuts[k] - slope * output``."""
    below = 1 / (1 + np.exp(np.clip(slope * output[:, None] - cuts, -50, 50)))
    return np.maximum(np.diff(below, axis=1, prepend=0.0, append=1.0), 1e-9)


def fit_cumulative(output: Float, y: Int, classes: int) -> tuple[float, Float]:
    """Slope and cuts of :func:`cumulative_logit` by maximum likelihood, with a weak pull towards a slope of 3."""
    below = np.cumsum(np.bincount(y, minlength=classes) + 0.5)[:-1] / (len(y) + 0.5 * classes)
    start = 2.0 * np.log(below / (1 - below))
    steps = np.log(np.maximum(np.diff(start), 1e-3))

    def unpack(z: Float) -> tuple[float, Float]:
        return float(np.exp(z[0])), z[1] + np.concatenate([[0.0], np.cumsum(np.exp(z[2:]))])

    def loss(z: Float) -> float:
        slope, cuts = unpack(z)
        return float(log_losses(cumulative_logit(output, slope, cuts), y).sum() + 0.5 * (z[0] - np.log(3)) ** 2)

    found = optimize.minimize(loss, np.concatenate([[np.log(3)], start[:1], steps]), method="L-BFGS-B")
    return unpack(found.x)


class RidgeMember(Member):
    """A kernel on rows of a view, by kernel ridge regression.

    Subclasses say what a row is and what the kernel of two sets of rows is under each of their settings. With the
    option ``ordinal`` classes are regressed as normal scores, in the order that the subclass finds in training. With
    ``coarse`` it has fewer items, and a refit keeps the setting that was chosen; only the noise is new.
    """

    kind = "kernel"
    entries: ClassVar[int] = 2**24  # of the kernel between all items and training items that are computed at once

    @property
    def limits(self) -> tuple[int, int]:
        """Items to fit on, and to compare settings on, at most."""
        return (COARSE_ROWS, COARSE_TUNING) if self.options.get("coarse") else (DUAL_ROWS, TUNING_ROWS)

    @abstractmethod
    def rows(self, view: View) -> dict[str, Any]:
        """What the kernel reads of every item: arrays (dense or CSR) with a row an item."""

    @abstractmethod
    def settings(self) -> list[Any]:
        """The settings to choose from, as JSON values."""

    @abstractmethod
    def grams(self, left: dict[str, Any], right: dict[str, Any], settings: list[Any]) -> Iterator[Float]:
        """For each setting, ``[left, right]`` kernel values, around one on the diagonal."""

    def order(self, view: View, labelled: Labelled) -> Int:
        """The classes in order, for ``ordinal``."""
        raise NotImplementedError

    def _fit(self, view: View, labelled: Labelled, chosen: dict[str, Any] | None) -> None:
        train, every = labelled.train, self.rows(view)
        most, compared = self.limits
        if len(train) > most:
            drawn = np.random.default_rng(seed_of(labelled, self.name)).choice(train, most, replace=False)
            train = np.sort(drawn)
        rows, y = take(every, train), labelled.y
        if self.options.get("ordinal"):
            order = self.order(view, labelled)
            place = np.argsort(order)[y]
            score = normal_scores(np.bincount(place[train], minlength=labelled.classes) + 1e-9)[:, None]
            self.arrays["order"] = order
        else:
            place, score = y, np.eye(labelled.classes)
        target = score[place[train]]
        mean = target.mean(0)
        few, val = np.arange(len(train)), labelled.val[np.isin(y[labelled.val], y[train])]
        if len(train) > compared:
            few = np.random.default_rng(seed_of(labelled, self.name) + 1).permutation(len(train))[:compared]
        if len(val) > compared:
            val = np.random.default_rng(seed_of(labelled, self.name) + 2).permutation(val)[:compared]
        settings = [chosen["setting"]] if chosen else self.settings()
        tuning, others = take(rows, few), take(every, val)
        judges = np.concatenate([train[few], val])
        grams = zip(self.grams(tuning, tuning, settings), self.grams(others, tuning, settings), strict=True)
        tried = [solve(gram, score[place[judges]] - mean, cross) for gram, cross in grams]
        best = int(np.argmin([solution.error for solution in tried]))
        solution, setting = tried[best], settings[best]
        if self.options.get("ordinal"):
            slope, cuts = fit_cumulative(solution.unseen[:, 0], place[judges], labelled.classes)
            self.facts["slope"], self.arrays["cuts"] = slope, cuts
        else:
            self.facts["sharpness"] = fit_sharpness(solution.unseen + mean, y[judges])
        alpha = solution.alpha
        if len(few) < len(train):
            gram = next(self.grams(rows, rows, [setting]))
            gram[np.diag_indices_from(gram)] += solution.noise
            alpha = linalg.solve(gram, target - mean, assume_a="pos", overwrite_a=True, check_finite=False)
        self.facts |= {"setting": setting, "noise": solution.noise}
        if self.options.get("coarse"):
            self.facts["chosen"] = {"setting": setting}
        self.arrays |= {"alpha": alpha, "mean": mean, **pack(rows)}

    def predict_proba(self, view: View) -> Float:
        """The regression's outputs through the fitted link."""
        return self.probabilities(self.rows(view))

    def probabilities(self, rows: dict[str, Any]) -> Float:
        """Probabilities of items by their rows."""
        fitted, alpha, count = unpack(self.arrays), self.arrays["alpha"], next(iter(rows.values())).shape[0]
        output = np.empty((count, alpha.shape[1]))
        step = max(1, self.entries // len(alpha))
        for start in range(0, count, step):
            block = slice(start, start + step)
            output[block] = next(self.grams(take(rows, block), fitted, [self.facts["setting"]])) @ alpha
        output += self.arrays["mean"]
        if not self.options.get("ordinal"):
            return softmax(self.facts["sharpness"] * output, axis=1)
        ordered = cumulative_logit(output[:, 0], self.facts["slope"], self.arrays["cuts"])
        result = np.empty_like(ordered)
        result[:, self.arrays["order"]] = ordered / ordered.sum(1, keepdims=True)
        return result

    def cost(self, view: View, num_train: int) -> float:
        """Eigendecompositions of the tuning rows, and kernels with all items."""
        most, few = (min(num_train, limit) for limit in self.limits)
        return 0.02 + len(self.settings()) * 3e-10 * few**3 + 5e-11 * most**3 + 3e-8 * self.distinct(view) * most

    def distinct(self, view: View) -> int:
        """Items that a prediction computes the kernel for."""
        return int(view.num_items)

    def memory(self, view: View, num_train: int) -> float:
        """Kernels among training items, and between them and a block of all items."""
        most = min(num_train, self.limits[0])
        return super().memory(view, num_train) + 8.0 * 4 * (most**2 + self.entries)


def take(rows: dict[str, Any], index: Int | slice) -> dict[str, Any]:
    """Some of the rows."""
    return {name: value[index] for name, value in rows.items()}


def pack(rows: dict[str, Any]) -> dict[str, Any]:
    """Rows as plain arrays; a CSR array as its three parts and its width."""
    packed: dict[str, Any] = {}
    for name, value in rows.items():
        if isinstance(value, np.ndarray):
            packed[f"rows.{name}"] = value
            continue
        for part in ("data", "indices", "indptr"):
            packed[f"rows.{name}.{part}"] = getattr(value, part)
        packed[f"rows.{name}.shape"] = np.array(value.shape)
    return packed


def unpack(arrays: dict[str, Any]) -> dict[str, Any]:
    """The rows that :func:`pack` took apart."""
    rows: dict[str, Any] = {}
    for name in {key.split(".")[1] for key in arrays if key.startswith("rows.")}:
        if f"rows.{name}" in arrays:
            rows[name] = arrays[f"rows.{name}"]
        else:
            parts = tuple(arrays[f"rows.{name}.{part}"] for part in ("data", "indices", "indptr"))
            height, width = arrays[f"rows.{name}.shape"]
            rows[name] = sparse.csr_array(parts, shape=(int(height), int(width)))
    return rows
