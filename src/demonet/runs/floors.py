"""The floors under a run: what needs no network, tested on the same items."""

from __future__ import annotations

import numpy as np
from scipy import stats

from demonet import baselines
from demonet.data.splits import Split
from demonet.runs.inputs import Inputs

FLOORS = ("majority", "degree-knn", "attribute-lr")


def floors(inputs: Inputs, split: Split, seed: int) -> dict[str, float]:
    """Test accuracy of the commonest class, of the degree alone and, where there are some, of the attributes alone."""
    if not split.test.numel():
        return {}
    names = [name for name in FLOORS if name != "attribute-lr" or inputs.graphs[0].x is not None]
    y = inputs.data.y
    return {name: baselines.get(name)().fit(inputs.data, split, seed).score(split.test, y) for name in names}


def wilson(right: int, total: int) -> list[float]:
    """Wilson's 95 % interval for a share.

    >>> [round(bound, 3) for bound in wilson(8, 10)]
    [0.49, 0.943]
    """
    interval = stats.binomtest(right, total).proportion_ci(method="wilson")
    return [float(interval.low), float(interval.high)]


def student(values: list[float]) -> list[float] | None:
    """Student's 95 % interval for the mean of repeated splits; None for a single one.

    >>> [round(bound, 3) for bound in student([0.7, 0.8, 0.9])]
    [0.552, 1.048]
    """
    if len(values) < 2:
        return None
    reach = float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5)
    return [float(np.mean(values)) - reach, float(np.mean(values)) + reach]
