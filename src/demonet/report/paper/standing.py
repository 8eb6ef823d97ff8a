"""Where the ensemble stands: on each data set and under each rule, against every floor, baseline and network.

Both sides follow the same rule. Comparisons are paired by split and use the corrected test of
:mod:`~demonet.experiments.statistics`; Holm's correction covers all rivals on a data set under a rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from demonet.experiments.default import AUTO
from demonet.experiments.statistics import Difference, against_each, ratio_of
from demonet.report.paper.grid import LEVEL, NOT_YET, ResultRow
from demonet.report.paper.names import OURS, group_of, set_name

STRICT, REFIT = "strict", "refit"
"""The two rules of :mod:`demonet.experiments.default`."""
StandingWords = Literal["above all", "below some", "level", "not yet run"]


@dataclass(frozen=True)
class Standing:
    """The ensemble on one data set under one rule.

    Attributes:
        ours: Its row.
        best: The rival with the highest mean; ``None`` as long as a rival lacks runs.
        difference: Ours minus the best rival; ``None`` as long as there is none, or fewer than two paired runs.
        p: Its p, corrected for all rivals on this set.
        below: The rivals that are significantly above ours.
        missing: Rivals that lack runs.
        verdict: ``"above all"``: significantly above every rival. ``"below some"``: significantly below at least one.
            ``"level"``: neither. No verdict before all runs are there.
    """

    ours: ResultRow
    best: ResultRow | None
    difference: Difference | None
    p: float
    below: tuple[str, ...]
    missing: tuple[str, ...]
    verdict: StandingWords


def standings(rows: Sequence[ResultRow], rule: str) -> list[Standing]:
    """The ensemble on every data set on which it is wanted, in the order of the rows."""
    under = [row for row in rows if row.rule == rule]
    return [_standing(row, [other for other in under if other.dataset == row.dataset]) for row in under if _is_it(row)]


def _is_it(row: ResultRow) -> bool:
    return row.method == AUTO


def _standing(ours: ResultRow, rows: Sequence[ResultRow]) -> Standing:
    rivals = [row for row in rows if group_of(row.method) != OURS]
    whole = {row.full_name: row for row in rivals if row.whole}
    missing = tuple(row.full_name for row in rivals if not row.whole)
    values = {"": ours.values, **{name: row.values for name, row in whole.items()}}
    found = {one.baseline: one for one in against_each(values, list(whole), ratio_of(ours.split))}
    best = None if missing else max(whole.values(), key=lambda row: row.mean, default=None)
    against = found.get(best.full_name) if best else None
    below = tuple(name for name, one in found.items() if one.corrected < LEVEL and one.difference.mean < 0)
    above = [one for one in found.values() if one.corrected < LEVEL and one.difference.mean > 0]
    verdict: StandingWords = "level"
    if not ours.whole or missing or not found:
        verdict = "not yet run"
    elif below:
        verdict = "below some"
    elif len(above) == len(found):
        verdict = "above all"
    difference, p = (against.difference, against.corrected) if against else (None, math.nan)
    return Standing(ours, best, difference, p, below, missing, verdict)


def in_words(found: Sequence[Standing], rule: str) -> str:
    """One paragraph: on which data sets the ensemble is above all rivals, below some, and level with the best."""
    if all(one.verdict == NOT_YET for one in found):
        return f"Under `{rule}`: {NOT_YET}."
    parts = []
    for words, said in (
        ("above all", "significantly above every rival"),
        ("below some", "significantly below at least one rival"),
        ("level", "neither"),
        ("not yet run", "not yet run"),
    ):
        sets = [set_name(one.ours.dataset) for one in found if one.verdict == words]
        if sets or words != "not yet run":
            parts.append(f"{said} on {len(sets)} of {len(found)} data sets" + (f" ({', '.join(sets)})" if sets else ""))
    return f"Under `{rule}` the ensemble is " + "; ".join(parts) + "."
