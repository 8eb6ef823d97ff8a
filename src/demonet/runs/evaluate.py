"""Measuring a trained model: accuracy with its interval, and simple baselines on the same test items."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import f1_score

from demonet import baselines
from demonet.data.splits import Split
from demonet.runs.inputs import Inputs

BASELINES = ("majority", "degree-knn", "attribute-lr")


def measure(probabilities: NDArray[np.float64], y: NDArray[np.int64], split: Split) -> dict[str, Any]:
    """Validation and test accuracy, Wilson's interval and macro F1 on the test part; None if that part is empty."""
    prediction = probabilities.argmax(1)
    val, test = split.val.numpy(), split.test.numpy()
    val_accuracy = float((prediction[val] == y[val]).mean())
    if not test.size:
        return {"test_accuracy": None, "test_interval": None, "val_accuracy": val_accuracy, "macro_f1": None}
    right = int((prediction[test] == y[test]).sum())
    return {
        "test_accuracy": right / test.size,
        "test_interval": wilson(right, test.size),
        "val_accuracy": val_accuracy,
        "macro_f1": float(f1_score(y[test], prediction[test], average="macro")),
    }


def simple_baselines(inputs: Inputs, split: Split, seed: int) -> dict[str, float]:
    """Test accuracy of the most frequent class, of the degree alone and, if there are some, of the attributes alone."""
    if not split.test.numel():
        return {}
    names = [name for name in BASELINES if name != "attribute-lr" or inputs.graphs[0].x is not None]
    y = inputs.data.y
    return {name: baselines.get(name)().fit(inputs.data, split, seed).score(split.test, y) for name in names}


def over_splits(results: list[dict[str, Any]]) -> dict[str, Any]:
    """The metrics of every split, and the mean test accuracy with its standard deviation and Student's interval."""
    accuracies = [result["test_accuracy"] for result in results]
    return {
        "splits": len(results),
        "mean": float(np.mean(accuracies)),
        "std": float(np.std(accuracies, ddof=1)),
        "interval": student(accuracies),
        **{name: [result[name] for result in results] for name in ("test_accuracy", "val_accuracy", "macro_f1")},
        "floors": {name: [result["floors"][name] for result in results] for name in results[0]["floors"]},
    }


def wilson(right: int, total: int) -> list[float]:
    """Wilson's 95 % interval for a proportion.

    >>> [round(bound, 3) for bound in wilson(8, 10)]
    [0.49, 0.943]
    """
    interval = stats.binomtest(right, total).proportion_ci(method="wilson")
    return [float(interval.low), float(interval.high)]


def student(values: list[float]) -> list[float] | None:
    """Student's 95 % interval for the mean; None for a single value.

    >>> [round(bound, 3) for bound in student([0.7, 0.8, 0.9])]
    [0.552, 1.048]
    """
    if len(values) < 2:
        return None
    reach = float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5)
    return [float(np.mean(values)) - reach, float(np.mean(values)) + reach]
