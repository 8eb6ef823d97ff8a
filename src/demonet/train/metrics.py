"""Metrics by name, computed by scikit-learn. To add one, add an entry to :data:`METRICS`.

Tables of several columns (labels of a multi-label problem, targets of a regression) are averaged over the columns.
Unknown entries are NaN in ``y`` and are left out.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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
            If ``has_positive``, the second of two classes is the positive one; see :meth:`of_class`.
        larger_is_better: Whether a larger value is better.
        uses: What the functions take: ``"predictions"`` (class numbers, 0/1 labels or values) or ``"probabilities"``.
        has_positive: Whether its value for two classes depends on which of them is the positive one.
    """

    name: str
    title: str
    functions: Mapping[Task, Function]
    larger_is_better: bool = True
    uses: Literal["predictions", "probabilities"] = "predictions"
    has_positive: bool = False

    def of_class(self, positive: int, name: object) -> Metric:
        """The metric with the class number ``positive`` of two as the positive one, and with ``name`` in its title.

        A metric without a positive class is itself.
        """
        if not self.has_positive:
            return self
        function = self.functions["classify"]

        def of_first(y: Array, predicted: Array, weight: Array | None) -> float:
            return function(1 - y, predicted[:, ::-1] if predicted.ndim == 2 else 1 - predicted, weight)

        functions = {**self.functions, "classify": function if positive else of_first}
        return replace(self, title=f"{self.title} of {name!r}", functions=functions)


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
            has_positive=True,
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


def positive_class(metric: str, classes: Sequence[Any], counts: Array, asked: Any = None) -> int | None:
    """The number of the positive class: the one that was asked for, or the rarer of two; of equals, the last.

    None if there are not two classes, or if the metric has no positive class. Then it is an error to ask for one.

    Args:
        metric: The name of the metric.
        classes: The classes, by number.
        counts: ``[classes]`` how many items have each.
        asked: One of the classes, or its name; None for the rarer.

    >>> positive_class("average-precision", ["hoch", "niedrig"], np.array([3, 9]))
    0
    """
    if asked is None:
        return int(counts[1] <= counts[0]) if METRICS[metric].has_positive and len(classes) == 2 else None
    if not METRICS[metric].has_positive:
        readers = ", ".join(name for name, known in METRICS.items() if known.has_positive)
        problem = f"{asked!r} with the metric {metric!r}, which is the same for either class"
        raise DemonetError(problem, argument="positive", hint=f"it is read by {readers}")
    if len(classes) != 2:
        raise DemonetError(f"{asked!r} of {len(classes)} classes", argument="positive", hint="it is one of two classes")
    names = [str(name) for name in classes]
    if str(asked) not in names:
        near = difflib.get_close_matches(str(asked), names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the classes are {names[0]!r} and {names[1]!r}"
        raise DemonetError(f"{asked!r} is not a class", argument="positive", hint=hint)
    return names.index(str(asked))
