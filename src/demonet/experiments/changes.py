"""What a change to a model brings: run by run against the full one, on a set and over all sets of a kind.

A change is a row of the ablation. Its p is corrected by Holm for all changes of a model and all kinds of sets, and asks
for every run that was wanted; what is there until then has its difference and interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from demonet.data.catalog import find
from demonet.experiments.methods import family_in_catalog
from demonet.experiments.parts.ablation import FULL
from demonet.experiments.parts.row import Row
from demonet.experiments.statistics import Difference, holm, paired, pooled, ratio_of

BY_DEGREE, AIRPORTS, ATTRIBUTES, GRAPHS = "classes by degree", "airports", "with attributes", "graphs"


@dataclass(frozen=True)
class Change:
    """What one change brings over the sets of a kind.

    Attributes:
        variant: What is changed.
        kind: Of which sets.
        sets: Those that both the changed and the full model have runs on.
        missing: Those of the kind that lack runs.
        difference: The mean of the sets' differences from the full model, each set counting once.
        p: Of that difference, corrected; NaN while runs are missing.
    """

    variant: str
    kind: str
    sets: tuple[str, ...]
    missing: tuple[str, ...]
    difference: Difference | None
    p: float = math.nan


def kind_of(dataset: str) -> str:
    """Sets on which a change may mean the same.

    >>> kind_of("brazil"), kind_of("facebook"), kind_of("flickr"), kind_of("MUTAG")
    ('airports', 'classes by degree', 'with attributes', 'graphs')
    """
    family = family_in_catalog(dataset)
    if family == "nodes":
        return AIRPORTS if find(dataset).statistics.class_counts else BY_DEGREE
    return ATTRIBUTES if family == "attributes" else GRAPHS


def on_sets(rows: Sequence[Row]) -> dict[tuple[str, str], Difference]:
    """Of one model's rows: how far each change is above the full model, by (change, set), where both have two runs."""
    full = {row.dataset: row.values for row in rows if row.variant == FULL}
    return {
        (row.variant, row.dataset): paired(row.values, full[row.dataset], ratio_of(row.split))
        for row in rows
        if row.variant != FULL and min(len(row.values), len(full.get(row.dataset, ()))) > 1
    }


def over_kinds(rows: Sequence[Row]) -> list[Change]:
    """Of one model's rows: every change over every kind of sets on which it can be made."""
    found = on_sets(rows)
    lacking = {(row.variant, row.dataset) for row in rows if not row.whole}
    changes = []
    for variant in dict.fromkeys(row.variant for row in rows if row.variant != FULL):
        sets = [row.dataset for row in rows if row.variant == variant]
        for kind in dict.fromkeys(map(kind_of, sets)):
            members = [name for name in sets if kind_of(name) == kind]
            there = tuple(name for name in members if (variant, name) in found)
            missing = tuple(name for name in members if {(variant, name), (FULL, name)} & lacking)
            whole = pooled([found[variant, name] for name in there]) if there else None
            changes.append(Change(variant, kind, there, missing, whole))
    made = [math.nan if one.missing or one.difference is None else one.difference.p for one in changes]
    return [replace(one, p=p) for one, p in zip(changes, holm(made), strict=True)]
