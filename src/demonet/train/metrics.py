"""Metrics by name, computed by scikit-learn. To add one, add an entry to :data:`METRICS`.

``precision@K`` is a metric for every K from 1 on: the share of the positive class among the K items that rank first.

Tables of several columns (labels of a multi-label problem, targets of a regression) are averaged over the columns.
Unknown entries are NaN in ``y`` and are left out.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn import metrics as sk

from demonet.errors import DemonetError

Task = Literal["classify", "multilabel", "regress"]
Array = NDArray[Any]
Function = Callable[[Array, Array, Array | None], float]
IMBALANCED = 0.8  # share of a class from which on accuracy says little
FEWEST = 30  # validation items below which a decision is not learned
MOST_FACTORS = 50  # classes or labels up to which each has a factor or a step of its own
PRIOR_ITEMS = 50  # items of a label at which its own best threshold counts as much as that of all labels


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
        needs_decision: Whether the most probable class, or a label from probability 0.5 on, is not the best prediction
            for it, so that validation has to choose another rule: see :meth:`choose_decision`.
        decision: What predictions are made by: factors by which probabilities of classes are multiplied before the
            largest is predicted, or the threshold of each label; empty for factors of 1, or thresholds of 0.5.
        positive: The number of the positive class, after :meth:`of_class`.
    """

    name: str
    title: str
    functions: Mapping[Task, Function]
    larger_is_better: bool = True
    uses: Literal["predictions", "probabilities"] = "predictions"
    has_positive: bool = False
    needs_decision: bool = False
    decision: tuple[float, ...] = ()
    positive: int | None = None

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
        return replace(self, title=f"{self.title} of {name!r}", functions=functions, positive=positive)

    def choose_decision(self, outputs: Array, y: Array) -> tuple[float, ...]:
        """The :attr:`decision` that is best by this metric on validation items, of equals the first.

        Empty if the metric needs none, with fewer than 30 items, or if nothing is better than no decision.

        Args:
            outputs: ``[items, outputs]`` probabilities of validation items.
            y: Their classes, or a table of labels.
        """
        if not self.needs_decision or len(y) < FEWEST:
            return ()
        return self._thresholds(outputs, y) if y.ndim == 2 else self._factors(outputs, y)

    def _thresholds(self, outputs: Array, y: Array) -> tuple[float, ...]:
        """The threshold of each label, by its log-odds.

        First they are a power of the odds with which the label occurs, the same power for all; 0 gives thresholds of
        0.5. Then each label has a step of its own, of which a share n / (n + 50) is taken: n counts the items with the
        label, or those without it if these are fewer. So a label with few of them follows the others.
        """
        positives, negatives = np.nansum(y, 0), np.nansum(1 - y, 0)
        usual = np.log((positives + 1) / (negatives + 1))

        def value(odds: Array, columns: Any = slice(None)) -> float:
            predicted = (outputs[:, columns] >= expit(odds[columns])).astype(np.int64)
            return round(float(np.nan_to_num(self.functions["multilabel"](y[:, columns], predicted, None))), 9)

        best = max((power * usual for power in np.arange(11) / 10), key=value)
        if len(usual) <= MOST_FACTORS:
            columns, steps = [[column] for column in range(len(usual))], sorted(np.arange(-8, 9) / 4, key=abs)
            own = [max(steps, key=lambda step: value(best + step, column)) for column in columns]
            rarer = np.minimum(positives, negatives)
            best = best + rarer / (rarer + PRIOR_ITEMS) * own
        return () if value(best) <= value(np.zeros(len(usual))) else tuple(expit(best).tolist())

    def _factors(self, outputs: Array, y: Array) -> tuple[float, ...]:
        r"""The factors :math:`a_c` for which :math:`\arg\max_c a_c p_c` is best.

        Of two classes they stand for a threshold, which is searched among all; of more, powers of the inverse shares of
        classes are, and then a factor for each class after the other.
        """
        size = outputs.shape[1]

        def value(factors: Array) -> float:
            return round(self.functions["classify"](y, (outputs * factors).argmax(1), None), 9)

        best = np.ones(size)
        if size == 2:
            odds = np.unique(np.log(np.maximum(outputs[:, 0], 1e-12) / np.maximum(outputs[:, 1], 1e-12)))
            between = (odds[1:] + odds[:-1]) / 2
            tried = [np.array([1.0, np.exp(log)]) for log in sorted(between, key=abs)]
            best = max([best, *tried], key=value)
        else:
            share = np.maximum(np.bincount(y, minlength=size), 1) / len(y)
            best = max([best, *(share**-power for power in (0.25, 0.5, 0.75, 1.0))], key=value)
            for place in [*range(size), *range(size)] if size <= MOST_FACTORS else ():
                own = np.eye(size)[place]
                best = max([best, *(best * step**own for step in (0.5, 0.71, 0.84, 1.19, 1.41, 2.0))], key=value)
        return () if value(best) <= value(np.ones(size)) else tuple((best / best.max()).tolist())


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


