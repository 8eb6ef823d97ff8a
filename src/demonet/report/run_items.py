"""The lists of a run's page: items by class, label or number, the ones to check, and those around a chosen node."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from demonet.report.bins import decimals
from demonet.report.items import Field, ItemList, Items, Surroundings
from demonet.report.page import Section
from demonet.runs.facts import RunFacts
from demonet.runs.run import Run

MOST_ITEMS, MOST_NUMBERS = 10_000, 60_000  # items, and items times lists, in a page; predictions.csv has all
MOST_LISTS = 100  # classes, labels or targets with a list of their own: the most frequent ones


def tested(run: Run) -> NDArray[np.int64]:
    """The test items whose target is known."""
    return np.flatnonzero((run.part == 2) & run.known)


def noun(run: Run) -> str:
    """What an item is."""
    return run.kind.removesuffix("s")


def size_name(run: Run) -> str:
    """What the size of an item is; where edges have a direction, the degree counts those that come in."""
    degree = "in-degree" if run.config.get("estimator", {}).get("directed") else "degree"
    return degree if run.kind == "nodes" else "number of nodes"


def listed(run: Run, facts: RunFacts) -> Items:
    """Every item, by each class, label or target, and by how doubtful it is; of many items, the first of each list."""
    fields, lists = {"classify": _classes, "multilabel": _labels, "regress": _numbers}[run.task](run, facts)
    fields["size"] = Field(size_name(run) if run.kind == "nodes" else "nodes", run.degree)
    if run.edge_count is not None:
        fields["edges"] = Field("edges", run.edge_count)
    sizes = [key for key in ("size", "edges") if key in fields]
    part = np.where(run.known & (run.part == -1), 0, run.part).astype(np.int8)
    start = -1 if (part == -1).any() else 2 if (part == 2).any() else None
    lists = [replace(one, fields=[*one.fields, *sizes], part=start if one.part == -1 else one.part) for one in lists]
    whole = Items(noun(run), run.ids, part, fields, lists, facts.reasons)
    kept = _kept(whole, len(lists))
    count = f"All {len(run.ids):,} {run.kind}."
    if kept.size < len(run.ids):
        count = (
            f"{kept.size:,} of {len(run.ids):,} {run.kind}: the first of each list. predictions.csv has all of them."
        )
    place = {item: row for row, item in enumerate(kept.tolist())}
    return Items(
        noun(run),
        [run.ids[item] for item in kept.tolist()],
        part[kept],
        {key: Field(one.name, one.values[kept], one.names, one.digits) for key, one in fields.items()},
        lists,
        {place[item]: told for item, told in facts.reasons.items() if item in place},
        count,
        edges=_edges(run, place),
        colour=lists[0].by if run.task != "classify" or facts.positive is not None else "prediction",
        title="The list",
        anchor="list",
    )


def surroundings(run: Run, items: Items) -> list[Section]:
    """The neighbours of a chosen node."""
    if items.edges is None or not items.edges.size:
        return []
    caption = (
        "The chosen node in the middle, its neighbours around it, theirs outside; of many, some. Filled: the label is "
        "known. Hollow: it is predicted. Click a node to choose it."
    )
    return [Surroundings(noun(run), caption, title="Around a node", anchor="around")]


def _kept(items: Items, lists: int) -> NDArray[np.int64]:
    """The items of the page: all, or the first ones of each list."""
    count, most = len(items.ids), min(MOST_ITEMS, MOST_NUMBERS // lists)
    if count <= most:
        return np.arange(count)
    return np.unique(np.concatenate([items.order(one)[: max(1, most // lists)] for one in items.lists]))


def _edges(run: Run, place: dict[int, int]) -> NDArray[np.int64] | None:
    """The edges between items of the page."""
    if run.edges is None:
        return None
    found = np.full(len(run.ids), -1)
    found[list(place)] = list(place.values())
    edges = found[run.edges]
    return edges[:, (edges >= 0).all(0)]


def _classes(run: Run, facts: RunFacts) -> tuple[dict[str, Field], list[ItemList]]:
    names, items, known = run.class_names, np.arange(len(run.ids)), run.y >= 0
    ordered = np.sort(run.outputs, axis=1)
    own = np.where(known, run.outputs[items, np.maximum(run.y, 0)], np.nan)
    wrong = np.where(known & (run.part == 2) & (run.prediction != run.y), own, np.nan)
    fields = {
        "prediction": Field("prediction", run.prediction, names),
        "confidence": Field("confidence", run.confidence),
        "label": Field("label", run.y, names),
        "own": Field("probability of its label", wrong),
        "margin": Field("margin", ordered[:, -1] - ordered[:, -2] if len(names) > 1 else run.confidence),
    }
    frequent = np.argsort(-np.bincount(run.y[known], minlength=len(names)), kind="stable")[:MOST_LISTS]
    chosen = sorted(frequent.tolist()) if facts.positive is None else [facts.positive, 1 - facts.positive]
    lists = []
    if facts.positive is None:
        lists.append(ItemList("Most certain first", "confidence", ["prediction", "confidence", "label"], part=-1))
    for label in chosen:
        fields[f"p{label}"] = Field(f"probability of {names[label]}", run.outputs[:, label])
        lists.append(
            ItemList(f"Most probably {names[label]}", f"p{label}", [f"p{label}", "prediction", "label"], part=-1)
        )
    doubtful = ItemList(
        "Least certain: labels for these help most",
        "margin",
        ["prediction", "confidence", "margin", "label"],
        False,
        -1,
    )
    mistaken = ItemList("Wrong in the test: check their labels", "own", ["label", "prediction", "own"], False, 2)
    return fields, [*lists, doubtful, *([mistaken] if np.isfinite(wrong).any() else [])]


def _labels(run: Run, facts: RunFacts) -> tuple[dict[str, Field], list[ItemList]]:
    known, wrong = ~np.isnan(run.y), ((run.prediction != run.y) & ~np.isnan(run.y)).sum(1)
    fields = {"wrong": Field("wrong labels", np.where(known.any(1), wrong, np.nan).astype(np.float32), digits=0)}
    lists = []
    for column in np.sort(np.argsort(-np.nansum(run.y, axis=0), kind="stable")[:MOST_LISTS]).tolist():
        name = run.class_names[column]
        fields[f"p{column}"] = Field(f"probability of {name}", run.outputs[:, column])
        true = np.where(known[:, column], np.nan_to_num(run.y[:, column]), -1).astype(np.int64)
        fields[f"y{column}"] = Field(f"label {name}", true, ("no", "yes"))
        lists.append(ItemList(f"Most probably {name}", f"p{column}", [f"p{column}", f"y{column}"], part=-1))
    return fields, [*lists, ItemList("Most wrong labels in the test", "wrong", ["wrong"], part=2)]


def _numbers(run: Run, facts: RunFacts) -> tuple[dict[str, Field], list[ItemList]]:
    fields: dict[str, Field] = {}
    lists = []
    for column, name in enumerate(run.class_names[:MOST_LISTS]):
        true, predicted = run.y[:, column], run.prediction[:, column].astype(np.float64)
        digits = decimals(float(np.std(predicted)))
        of = f" of {name}" if len(run.class_names) > 1 else ""
        residual = np.where(run.part == 2, true - predicted, np.nan)
        fields[f"value-{column}"] = Field(f"prediction{of}", predicted, digits=digits)
        fields[f"label-{column}"] = Field(f"true value{of}", true, digits=digits)
        fields[f"residual-{column}"] = Field(f"true − predicted{of}", residual, digits=digits)
        fields[f"error-{column}"] = Field(f"error{of}", np.abs(residual), digits=digits)
        both = [f"value-{column}", f"label-{column}"]
        lists.append(ItemList(f"Largest prediction{of}", both[0], both, part=-1))
        lists.append(ItemList(f"Smallest prediction{of}", both[0], both, descending=False, part=-1))
        errors = [*both, f"residual-{column}", f"error-{column}"]
        lists.append(ItemList(f"Largest error{of} in the test", f"error-{column}", errors, part=2))
    return fields, lists
