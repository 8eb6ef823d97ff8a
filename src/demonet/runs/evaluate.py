"""Measuring a trained model: metrics with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import average_precision_score, precision_recall_fscore_support

from demonet.data.splits import Split
from demonet.runs.inputs import Inputs
from demonet.runs.statistics import spread
from demonet.train.metrics import METRICS, Metric, Task, percentiles
from demonet.train.objective import decided, value_of

Array = NDArray[Any]
RESAMPLES = 200  # of the bootstrap
# Measured on the test part besides the metric of the run, by their names in metrics.json.
ALSO: dict[Task, dict[str, str]] = {
    "classify": {"test_accuracy": "accuracy", "macro_f1": "macro-f1"},
    "multilabel": {"macro_f1": "macro-f1", "average_precision": "average-precision"},
    "regress": {"rmse": "rmse", "mae": "mae", "r2": "r2"},
}


def measure(inputs: Inputs, outputs: Array, strict: Array, split: Split, metric: Metric) -> dict[str, Any]:
    """Validation metrics, and on the test part those besides the metric of the run; None if that part is empty.

    Args:
        inputs: The targets and their task.
        outputs: ``[items, outputs]`` probabilities or values of the model that is saved: those on the test part count.
        strict: The same of the model that was fitted on the training part alone: those on the validation part count.
        split: The parts.
        metric: The metric of the run, with the decision that predictions are made by.
    """
    y, task, (val, test) = inputs.data.y.numpy(), inputs.task, (split.val.numpy(), split.test.numpy())

    def score(metric: Metric, rows: Array) -> float | None:
        given = outputs if rows is test else strict
        return value_of(metric, task, y[rows], given[rows]) if rows.size else None

    def interval(metric: Metric) -> list[float] | None:
        return interval_of(metric, task, y[test], outputs[test]) if test.size else None

    also = {key: replace(METRICS[name], decision=metric.decision) for key, name in ALSO[task].items()}
    result: dict[str, Any] = {
        "task": task,
        "metric": metric.name,
        "val_metric": score(metric, val),
        **{key: score(other, test) for key, other in also.items()},
    }
    if task == "classify":
        accuracy = also["test_accuracy"]
        result |= {"val_accuracy": score(accuracy, val), "test_interval": interval(accuracy)}
    elif task == "regress":
        result["intervals"] = {key: interval(other) for key, other in also.items()}
    elif test.size:
        result["labels"] = _label_rows(inputs.names, y[test], outputs[test], metric.decision)
    return result


def test_facts(inputs: Inputs, outputs: Array, split: Split, metric: Metric) -> dict[str, Any]:
    """The test metric and its interval, of one rule; of classes also the area under the ROC curve."""
    y, test = inputs.data.y.numpy(), split.test.numpy()
    if not test.size:
        return {"test_metric": None, "test_metric_interval": None}
    given = inputs.task, y[test], outputs[test]
    area = {"auc": value_of(METRICS["auc"], *given)} if inputs.task == "classify" else {}
    return {"test_metric": value_of(metric, *given), "test_metric_interval": interval_of(metric, *given), **area}


def interval_of(metric: Metric, task: Task, y: Array, outputs: Array, resamples: int = RESAMPLES) -> list[float] | None:
    """A 95 % interval: Wilson's for accuracy, otherwise the percentiles of a bootstrap over items with a fixed seed."""
    if metric.name == "accuracy":
        return wilson(int((decided(task, outputs, metric.decision) == y).sum()), len(y))
    generator = np.random.default_rng(0)
    draws = (generator.integers(0, len(y), len(y)) for _ in range(resamples))
    values = [value for rows in draws if (value := value_of(metric, task, y[rows], outputs[rows])) is not None]
    return percentiles(values)


def over_splits(results: list[dict[str, Any]]) -> dict[str, Any]:
    """The metrics of every split, and the mean of the test metric with its standard deviation and Student's interval.

    The interval is cut to the range of the metric.
    """
    metric = METRICS[results[0]["metric"]]
    values = [result["test_metric"] for result in results]
    names = ["test_metric", "val_metric", *ALSO[results[0]["task"]], "val_accuracy"]
    return {
        "splits": len(results),
        "mean": None if None in values else float(np.mean(values)),
        "std": None if None in values else float(np.std(values, ddof=1)),
        "interval": None if None in values else mean_interval(metric, values),
        **{name: [result[name] for result in results] for name in names if name in results[0]},
        "floors": _floors_of(results),
        **{
            rule: {
                "test_metric": [result[rule]["test_metric"] for result in results],
                "floors": _floors_of([result[rule] for result in results]),
            }
            for rule in ("strict", "refit")
            if results[0].get(rule)
        },
    }


def _floors_of(results: list[dict[str, Any]]) -> dict[str, list[float | None]]:
    return {name: [result["floors"].get(name) for result in results] for name in results[0]["floors"]}


def mean_interval(metric: Metric, values: list[float]) -> list[float] | None:
    """Student's 95 % interval for the mean of a metric, cut to its range; None for a single value.

    >>> [round(bound, 3) for bound in mean_interval(METRICS["accuracy"], [0.7, 0.8, 0.9])]
    [0.552, 1.0]
    """
    low, high = metric_range(metric)
    mean, _, half = spread(values)
    return None if len(values) < 2 else [min(max(bound, low), high) for bound in (mean - half, mean + half)]


def metric_range(metric: Metric) -> tuple[float, float]:
    """The smallest and the largest value that a metric can have."""
    return (-np.inf if metric.name == "r2" else 0.0), (1.0 if metric.larger_is_better else np.inf)


def shown(value: float) -> str:
    """A metric as text: three decimals, or four digits where these would say too little or too much.

    >>> shown(0.8125), shown(0.00012345), shown(12345.6), shown(0.0)
    ('0.812', '0.0001234', '12,346', '0.000')
    """
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3f}" if value == 0 or abs(value) >= 0.01 else f"{value:.4g}"


def wilson(right: int, total: int) -> list[float]:
    """Wilson's 95 % interval for a proportion.

    >>> [round(bound, 3) for bound in wilson(8, 10)]
    [0.49, 0.943]
    """
    interval = stats.binomtest(right, total).proportion_ci(method="wilson")
    return [float(interval.low), float(interval.high)]


def _label_rows(names: list[str], y: Array, outputs: Array, decision: Sequence[float]) -> list[dict[str, Any]]:
    """What is known of each label of a multi-label task on the test part."""
    rows, every = [], decided("multilabel", outputs, decision)
    for name, target, probability, predicted in zip(names, y.T, outputs.T, every.T, strict=True):
        known = ~np.isnan(target)
        true = target[known].astype(int)
        numbers = precision_recall_fscore_support(true, predicted[known], average="binary", zero_division=0.0)[:3]
        row = {"name": str(name), "positives": int(true.sum()), "known": int(known.sum())}
        row |= {key: float(number) for key, number in zip(("precision", "recall", "f1"), numbers, strict=True)}
        mixed = 0 < true.sum() < true.size
        row["average_precision"] = float(average_precision_score(true, probability[known])) if mixed else None
        rows.append(row)
    return rows
