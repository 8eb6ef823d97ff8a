"""Statistics over the runs of a table: differences over data sets, comparisons with baselines, ranks over data sets.

The tests behind them are those of :mod:`demonet.runs.statistics`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
from scipy import stats

from demonet.errors import DemonetError
from demonet.runs.statistics import Difference, difference_of, holm, paired
from demonet_study.protocol import FRESH, folds_of, train_share

LEVEL = 0.05  # a smaller p is significant


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
    return difference_of(mean, corrected, over_splits, otherwise, runs)


def _pooled_error(errors: Sequence[float], freedoms: Sequence[float]) -> tuple[float, float]:
    """The error of the mean of several independent differences, and its degrees of freedom."""
    squares = np.square(errors)
    parts = float((squares**2 / np.array(freedoms)).sum())
    freedom = float(squares.sum()) ** 2 / parts if parts > 0 else math.inf
    return math.sqrt(float(squares.sum())) / len(errors), freedom


@dataclass(frozen=True)
class Comparison:
    """A method against another on the same splits, on one data set or over several."""

    subject: Any
    rival: Any
    difference: Difference | None  # subject minus rival; None without paired runs
    over: str = ""  # the data set, or a name for several
    sets: tuple[str, ...] = ()  # data sets with paired runs
    missing: tuple[str, ...] = ()  # data sets that lack runs
    # p for new data and over splits, after Holm's correction; NaN while runs are missing.
    corrected: float = math.nan
    over_splits: float = math.nan

    @classmethod
    def over_sets(
        cls, subject: Any, rival: Any, over: str, compared: Mapping[str, tuple[Difference | None, bool]], **more: Any
    ) -> Self:
        """From the difference on each data set, None without paired runs, and whether no run is missing there."""
        found = {name: one for name, (one, _) in compared.items() if one is not None}
        missing = tuple(name for name, (_, whole) in compared.items() if not whole)
        difference = pooled(list(found.values())) if found else None
        return cls(subject, rival, difference, over, tuple(found), missing, **more)

    def way(self, p: float) -> int:
        """1 if the subject is significantly above the rival by this p, -1 if it is below, otherwise 0."""
        if self.difference is None or not p < LEVEL:
            return 0
        return 1 if self.difference.mean > 0 else -1


C = TypeVar("C", bound=Comparison)


def with_holm(family: Sequence[C]) -> list[C]:
    """Apply Holm's correction. Comparisons that lack runs count as members of the family, but get no p."""
    made = [None if one.missing else one.difference for one in family]
    corrected = holm([one.p if one else math.nan for one in made])
    over_splits = holm([one.splits_p if one else math.nan for one in made])
    every = zip(family, corrected, over_splits, strict=True)
    return [replace(one, corrected=p, over_splits=splits_p) for one, p, splits_p in every]


def against_each(runs: Mapping[str, Sequence[float]], baselines: Sequence[str], ratio: float = 0.0) -> list[Comparison]:
    """Compare every method that is not a baseline with every baseline; Holm's correction covers all comparisons.

    Args:
        runs: The values of each method on one data set, by seed; methods with fewer than two are left out.
        baselines: The names of the baselines among them.
        ratio: As in :func:`paired`.
    """
    enough = {name: values for name, values in runs.items() if len(values) > 1}
    rivals = [name for name in baselines if name in enough]
    methods = [name for name in enough if name not in baselines]
    return with_holm(
        [
            Comparison(method, rival, paired(enough[method], enough[rival], ratio))
            for method in methods
            for rival in rivals
        ]
    )


def against_best(runs: Mapping[str, Sequence[float]], baselines: Sequence[str], ratio: float = 0.0) -> list[Comparison]:
    """Compare every method that is not a baseline with the baseline of the highest mean.

    The best baseline is found from the same runs. So every method is compared with every baseline, Holm's correction
    covers all of these comparisons, and only then is the best baseline selected. The arguments are those of
    :func:`against_each`.
    """
    rivals = [name for name in baselines if len(runs.get(name, ())) > 1]
    best = max(rivals, key=lambda name: statistics.mean(runs[name]), default=None)
    return [one for one in against_each(runs, baselines, ratio) if one.rival == best]


@dataclass(frozen=True)
class Ranks:
    """Average ranks of methods; 1 is the best, ties share their rank."""

    ranks: Mapping[str, float]  # the average rank of each method
    sets: tuple[str, ...]  # the data sets that have all methods
    left_out: tuple[str, ...]  # the data sets that lack some method
    friedman: float  # p of Friedman's test; NaN with fewer than three methods or two data sets


def average_ranks(means: Mapping[str, Mapping[str, float]], methods: Sequence[str]) -> Ranks:
    """Rank methods over the data sets that have all of them.

    ``means`` has the mean of each method on each data set; higher is better, NaN was not run.
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