def _ranking(function: Callable[..., float]) -> dict[Task, Function]:
    """A metric of probabilities, for classes and for labels."""
    return {"classify": _one_vs_rest(function), "multilabel": _by_column(function, needs_two_values=True)}


def _of_classes(function: Callable[..., float]) -> Function:
    return lambda y, predicted, weight: float(function(y, predicted, sample_weight=weight))


def _log_loss(y: Array, predicted: Array, weight: Array | None) -> float:
    return float(sk.log_loss(y, predicted, sample_weight=weight, labels=np.arange(predicted.shape[1])))


def _balanced_accuracy(y: Array, predicted: Array, sample_weight: Array | None) -> float:
    """The mean recall of the classes in ``y``; unlike scikit-learn's function, silent about classes not in it."""
    options = {"labels": np.unique(y), "average": "macro", "zero_division": 0.0}
    return float(sk.recall_score(y, predicted, sample_weight=sample_weight, **options))


def _precision_at(count: int, y: Array, predicted: Array, sample_weight: Array | None) -> float:
    """The share of 1 in ``y`` among the items that rank first; of items that tie for the last places, their mean."""
    last = np.sort(predicted)[-min(count, len(y))]
    above, ties = predicted > last, predicted == last
    weight = above + ties * (min(count, len(y)) - above.sum()) / ties.sum()
    return float(np.average(y, weights=weight if sample_weight is None else weight * sample_weight))


_F1 = partial(sk.f1_score, zero_division=0.0)


class _Metrics(dict[str, Metric]):
    """The metrics by name; ``precision@K`` is there for every K."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or re.fullmatch(r"precision@[1-9]\d{0,8}", str(name)) is not None

    def __missing__(self, name: str) -> Metric:
        if name not in self:
            raise KeyError(name)
        count = int(name.partition("@")[2])
        functions = _ranking(partial(_precision_at, count))
        return Metric(name, f"precision at {count:,}", functions, uses="probabilities", has_positive=True)


METRICS = _Metrics(
    (metric.name, metric)
    for metric in (
        Metric("accuracy", "accuracy", {"classify": _of_classes(sk.accuracy_score)}),
        Metric(
            "balanced",
            "balanced accuracy",
            {
                "classify": _of_classes(_balanced_accuracy),
                "multilabel": _by_column(_balanced_accuracy, needs_two_values=True),
            },
            needs_decision=True,
        ),
        Metric(
            "macro-f1",
            "macro F1",
            {"classify": _of_classes(partial(_F1, average="macro")), "multilabel": _by_column(_F1)},
            needs_decision=True,
        ),
        Metric("auc", "ROC AUC", _ranking(sk.roc_auc_score), uses="probabilities"),
        Metric(
            "average-precision",
            "average precision",
            _ranking(sk.average_precision_score),
            uses="probabilities",
            has_positive=True,
        ),
        _Metrics()["precision@100"],
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
)


def needs_decision(name: Any) -> bool:
    """Whether this is the name of a metric that :attr:`Metric.needs_decision`."""
    return name in METRICS and METRICS[name].needs_decision


def metrics_for(task: Task) -> list[str]:
    """The names of the metrics that fit a task.

    >>> metrics_for("regress")
    ['rmse', 'mae', 'r2']
    """
    return [name for name, metric in METRICS.items() if task in metric.functions]


def find_metric(name: str, task: Task) -> Metric:
    """The metric of that name, if it fits the task."""
    if name not in METRICS or task not in METRICS[name].functions:
        hint = f"use {', '.join(metrics_for(task))}"
        raise DemonetError(f"{name!r} does not fit the task {task!r}", argument="metric", hint=hint)
    return METRICS[name]


def metric_of_items(metric: str, outputs: NDArray[Any], y: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """``[items]`` what a metric is the mean of; None if it is no mean over items."""
    if metric == "accuracy":
        return (outputs.argmax(1) == y).astype(np.float64)
    if metric == "log-loss":
        least = np.finfo(outputs.dtype).eps  # as scikit-learn has it
        return -np.log(np.clip(outputs[np.arange(len(y)), y], least, 1 - least))
    return None


def percentiles(drawn: Any) -> list[float] | None:
    """The 95 % interval of what a bootstrap has drawn, without what is not finite; None if nothing is left."""
    known = np.asarray(drawn)[np.isfinite(drawn)]
    return [float(bound) for bound in np.percentile(known, [2.5, 97.5])] if known.size else None


def imbalance(counts: Array) -> float | None:
    """The share of the most frequent class, if it makes accuracy meaningless; None otherwise.

    >>> imbalance(np.array([10, 90])), imbalance(np.array([40, 60]))
    (0.9, None)
    """
    share = float(np.max(counts) / max(1, np.sum(counts)))
    return share if share >= IMBALANCED else None


def metric_of_classes(counts: Array) -> str:
    """The metric if none is chosen: accuracy; of very unequal classes average precision (of two), or macro F1.

    >>> metric_of_classes(np.array([10, 90])), metric_of_classes(np.array([5, 5, 90]))
    ('average-precision', 'macro-f1')
    """
    if imbalance(counts) is None:
        return "accuracy"
    return "average-precision" if len(counts) == 2 else "macro-f1"


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
