r"""Probabilities that are frequencies: what validation items say about those of a model, of classes or labels.

Two ways, and none. *Temperature* has one number for all classes,

.. math:: q_{ic} = p_{ic}^{1/T} \Big/ \sum_k p_{ik}^{1/T}

and keeps the order of the classes of an item. *Bias* is for two classes and has a second number b for how often they
occur: :math:`q_{i1} / q_{i0} = e^b \, (p_{i1} / p_{i0})^{1/T}`. Both keep the order of items by a class of two, and so
every ranking. Temperature is taken where its log-loss by cross-validation over the validation items is below that of no
calibration; bias in its place where it is below that of temperature by more than one standard error, since it can
change the most probable class. What is taken is then fitted on all validation items. Of several labels each is
calibrated by itself, as two classes are.

With few items their best T and b are mostly luck, so what is minimised is minus the log-posterior, where log T and b
have normal distributions around 0 with deviations .3 and 1:

.. math:: \sum_i -\log q_{i y_i} + \tfrac12 (\log T / 0.3)^2 + \tfrac12 b^2

Of n items that are all predicted correctly nobody knows that the next one will be, so both ways mix in a share
1/(n + 1) of the uniform distribution.

A rising step function for each class (isotonic regression) has a higher log-loss than temperature on most sets of
``benchmarks/results/calibration.csv``, and often a higher one than no calibration; it takes accuracy where there are
few validation items, and makes ties, which cost a ranking.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from demonet.closedform.link import shares
from demonet.errors import DemonetError
from demonet.methods.selection import item_losses
from demonet.train.metrics import Task

Float = NDArray[np.float64]

METHODS = ("none", "temperature", "bias")  # the last is for two classes

FOLDS = 5
FEWEST = 30  # items below which nothing is learned
RANGE = (0.2, 5.0)  # of temperatures
LARGEST = 10.0  # bias
PRIOR = np.array([0.3, 1.0])  # deviations of log T and b


class Calibration:
    """A map of probabilities to probabilities.

    Args:
        method: ``"none"``, ``"temperature"`` or ``"bias"``.
        temperature: T.
        bias: b, for the second of two classes.
        softening: The share of the uniform distribution.
        losses: The log-loss of each way by cross-validation; empty where there were too few items.
    """

    def __init__(
        self,
        method: str = "none",
        temperature: float = 1.0,
        bias: float = 0.0,
        softening: float = 0.0,
        losses: dict[str, float] | None = None,
    ) -> None:
        self.method, self.temperature, self.bias = method, temperature, bias
        self.softening, self.losses = softening, losses or {}

    @classmethod
    def choose(cls, outputs: Float, y: NDArray[np.int64], seed: int = 0, weight: Float | None = None) -> Calibration:
        """The best way for ``[items, classes]`` probabilities and classes; none with fewer than 30 items.

        With weights of the items, every loss is a weighted mean.
        """
        if len(y) < FEWEST:
            return cls()
        order = np.random.default_rng(seed).permutation(len(y))
        order = order[np.argsort(y[order], kind="stable")]  # dealt out class by class
        ways = METHODS if outputs.shape[1] == 2 else METHODS[:2]
        losses = {method: np.empty(len(y)) for method in ways}
        share = np.ones(len(y)) if weight is None else shares(weight)
        for number in range(FOLDS):
            fold = order[number::FOLDS]
            rest = np.setdiff1d(order, fold)
            for method, found in losses.items():
                fitted = cls.fit(method, outputs[rest], y[rest], None if weight is None else weight[rest])
                found[fold] = share[fold] * item_losses("classify", fitted.apply(outputs[fold]), y[fold])
        best = min(METHODS[:2], key=lambda method: round(float(losses[method].mean()), 9))  # of equals, none
        if "bias" in losses:
            gain = losses[best] - losses["bias"]
            best = "bias" if gain.mean() > gain.std(ddof=1) / math.sqrt(len(y)) else best
        chosen = cls.fit(best, outputs, y, weight)
        chosen.losses = {method: float(found.mean()) for method, found in losses.items()}
        return chosen

    @classmethod
    def fit(cls, method: str, outputs: Float, y: NDArray[np.int64], weight: Float | None = None) -> Calibration:
        """One way, by the log-posterior of these items."""
        if method == "none":
            return cls()
        softening = 1 / (len(y) + 1)

        def at(numbers: Float) -> Calibration:
            return cls(method, float(np.exp(numbers[0])), float(numbers[1:].sum()), softening)

        def loss(numbers: Float) -> float:
            penalty = ((numbers / PRIOR[: len(numbers)]) ** 2).sum() / (2 * len(y))
            return float(item_losses("classify", at(numbers).apply(outputs), y, weight).mean() + penalty)

        bounds = [(math.log(RANGE[0]), math.log(RANGE[1])), (-LARGEST, LARGEST)][: 1 + (method == "bias")]
        return at(minimize(loss, np.zeros(len(bounds)), bounds=bounds, method="L-BFGS-B").x)

    def apply(self, outputs: Float) -> Float:
        """``[items, classes]`` calibrated probabilities."""
        if self.method == "none":
            return outputs
        scores = np.log(np.maximum(outputs, np.finfo(np.float64).tiny)) / self.temperature
        if self.method == "bias":
            scores[:, 1] += self.bias
        found = np.exp(scores - scores.max(1, keepdims=True))
        found = found / found.sum(1, keepdims=True)
        return (1 - self.softening) * found + self.softening / outputs.shape[1]

    def state(self) -> dict[str, Any]:
        """Plain values for a file."""
        return {name: getattr(self, name) for name in ("method", "temperature", "bias", "softening", "losses")}

    @classmethod
    def from_state(cls, state: dict[str, Any], classes: int) -> Calibration:
        """The calibration that gave this state; one that would not give probabilities is refused."""
        found = cls(**state)
        known = found.method in METHODS[: 3 if classes == 2 else 2] and RANGE[0] <= found.temperature <= RANGE[1]
        if not known or not (abs(found.bias) <= LARGEST and 0 <= found.softening < 1):
            raise DemonetError(f"calibration by {found.method!r} of {classes} classes")
        return found


class LabelCalibration:
    """A calibration of each label of a table, which is a problem of two classes.

    A label that fewer than five known items have, or do not have, is left as it is: the prior.

    Args:
        labels: The calibration of each; none for a table that is left as it is.
    """

    def __init__(self, labels: Sequence[Calibration] = ()) -> None:
        self.labels = list(labels)

    @classmethod
    def choose(cls, outputs: Float, y: NDArray[Any], seed: int = 0, weight: Float | None = None) -> LabelCalibration:
        """The best way for each label, from ``[items, labels]`` probabilities and labels, NaN for unknown."""
        found = []
        for probability, label in zip(outputs.T, y.T, strict=True):
            known = ~np.isnan(label)
            values = label[known].astype(np.int64)
            enough = np.bincount(values, minlength=2).min() >= FOLDS
            judges = values, seed, None if weight is None else weight[known]
            found.append(Calibration.choose(_of_two(probability[known]), *judges) if enough else Calibration())
        return cls(found)

    def apply(self, outputs: Float) -> Float:
        """``[items, labels]`` calibrated probabilities."""
        if not self.labels:
            return outputs
        pairs = zip(self.labels, outputs.T, strict=True)
        return np.stack([one.apply(_of_two(probability))[:, 1] for one, probability in pairs], 1)

    def state(self) -> dict[str, Any]:
        """Plain values for a file."""
        return {"labels": [one.state() for one in self.labels]}

    @classmethod
    def from_state(cls, state: dict[str, Any], labels: int) -> LabelCalibration:
        """The calibration that gave this state."""
        found = [Calibration.from_state(one, 2) for one in state.get("labels", ())]
        if len(found) not in (0, labels):
            raise DemonetError(f"calibrations of {len(found)} labels for {labels}")
        return cls(found)


def calibration_from_state(task: Task, state: dict[str, Any], outputs: int) -> Calibration | LabelCalibration:
    """The calibration of a task that gave this state; an empty state is none."""
    kind = LabelCalibration if task == "multilabel" else Calibration
    return kind.from_state(state, outputs)


def calibrate(
    task: Task, outputs: Float, y: NDArray[Any], seed: int = 0, weight: Float | None = None
) -> Calibration | LabelCalibration:
    """What makes probabilities of outputs, chosen on items that the model has not seen; numbers stay as they are."""
    if task == "regress":
        return Calibration()
    return (LabelCalibration if task == "multilabel" else Calibration).choose(outputs, y, seed, weight)


def _of_two(probability: Float) -> Float:
    """``[items, 2]`` from the probability of a label."""
    return np.stack([1 - probability, probability], 1)
