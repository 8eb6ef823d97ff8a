"""A candidate of an ensemble: its row of the table, the fitted model, and its probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from demonet.features.views import Float, Int
from demonet.methods.model import Model
from demonet.methods.selection import log_losses


@dataclass(frozen=True)
class Candidate:
    """One row of the table of candidates.

    Attributes:
        name, kind: Of the model.
        status: ``"fitted"``, ``"skipped"`` for lack of time, or ``"failed"``.
        reason: Why it was skipped or failed, or not refitted.
        log_loss: On validation, with its standard error in ``log_loss_error``; None where it was not fitted.
        accuracy: On validation, with its 95 % interval (Wilson) in ``accuracy_low`` and ``accuracy_high``.
        weight: In the average of probabilities.
        inductive_weight: In the average for another graph, where members that know the nodes of this one do not count.
        seconds: Of the fit, folds included; ``refit_seconds`` of the second fit.
        estimate: What one fit was expected to take, in seconds.
        machine: The task of a :class:`~demonet.methods.closed_form.Kernel` and how it searches; empty for others.
    """

    name: str
    kind: str
    status: Literal["waiting", "fitted", "skipped", "failed"] = "waiting"
    reason: str = ""
    log_loss: float | None = None
    log_loss_error: float | None = None
    accuracy: float | None = None
    accuracy_low: float | None = None
    accuracy_high: float | None = None
    weight: float = 0.0
    inductive_weight: float = 0.0
    seconds: float = 0.0
    refit_seconds: float = 0.0
    estimate: float = 0.0
    machine: dict[str, Any] = field(default_factory=dict)

    def scored(self, probability: Float, y: Int, seconds: float) -> Candidate:
        """The row of a candidate that was fitted, with its scores on the items that candidates are judged on."""
        loss = log_losses(probability, y)
        right, n, z = float((probability.argmax(1) == y).mean()), len(y), 1.96
        middle = (right + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * math.sqrt(right * (1 - right) / n + z**2 / (4 * n**2))
        return replace(
            self,
            status="fitted",
            log_loss=float(loss.mean()),
            log_loss_error=float(loss.std(ddof=1) / math.sqrt(n)) if n > 1 else None,
            accuracy=right,
            accuracy_low=middle - half,
            accuracy_high=middle + half,
            seconds=seconds,
        )


class Progress(NamedTuple):
    """What a callback is told: ``"fit"`` and ``"done"`` around each candidate, ``"refit"`` and ``"refitted"`` later."""

    stage: Literal["fit", "done", "refit", "refitted"]
    candidate: Candidate
    number: int
    total: int


@dataclass
class Trial:
    """A candidate with its model, and its softened probabilities of all items and of those that it is judged on.

    They are those of the model that was fitted on the training part; after a refit, ``proba`` is that of the new model.
    """

    row: Candidate
    model: Model | None = None
    proba: Float | Any = None
    judged: Float | Any = None
