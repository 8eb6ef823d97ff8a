r"""Statistics over runs: spread, paired differences, correction for multiple comparisons.

Runs of two methods are paired: run i of both has split i. Random splits of one data set overlap, so their differences
are not independent, and an ordinary t-test is too optimistic. The corrected resampled t-test (Nadeau and Bengio,
Machine Learning 2003) increases the variance of the mean of k differences by the share of data that is tested:

.. math:: t = \frac{\bar d}{\sqrt{(1/k + n_{test} / n_{known}) \, s^2}}, \qquad k - 1 \text{ degrees of freedom}

They write n_train; here n_known is everything a method uses, training and validation part.

The two tests answer two questions. *Over splits* (the ordinary paired t-test): is the difference above zero in the mean
over all random splits of these very items? Given the items, random splits are independent draws. *For new data* (the
corrected test): would it be above zero on other items of the same kind?
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from demonet.errors import DemonetError


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean, standard deviation, and half the 95 % interval of the mean by Student's t; NaN if there are too few runs.

    >>> spread([0.5, 0.7])[0], spread([0.5])[1:], spread([])
    (0.6, (nan, nan), (nan, nan, nan))
    """
    runs = len(values)
    if not all(map(math.isfinite, values)):
        return math.nan, math.nan, math.nan
    mean = statistics.mean(values) if runs else math.nan
    if runs < 2:
        return mean, math.nan, math.nan
    std = statistics.stdev(values)
    return mean, std, float(special.stdtrit(runs - 1, 0.975)) * std / math.sqrt(runs)


@dataclass(frozen=True)
class Difference:
    """The difference between two methods.

    Attributes:
        mean: Mean of the differences.
        low, high: The 95 % interval of that mean.
        p: Two-sided p of the corrected t-test.
        runs: Number of pairs; over several data sets, the smallest.
        error: Standard error of the mean, as used by the corrected t-test.
        freedom: Its degrees of freedom.
        splits_error: Standard error of the mean over random splits of the same items, without the correction.
        splits_p: Two-sided p of the t-test over splits.
    """

    mean: float
    low: float
    high: float
    p: float
    runs: int
    error: float
    freedom: float
    splits_error: float
    splits_p: float


def paired(first: Sequence[float], second: Sequence[float], ratio: float = 0.0) -> Difference:
    """The difference of ``first`` minus ``second``, over the runs that both have.

    If all differences are equal, the t-test is undefined and p is that of the exact sign test.

    Args:
        first, second: One value per run, in the order of seeds.
        ratio: Tested items divided by known items; 0 if runs share no items.

    >>> found = paired([0.8, 0.9, 0.7], [0.6, 0.8, 0.7])
    >>> round(found.mean, 3), round(found.p, 4)
    (0.1, 0.2254)
    """
    runs = min(len(first), len(second))
    if runs < 2:
        raise DemonetError(f"{runs} paired runs", hint="a comparison needs at least 2")
    if not 0 <= ratio < math.inf:
        raise DemonetError(f"ratio={ratio}", hint="expected a finite number of at least 0")
    # Accuracies are fractions: rounding makes differences equal that are equal in exact arithmetic.
    d = np.round(np.asarray(first[:runs], float) - np.asarray(second[:runs], float), 12)
    variance, freedom = float(d.var(ddof=1)), float(runs - 1)
    corrected = math.sqrt((1 / runs + ratio) * variance), freedom
    over_splits = math.sqrt(variance / runs), freedom
    return difference_of(float(d.mean()), corrected, over_splits, 2 * 0.5**runs, runs)


def difference_of(
    mean: float, corrected: tuple[float, float], over_splits: tuple[float, float], otherwise: float, runs: int
) -> Difference:
    """A difference from its two errors, each with its degrees of freedom; the interval is the corrected one."""
    error, freedom = corrected
    half = float(special.stdtrit(freedom, 0.975)) * error if error > 0 else 0.0
    p, splits_p = (_two_sided(mean, *one, otherwise) for one in (corrected, over_splits))
    return Difference(mean, mean - half, mean + half, p, runs, error, freedom, over_splits[0], splits_p)


def _two_sided(mean: float, error: float, freedom: float, otherwise: float) -> float:
    """p by Student's t; with zero error, 1 for no difference and ``otherwise`` for any other."""
    if error > 0:
        return float(2 * special.stdtr(freedom, -abs(mean) / error))
    return 1.0 if mean == 0 else otherwise


def holm(p: Sequence[float]) -> list[float]:
    r"""Holm's correction: the i-th smallest of m is :math:`\max_{j \le i} \min(1, (m - j + 1) \, p_{(j)})`.

    NaN stands for a comparison that has not been made yet. It stays NaN, but counts in m.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [math.nan] * len(p)
    largest = 0.0
    made = sorted((value, place) for place, value in enumerate(p) if not math.isnan(value))
    for smaller, (value, place) in enumerate(made):
        largest = max(largest, min(1.0, (len(p) - smaller) * value))
        corrected[place] = largest
    return corrected
