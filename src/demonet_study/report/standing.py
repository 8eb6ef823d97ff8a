"""Where the ensemble stands: on each data set and under each rule, against every floor, baseline and network.

Both sides follow the same rule. Comparisons are paired by split and use both tests of
:mod:`~demonet.runs.statistics`, over splits and for new data; Holm's correction covers all rivals on a data set
under a rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from demonet.runs.statistics import Difference
from demonet_study.experiments.accuracy import AUTO
from demonet_study.experiments.statistics import Comparison, against_each, ratio_of
from demonet_study.report.grid import NOT_YET, ResultRow
from demonet_study.report.names import OURS, group_of, set_name

STRICT, REFIT = "strict", "refit"
"""The two rules of :mod:`demonet_study.experiments.accuracy`."""
StandingWords = Literal["above all", "below some", "level", "not yet run"]


@dataclass(frozen=True)
class Verdict:
    """What one of the two tests says."""

    # "above all": significantly above every rival. "below some": significantly below at least one. "level": neither. No
    # verdict before all runs are there.
    words: StandingWords
    p: float  # of the difference from the best rival, corrected for all rivals on this set
    below: tuple[str, ...]  # the rivals that are significantly above ours

    def __str__(self) -> str:
        return f"below {', '.join(self.below)}" if self.words == "below some" else self.words


@dataclass(frozen=True)
class Standing:
    """The ensemble on one data set under one rule."""

    ours: ResultRow
    best: ResultRow | None  # the rival with the highest mean; None as long as a rival lacks runs
    # Ours minus the best rival; None as long as there is none, or fewer than two paired runs.
    difference: Difference | None
    missing: tuple[str, ...]  # rivals that lack runs
    over_splits: Verdict  # the verdict of the test over random splits of the same items
    new_data: Verdict  # the verdict of the corrected test


def standings(rows: Sequence[ResultRow], rule: str) -> list[Standing]:
    """The ensemble on every data set on which it is wanted, in the order of the rows."""
    under = [row for row in rows if row.rule == rule]
    ours = [row for row in under if row.method == AUTO]
    return [_standing(row, [other for other in under if other.dataset == row.dataset]) for row in ours]


def _standing(ours: ResultRow, rows: Sequence[ResultRow]) -> Standing:
    rivals = [row for row in rows if group_of(row.method) != OURS]
    whole = {row.full_name: row for row in rivals if row.whole}
    missing = tuple(row.full_name for row in rivals if not row.whole)
    values = {"": ours.values, **{name: row.values for name, row in whole.items()}}
    found = {one.rival: one for one in against_each(values, list(whole), ratio_of(ours.split))}
    best = None if missing else max(whole.values(), key=lambda row: row.mean, default=None)
    against = found.get(best.full_name) if best else None
    complete = ours.whole and not missing

    def verdict(p_of: Callable[[Comparison], float]) -> Verdict:
        sign = {name: one.way(p_of(one)) for name, one in found.items()}
        below = tuple(name for name, way in sign.items() if way == -1)
        words: StandingWords = "level"
        if not complete or not found:
            words = "not yet run"
        elif below:
            words = "below some"
        elif all(way == 1 for way in sign.values()):
            words = "above all"
        return Verdict(words, p_of(against) if against else math.nan, below)

    difference = against.difference if against else None
    over_splits, new_data = verdict(lambda one: one.over_splits), verdict(lambda one: one.corrected)
    return Standing(ours, best, difference, missing, over_splits, new_data)


def in_words(found: Sequence[Standing], rule: str) -> str:
    """One paragraph: on which data sets the ensemble is above all rivals, below some, and level with the best."""
    if all(one.new_data.words == NOT_YET for one in found):
        return f"Under `{rule}`: {NOT_YET}."
    said = [
        f"Over splits the ensemble is, under `{rule}`, {_listed(found, [one.over_splits.words for one in found])}.",
        f"For new data it is {_listed(found, [one.new_data.words for one in found])}.",
    ]
    return " ".join(said)


def _listed(found: Sequence[Standing], words: Sequence[StandingWords]) -> str:
    parts = []
    for kind, said in (
        ("above all", "significantly above every rival"),
        ("below some", "significantly below at least one rival"),
        ("level", "neither"),
        ("not yet run", "not yet run"),
    ):
        sets = [set_name(one.ours.dataset) for one, word in zip(found, words, strict=True) if word == kind]
        if sets:
            parts.append(f"{said} on {len(sets)} of {len(found)} data sets ({', '.join(sets)})")
        elif kind != "not yet run":
            parts.append(f"{said} on none")
    return "; ".join(parts)
