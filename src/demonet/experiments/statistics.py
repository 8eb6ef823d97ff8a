r"""Statistics over runs: spread, paired differences, correction for multiple comparisons, ranks over data sets.

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from demonet.data.protocol import FRESH, folds_of, train_share
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


def ratio_of(split: str) -> float:
    """The number of tested items divided by that of known items, for a protocol by its name.

    A method knows the validation part, too, as it selects epochs or settings by it.

    Runs on a graph that is generated anew each time share no items.

    >>> [round(ratio_of(split), 3) for split in ("thirds", "10/20/70", "train:0.8", "nested:10", "fresh:thirds")]
    [0.5, 2.333, 0.25, 0.111, 0.0]
    """
    if split.startswith(FRESH):
        return 0.0
    if folds := folds_of(split):
        return 1 / (folds - 1)
    if split == "thirds":
        return 0.5
    share = train_share(split)
    if share is not None:
        return round((1 - share) / share, 12)
    train, val, test = (float(part) for part in split.split("/"))
    return test / (train + val)


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
    return _difference(float(d.mean()), corrected, over_splits, 2 * 0.5**runs, runs)


def pooled(found: Sequence[Difference]) -> Difference:
    r"""The mean difference over data sets, with equal weight for each. It holds for these data sets only.

    Sets are independent, so the error of the mean of m is :math:`\sqrt{\sum_i e_i^2} / m`, with the degrees of freedom
    of Welch and Satterthwaite, :math:`(\sum e_i^2)^2 / \sum (e_i^4 / f_i)`.
    """
    if not found:
        raise DemonetError("no data sets to pool")
    mean = float(np.round([one.mean for one in found], 12).mean())
    freedoms = [one.freedom for one in found]
    corrected, over_splits = (
        _pooled_error(errors, freedoms)
        for errors in ([one.error for one in found], [one.splits_error for one in found])
    )
    otherwise, runs = max(one.p for one in found), min(one.runs for one in found)
    return _difference(mean, corrected, over_splits, otherwise, runs)


def _pooled_error(errors: Sequence[float], freedoms: Sequence[float]) -> tuple[float, float]:
    """The error of the mean of several independent differences, and its degrees of freedom."""
    squares = np.square(errors)
    parts = float((squares**2 / np.array(freedoms)).sum())
    freedom = float(squares.sum()) ** 2 / parts if parts > 0 else math.inf
    return math.sqrt(float(squares.sum())) / len(errors), freedom


def _difference(
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


@dataclass(frozen=True)
class Against:
    """A method against a baseline on the same splits.

    ``corrected`` and ``over_splits`` are p for new data and over splits, after Holm's correction.
    """

    method: str
    baseline: str
    difference: Difference
    corrected: float
    over_splits: float


def against_each(runs: Mapping[str, Sequence[float]], baselines: Sequence[str], ratio: float = 0.0) -> list[Against]:
    """Compare every method that is not a baseline with every baseline; Holm's correction covers all comparisons.

    Args:
        runs: The values of each method on one data set, by seed; methods with fewer than two are left out.
        baselines: The names of the baselines among them.
        ratio: As in :func:`paired`.
    """
    enough = {name: values for name, values in runs.items() if len(values) > 1}
    rivals = [name for name in baselines if name in enough]
    methods = [name for name in enough if name not in baselines]
    pairs = [(method, rival) for method in methods for rival in rivals]
    found = [paired(enough[method], enough[rival], ratio) for method, rival in pairs]
    corrected, over_splits = holm([one.p for one in found]), holm([one.splits_p for one in found])
    every = zip(pairs, found, corrected, over_splits, strict=True)
    return [Against(*pair, one, p, splits_p) for pair, one, p, splits_p in every]


def against_best(runs: Mapping[str, Sequence[float]], baselines: Sequence[str], ratio: float = 0.0) -> list[Against]:
    """Compare every method that is not a baseline with the baseline of the highest mean.

    The best baseline is found from the same runs. So every method is compared with every baseline, Holm's correction
    covers all of these comparisons, and only then is the best baseline selected. The arguments are those of
    :func:`against_each`.
    """
    rivals = [name for name in baselines if len(runs.get(name, ())) > 1]
    best = max(rivals, key=lambda name: statistics.mean(runs[name]), default=None)
    return [one for one in against_each(runs, baselines, ratio) if one.baseline == best]


@dataclass(frozen=True)
class Ranks:
    """Average ranks of methods; 1 is the best, ties share their rank.

    Attributes:
        ranks: The average rank of each method.
        sets: The data sets that have all methods.
        left_out: The data sets that lack some method.
        friedman: p of Friedman's test; NaN with fewer than three methods or two data sets.
    """

    ranks: Mapping[str, float]
    sets: tuple[str, ...]
    left_out: tuple[str, ...]
    friedman: float


def average_ranks(means: Mapping[str, Mapping[str, float]], methods: Sequence[str]) -> Ranks:
    """Rank methods over the data sets that have all of them.

    Args:
        means: For each data set the mean of each method (higher is better; NaN if it was not run).
        methods: The methods to rank.
    """
    whole = [name for name, row in means.items() if not any(math.isnan(row.get(m, math.nan)) for m in methods)]
    left_out = tuple(name for name in means if name not in whole)
    table = np.array([[means[name][method] for method in methods] for name in whole]).reshape(-1, len(methods))
    if not whole:
        return Ranks(dict.fromkeys(methods, math.nan), (), left_out, math.nan)
    ranks = stats.rankdata(-table, axis=1).mean(axis=0)
    friedman = math.nan
    if len(methods) > 2 and len(whole) > 1:
        # If all methods tie everywhere, scipy would divide by zero.
        tied = all(len(set(row)) == 1 for row in table.tolist())
        friedman = 1.0 if tied else float(stats.friedmanchisquare(*table.T).pvalue)
    return Ranks(dict(zip(methods, ranks.tolist(), strict=True)), tuple(whole), left_out, friedman)
