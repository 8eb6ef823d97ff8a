"""From the outputs of a ridge regression to probabilities of classes, which may be ordered, and of labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_softmax, logit, ndtri

Array = NDArray[Any]
SCALES = np.geomspace(0.3, 100, 30)  # of the softmax


class Link(NamedTuple):
    """From predictions to probabilities: softmax of ``scale * f``, or a cumulative logit with ``cuts`` on one column.

    Ordinal: ``P(y > j) = sigmoid(scale * (f - cuts[j]))``. The rank of class c is ``order[c]``.
    """

    scale: float
    cuts: tuple[float, ...] = ()
    order: tuple[int, ...] = ()

    def log_probabilities(self, f: Array) -> Array:
        """``[n, C]``."""
        if not self.cuts:
            return log_softmax(self.scale * f, axis=1)
        above = expit(self.scale * (f - np.array(self.cuts)))
        above = np.column_stack([np.ones(len(f)), above, np.zeros(len(f))])
        p = np.maximum(above[:, :-1] - above[:, 1:], 1e-9)
        return np.log(p / p.sum(axis=1, keepdims=True))[:, list(self.order)]

    @classmethod
    def fit(
        cls,
        f: Array,
        y: Array,
        order: Sequence[int] = (),
        weight: Array | None = None,
        *,
        slope: float = 1.0,
        spread: float = 4.0,
        gap: float = 4.0,
    ) -> Link:
        """The link of least log-loss on predictions that have not seen their own label.

        Args:
            f: ``[n, C]``; one column for ordered classes.
            y: ``[n]`` classes.
            order: The rank of each ordered class.
            weight: ``[n]``; None if all are 1.
            slope, spread: Median of the prior of ``scale``, and the variance of its logarithm; for ordered classes.
            gap: The variance of the logarithm of the distance of cuts.
        """
        if not order:

            def loss(log_scale: float) -> float:
                return log_loss(cls(math.exp(log_scale)).log_probabilities(f), y, weight)

            bounds = (math.log(SCALES[0]), math.log(SCALES[-1]))
            return cls(float(math.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x)))
        rank, total = np.array(order)[y], len(y) if weight is None else weight.sum()

        def unpack(p: Array) -> Link:
            cuts = np.cumsum([p[1], *np.exp(p[2:])])
            return cls(float(np.exp(p[0])), tuple(cuts.tolist()), tuple(order))

        # Weak priors keep the cuts apart and finite where a class is rare or perfectly separated.
        def objective(p: Array) -> float:
            prior = 0.5 * ((p[0] - math.log(slope)) ** 2 / spread + (p[2:] ** 2).sum() / gap)
            return float(total * log_loss(unpack(p).log_probabilities(f), y, weight) + prior)

        shares = np.cumsum(np.bincount(rank, weight, minlength=len(order)))[:-1] / total
        cuts = ndtri(np.clip(shares, 0.01, 0.99))
        start = np.array([1.0, cuts[0], *np.log(np.maximum(np.diff(cuts), 1e-2))])
        return unpack(minimize(objective, start, method="BFGS").x)


class LabelLink(NamedTuple):
    r"""From predictions of 0/1 targets to probabilities, label by label.

    :math:`p = \sigma(\mathrm{logit}\,\pi + b + e^a (f - \pi))` with the share :math:`\pi` of a label.
    """

    share: tuple[float, ...]
    slope: tuple[float, ...]
    shift: tuple[float, ...]

    def probabilities(self, f: Array) -> Array:
        """``[n, labels]``."""
        share = np.array(self.share)
        return expit(logit(share) + np.array(self.shift) + np.exp(self.slope) * (f - share))

    @classmethod
    def fit(cls, f: Array, y: Array, weight: Array | None = None) -> LabelLink:
        """Of least log-loss on predictions that have not seen their own label, with weak priors.

        Args:
            f: ``[n, labels]``.
            y: ``[n, labels]`` targets from 0 to 1.
            weight: ``[n]``; None if all are 1.
        """
        found = []
        total, each = (len(y), 1.0) if weight is None else (weight.sum(), weight)
        for column, target in zip(f.T, y.T, strict=True):
            share = float(((each * target).sum() + 1) / (total + 2))

            def objective(p: Array, column: Array = column, target: Array = target, share: float = share) -> float:
                score = logit(share) + p[1] + np.exp(p[0]) * (column - share)
                loss = np.logaddexp(0, score) - target * score
                return float((each * loss).sum() + 0.5 * ((p[0] - math.log(4)) ** 2 + p[1] ** 2) / 4)

            found.append((share, *minimize(objective, np.array([math.log(4), 0.0]), method="BFGS").x.tolist()))
        return cls(*zip(*found, strict=True))


def normal_scores(count: Array) -> Array:
    """``[ranks]`` the standard normal quantile at the middle of what each of the ordered classes covers.

    >>> normal_scores(np.array([1, 2, 1])).round(2).tolist()
    [-1.15, 0.0, 1.15]
    """
    share = count / count.sum()
    return ndtri(np.clip(np.cumsum(share) - share / 2, 1e-3, 1 - 1e-3))


def shares(weight: Any) -> Any:
    """How much each item counts in a mean, 1 on average.

    >>> shares(np.array([2.0, 1.0, 1.0])).tolist()
    [1.5, 0.75, 0.75]
    """
    return weight * (len(weight) / weight.sum())


def log_loss(log_probabilities: Array, y: Array, weight: Array | None = None) -> float:
    """Mean negative log-probability of the classes, by the weights of the items where there are some."""
    return float(-np.average(log_probabilities[np.arange(len(y)), y], weights=weight))
