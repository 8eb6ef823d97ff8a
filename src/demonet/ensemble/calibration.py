r"""Probabilities that are frequencies: what validation items say about an average of classes.

Two ways, and none. *Temperature* has one number for all classes,

.. math:: q_{ic} = p_{ic}^{1/T} \Big/ \sum_k p_{ik}^{1/T}

and keeps the order of the classes of an item. *Isotonic* has a rising step function for each class,
:math:`q_{ic} \propto f_c(p_{ic})`. The one with the lowest log-loss by cross-validation over the validation items is
chosen, and then fitted on all of them. Of n items that are all predicted correctly nobody knows that the next one will
be, so both mix in a share 1/(n + 1) of the uniform distribution. Isotonic mixes in as much of the probabilities that
it was given: items on one step keep their order, which a ranking needs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.isotonic import IsotonicRegression

from demonet.errors import DemonetError
from demonet.methods.selection import item_losses

Float = NDArray[np.float64]

FOLDS = 5
FEWEST = 30  # items below which nothing is learned
RANGE = (0.2, 5.0)  # of temperatures
KNOTS = 64  # of a step function that is kept, at most


class Calibration:
    """A map of probabilities to probabilities.

    Args:
        method: ``"none"``, ``"temperature"`` or ``"isotonic"``.
        temperature: T.
        steps: For each class its function: where it is known, ascending, and its values.
        softening: The share of the uniform distribution and, if isotonic, of the given probabilities.
        losses: The log-loss of each way by cross-validation; empty where there were too few items.
    """

    def __init__(
        self,
        method: str = "none",
        temperature: float = 1.0,
        steps: list[tuple[list[float], list[float]]] | None = None,
        softening: float = 0.0,
        losses: dict[str, float] | None = None,
    ) -> None:
        self.method, self.temperature, self.steps = method, temperature, steps or []
        self.softening, self.losses = softening, losses or {}

    @classmethod
    def choose(cls, outputs: Float, y: NDArray[np.int64], seed: int = 0) -> Calibration:
        """The best of all ways for ``[items, classes]`` probabilities and classes; none with fewer than 30 items."""
        if len(y) < FEWEST:
            return cls()
        order = np.random.default_rng(seed).permutation(len(y))
        order = order[np.argsort(y[order], kind="stable")]  # dealt out class by class
        losses = {}
        for method, fit in _WAYS.items():
            found = np.empty(len(y))
            for number in range(FOLDS):
                fold = order[number::FOLDS]
                rest = np.setdiff1d(order, fold)
                found[fold] = item_losses("classify", fit(outputs[rest], y[rest]).apply(outputs[fold]), y[fold])
            losses[method] = float(found.mean())
        best = _WAYS[min(losses, key=lambda method: round(losses[method], 9))](outputs, y)
        best.losses = losses
        return best

    def apply(self, outputs: Float) -> Float:
        """``[items, classes]`` calibrated probabilities."""
        if self.method == "none":
            return outputs
        if self.method == "temperature":
            scores = np.log(np.maximum(outputs, np.finfo(np.float64).tiny)) / self.temperature
            found = np.exp(scores - scores.max(1, keepdims=True))
        else:
            columns = zip(outputs.T, self.steps, strict=True)
            found = np.stack([np.interp(column, *steps) for column, steps in columns], 1) + 1e-12
        found = found / found.sum(1, keepdims=True)
        if self.method == "isotonic":
            found = (1 - self.softening) * found + self.softening * outputs
        return (1 - self.softening) * found + self.softening / outputs.shape[1]

    def state(self) -> dict[str, Any]:
        """Plain values for a file."""
        return {name: getattr(self, name) for name in ("method", "temperature", "steps", "softening", "losses")}

    @classmethod
    def from_state(cls, state: dict[str, Any], classes: int) -> Calibration:
        """The calibration that gave this state; one that would not give probabilities is refused."""
        found = cls(**state)
        known = found.method in _WAYS and RANGE[0] <= found.temperature <= RANGE[1] and 0 <= found.softening < 1
        isotonic = found.method == "isotonic"
        if not known or len(found.steps) != (classes if isotonic else 0):
            raise DemonetError(f"calibration by {found.method!r} of {classes} classes")
        for place, value in found.steps:
            x, f = np.array(place, dtype=np.float64), np.array(value, dtype=np.float64)
            if not len(x) or x.shape != f.shape or (np.diff(x) <= 0).any() or not ((f >= 0) & (f <= 1)).all():
                raise DemonetError("calibration by a function that does not rise from 0 to 1")
        return found


def _none(outputs: Float, y: NDArray[np.int64]) -> Calibration:
    return Calibration()


def _temperature(outputs: Float, y: NDArray[np.int64]) -> Calibration:
    def at(log: float) -> Calibration:
        return Calibration("temperature", float(np.exp(log)), softening=1 / (len(y) + 1))

    def loss(log: float) -> float:
        return float(item_losses("classify", at(log).apply(outputs), y).mean())

    return at(float(minimize_scalar(loss, bounds=(math.log(RANGE[0]), math.log(RANGE[1])), method="bounded").x))


def _isotonic(outputs: Float, y: NDArray[np.int64]) -> Calibration:
    steps = []
    for number, column in enumerate(outputs.T):
        fitted = IsotonicRegression(y_min=0.0, y_max=1.0).fit(column, y == number)
        x, f = fitted.X_thresholds_, fitted.y_thresholds_
        x, first = np.unique(x, return_index=True)
        kept = np.unique(np.linspace(0, len(x) - 1, min(len(x), KNOTS)).round().astype(int))
        steps.append((x[kept].astype(float).tolist(), f[first][kept].astype(float).tolist()))
    return Calibration("isotonic", steps=steps, softening=1 / (len(y) + 1))


_WAYS = {"none": _none, "temperature": _temperature, "isotonic": _isotonic}  # of equals, the first
