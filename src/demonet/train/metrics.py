"""Metrics by name, computed by scikit-learn. To add one, add an entry to :data:`METRICS`.

Tables of several columns (labels of a multi-label problem, targets of a regression) are averaged over the columns.
Unknown entries are NaN in ``y`` and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics as sk

from demonet.errors import DemonetError

Task = Literal["classify", "multilabel", "regress"]
Array = NDArray[Any]
Function = Callable[[Array, Array, Array | None], float]


@dataclass(frozen=True)
class Metric:
    """How good predictions are.

    Attributes:
        name: What users write.
        title: What reports show.
        functions: For each task that it fits, a function of the targets, the predictions and the item weights or None.
        larger_is_better: Whether a larger value is better.
        uses: What the functions take: ``"predictions"`` (class numbers, 0/1 labels or values) or ``"probabilities"``.
    """

    name: str
    title: str
    functions: Mapping[Task, Function]
    larger_is_better: bool = True
    uses: Literal["predictions", "probabilities"] = "predictions"


def _by_column(function: Callable[..., float], *, needs_two_values: bool = False) -> Function:
    """The mean of a metric over the columns, each on its known entries.

    Columns without a known entry are left out; with ``needs_two_values``, so are those in which all entries are the
    same, for which the metric is undefined. NaN if no column is left.
    """

    def average(y: Array, predicted: Array, weight: Array | None) -> float:
        values = []
        for target, found in zip(y.T, predicted.T, strict=True):
            known = ~np.isnan(target)
            if not known.any() or (needs_two_values and np.unique(target[known]).size < 2):
                continue
            values.append(
                function(target[known], found[known], sample_weight=None if weight is None else weight[known])
            )
        return float(np.mean(values)) if values else float("nan")

    return average


def _one_vs_rest(function: Callable[..., float]) -> Function:
    """A metric of probabilities: of the second class if there are two, else the mean over one-vs-rest problems."""
    average = _by_column(function, needs_two_values=True)

    def of_classes(y: Array, predicted: Array, weight: Array | None) -> float:
        classes = np.arange(predicted.shape[1])[-1:] if predicted.shape[1] == 2 else np.arange(predicted.shape[1])
        return average((y[:, None] == classes).astype(float), predicted[:, classes], weight)

    return of_classes


def _of_classes(function: Callable[..., float]) -> Function:
    return lambda y, predicted, weight: float(function(y, predicted, sample_weight=weight))


def _log_loss(y: Array, predicted: Array, weight: Array | None) -> float:
    return float(sk.log_loss(y, predicted, sample_weight=weight, labels=np.arange(predicted.shape[1])))


def _balanced_accuracy(y: Array, predicted: Array, sample_weight: Array | None) -> float:
    """The mean recall of the classes in ``y``; unlike scikit-learn's function, silent about classes not in it."""
    options = {"labels": np.unique(y), "average": "macro", "zero_division": 0.0}
    return float(sk.recall_score(y, predicted, sample_weight=sample_weight, **options))


_F1 = partial(sk.f1_score, zero_division=0.0)

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "accuracy", {"classify": _of_classes(sk.accuracy_score)}),
        Metric(
            "balanced",
            "balanced accuracy",
            {
                "classify": _of_classes(_balanced_accuracy),
                "multilabel": _by_column(_balanced_accuracy, needs_two_values=True),
            },
        ),
        Metric(
            "macro-f1",
            "macro F1",
            {"classify": _of_classes(partial(_F1, average="macro")), "multilabel": _by_column(_F1)},
        ),
        Metric(
            "auc",
            "ROC AUC",
            {
                "classify": _one_vs_rest(sk.roc_auc_score),
                "multilabel": _by_column(sk.roc_auc_score, needs_two_values=True),
            },
            uses="probabilities",
        ),
        Metric(
            "average-precision",
            "average precision",
            {
                "classify": _one_vs_rest(sk.average_precision_score),
                "multilabel": _by_column(sk.average_precision_score, needs_two_values=True),
            },
            uses="probabilities",
        ),
        Metric(
            "log-loss",
            "log loss",
            {"classify": _log_loss, "multilabel": _by_column(partial(sk.log_loss, labels=[0, 1]))},
            larger_is_better=False,
            uses="probabilities",
        ),
        Metric("rmse", "RMSE", {"regress": _by_column(sk.root_mean_squared_error)}, larger_is_better=False),
        Metric("mae", "MAE", {"regress": _by_column(sk.mean_absolute_error)}, larger_is_better=False),
        Metric("r2", "R²", {"regress": _by_column(sk.r2_score)}),
    )
}


def metrics_for(task: Task) -> list[str]:
    """The names of the metrics that fit a task.

    >>> metrics_for("regress")
    ['rmse', 'mae', 'r2']
    """
    return [name for name, metric in METRICS.items() if task in metric.functions]


def find_metric(name: str, task: Task) -> Metric:
    """The metric of that name, if it fits the task."""
    fitting = metrics_for(task)
    if name not in fitting:
        raise DemonetError(f"metric={name!r} does not fit the task {task!r}", hint=f"use {', '.join(fitting)}")
    return METRICS[name]
