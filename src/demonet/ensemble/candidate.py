"""A candidate of an ensemble: its row of the table, the fitted model, and its outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from scipy.stats import binomtest

from demonet.features.views import Float
from demonet.methods.model import Model


@dataclass(frozen=True)
class Candidate:
    """One row of the table of candidates.

    Attributes:
        name, kind: Of the model.
        status: ``"fitted"``, ``"skipped"`` for lack of time, or ``"failed"``.
        reason: Why it was skipped or failed, or not refitted.
        loss: On validation, with its standard error in ``loss_error``; None where it was not fitted. Log-loss, or the
            squared error of standardised numbers.
        metric, score: The metric of the ensemble, and its value on validation; None where it is not defined.
        score_low, score_high: The 95 % interval (Wilson) of an accuracy; None for other metrics.
        weight: In the average.
        inductive_weight: In the average for another graph, where members that know the nodes of this one do not count.
        seconds: Of the fit, folds included; ``refit_seconds`` of the second fit.
        estimate: What one fit was expected to take, in seconds.
        machine: The task of a :class:`~demonet.methods.closed_form.Kernel` and how it searches; empty for others.
    """

    name: str
    kind: str
    status: Literal["waiting", "fitted", "skipped", "failed"] = "waiting"
    reason: str = ""
    loss: float | None = None
    loss_error: float | None = None
    metric: str = ""
    score: float | None = None
    score_low: float | None = None
    score_high: float | None = None
    weight: float = 0.0
    inductive_weight: float = 0.0
    seconds: float = 0.0
    refit_seconds: float = 0.0
    estimate: float = 0.0
    machine: dict[str, Any] = field(default_factory=dict)

    def scored(
        self, loss: Float, metric: str, score: float | None, seconds: float, share: Float | None = None
    ) -> Candidate:
        """The row of a candidate that was fitted, with its scores on the items that candidates are judged on.

        Args:
            loss: ``[items]``, each times its ``share``: how much it counts, 1 on average; None if all are 1.
            metric, score: The metric, and its value.
            seconds: Of the fit.
        """
        n, low, high = len(loss), None, None
        apart = loss if share is None else loss - share * loss.mean()  # a mean with weights is a ratio of two sums
        if metric == "accuracy" and score is not None:
            low, high = map(float, binomtest(round(score * n), n).proportion_ci(method="wilson"))
        return replace(
            self,
            status="fitted",
            loss=float(loss.mean()),
            loss_error=float(apart.std(ddof=1) / math.sqrt(n)) if n > 1 else None,
            metric=metric,
            score=score,
            score_low=low,
            score_high=high,
            seconds=seconds,
        )


class Progress(NamedTuple):
    """What a callback is told: ``"fit"`` and ``"done"`` around each candidate, ``"refit"`` and ``"refitted"`` later.

    ``seconds`` have passed, and about ``left`` more are expected: for all candidates at first, then for all refits.
    """

    stage: Literal["fit", "done", "refit", "refitted"]
    candidate: Candidate
    number: int
    total: int
    seconds: float = 0.0
    left: float = 0.0


@dataclass
class Trial:
    """A candidate with its model, and its outputs for all items and for those that it is judged on.

    Probabilities are softened, numbers standardised. They are those of the model that was fitted on the training part;
    after a refit, ``outputs`` are those of the new model. ``chosen`` is what a refit keeps to, pooled over folds where
    there are some. ``cost`` is what a fit takes at least, by an estimate; ``todo`` whether it is expected to be fitted.
    """

    row: Candidate
    model: Model | None = None
    outputs: Float | Any = None
    judged: Float | Any = None
    chosen: Any = None
    cost: float = 0.0
    todo: bool = True
