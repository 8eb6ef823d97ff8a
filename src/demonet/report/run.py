"""The page of a run: the answer and its list first, then what it rests on, then how it was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from demonet.escape import visible
from demonet.report.bins import ranges
from demonet.report.chart import Axis, Chart, Panel, Series
from demonet.report.figures import learning_curves
from demonet.report.page import Facts, Figure, Page, Section, Table, Text
from demonet.report.palette import CATEGORICAL
from demonet.report.run_candidates import candidates, degree_matters
from demonet.report.run_items import listed, size_name, surroundings
from demonet.report.run_results import (
    MOST_POINTS,
    baselines,
    by_size,
    classes,
    curves,
    importance,
    labels,
    numbers,
    threshold,
)
from demonet.report.table_cells import Cell, Column
from demonet.runs.evaluate import shown
from demonet.runs.facts import RunFacts
from demonet.runs.run import Run

KEPT = "model"
MOST_LEGEND = 12  # classes with a colour of their own on the map
RESULTS: dict[str, tuple[Callable[[Run], list[Section]], ...]] = {
    "classify": (classes, by_size),
    "multilabel": (labels, by_size),
    "regress": (),
}


def run_page(run: Run) -> Page:
    """Question, answer and list; curves, threshold, importance, surroundings; baselines; the rest is folded."""
    ids = run.ids
    run = replace(run, ids=list(map(visible, ids)), class_names=list(map(visible, run.class_names)))
    facts = RunFacts(run)
    items = listed(replace(run, ids=ids), facts)
    return Page(
        facts.question,
        _subtitle(run),
        [
            Text(facts.answer, style="lead"),
            Facts(_headline(run, facts)),
            Text("\n\n".join([facts.sure, *facts.decisions]), title="How sure is it?", half=True),
            Text("\n\n".join(facts.next), title="What to do next", half=True, style="steps"),
            items,
            *(numbers(run) if run.task == "regress" else []),
            *curves(run, facts),
            *threshold(run, facts),
            *importance(run, facts),
            *surroundings(run, items),
            *baselines(run, facts),
            *_folded("Where it is right and wrong", [part for make in RESULTS[run.task] for part in make(run)]),
            *_folded("Candidates", candidates(run, facts)),
            *_folded("Does the degree matter here?", degree_matters(run, facts)),
            *_folded("Rules: what was fitted on what, and use elsewhere", _rules(run, facts)),
            *_folded("Training, degrees and a map", [*_curves(run), *_degrees(run), *_map(run)]),
            *_folded("Settings", _settings(run)),
        ],
    )


def _folded(name: str, sections: list[Section]) -> list[Section]:
    return [replace(section, fold=name) for section in sections]


def _subtitle(run: Run) -> str:
    """The data, and how many items were used for what."""
    split, name = run.metrics["split"], run.config.get("name")
    what = "nodes of a graph" if run.kind == "nodes" else "graphs"
    source = f"{visible(name)}: " if name else ""
    return (
        f"{source}{len(run.ids):,} {what}, {int(run.known.sum()):,} with a label; {split['train']:,} for training, "
        f"{split['val']:,} for validation, {split['test']:,} for the test.{_direction(run)}"
    )


def _direction(run: Run) -> str:
    """How edges were read, where nobody has said it, and the option for the other way."""
    told = run.config.get("direction", "")
    other = "`--undirected` drops" if told and run.config["reading"].get("directed") else "`--directed` keeps"
    return told and f" {told[0].upper()}{told[1:]} ({other} the direction)."


def _rules(run: Run, facts: RunFacts) -> list[Section]:
    """Under which rules the numbers were measured, by both of them, and what holds on another graph."""
    told = [facts.rules_told, facts.elsewhere, *facts.limits]
    found: list[Section] = [Text("\n\n".join(map(visible, filter(None, told))))]
    if len(facts.rules) > 1:
        for title, heads, rows in facts.tables:
            cells: list[list[Cell]] = [list(row) for row in rows]
            found.append(Table([head or "method" for head in heads], cells, f"{title}, with 95 % intervals."))
    return found


def _headline(run: Run, facts: RunFacts) -> dict[str, Cell]:
    """The most important numbers."""
    title, found = run.metric.title, {}
    if facts.methods:
        score = facts.methods[0].scores[facts.rule]
        found[f"test {title}"] = _number(run, score.value)
        how = "Wilson" if run.metric.name == "accuracy" else "bootstrap"
        if score.interval:
            found[f"95 % interval, {how}"] = "–".join(map(shown, score.interval))
    if facts.best_baseline is not None:
        best = facts.best_baseline
        found[f"best simple baseline: {best.name}"] = _number(run, best.scores[facts.rule].value)
    return found | {f"{name}, test": _number(run, value) for name, value in facts.others.items()}


def _number(run: Run, value: float) -> Cell:
    """Errors in the units of a target may be of any size."""
    return value if run.task != "regress" or 0.01 <= abs(value) < 1000 else shown(value)


def _curves(run: Run) -> list[Section]:
    title, history = run.metric.title, run.history
    curves = {key: history.get(key) or [] for key in ("train_loss", "val_loss")}
    curves[f"val_{title}"] = [np.nan if value is None else value for value in history.get("val_metric") or []]
    if not all(curves.values()) or not np.isfinite(list(curves.values())).any():
        return []
    kept, epochs = int(history["best_epoch"]), len(curves["val_loss"])
    caption = (
        f"The model is that of epoch {kept + 1} of {epochs} (dots), with the best validation {title}; ties are broken "
        "by loss. If the training loss (dotted) falls while the validation loss rises, the network overfits."
    )
    columns = [Column("epoch"), *(Column(name.replace("_", " "), 4) for name in curves)]
    rows: list[list[Cell]] = [[i + 1, *(curve[i] for curve in curves.values())] for i in range(epochs)]
    return [
        Figure(
            learning_curves({KEPT: curves}, kept={KEPT: kept}, metric=title),
            alt=f"Learning curves over {epochs} epochs; epoch {kept + 1} was kept.",
            caption=caption,
            numbers=Table(columns, rows),
            title="Learning curves",
            half=True,
        )
    ]


def _map(run: Run) -> list[Section]:
    """The embeddings in two dimensions, coloured by class, by the number of wrong labels or by residual."""
    drawn = np.flatnonzero(np.isfinite(run.place).all(1))
    if not drawn.size:
        return []
    drawn = drawn[np.linspace(0, len(drawn) - 1, min(len(drawn), MOST_POINTS)).astype(int)]
    group, names = _groups(run)
    series = []
    for place in np.unique(group[drawn]).tolist():
        rows = drawn[group[drawn] == place]
        x, y = run.place[rows].astype(float).T.round(4).tolist()
        hover = [f"{run.ids[i][:60]}\n{names.get(place, 'other')}\n{size_name(run)} {run.degree[i]:,}" for i in rows]
        shape = max(place, 0) // len(CATEGORICAL)
        colour = place if place in names and place >= 0 else None
        series.append(Series(names.get(place, "other"), x, y, mark="points", colour=colour, symbol=shape, hover=hover))
    axes = (Axis("", bare=True), Axis("", bare=True))
    chart = Chart(f"Embeddings of {run.kind}", [Panel("", series)], *axes, square=True)
    count = f"{len(drawn):,} of {len(run.ids):,} {run.kind}" if len(drawn) < len(run.ids) else f"All {run.kind}"
    caption = f"{count}; those close together are similar for the model. Where colours mix it cannot tell them apart."
    return [Figure(chart, f"A map of {len(drawn):,} {run.kind}.", caption, title=f"Map of the {run.kind}", half=True)]


def _groups(run: Run) -> tuple[Any, dict[int, str]]:
    """The colour of each item on the map, and what colours mean."""
    if run.task == "classify":
        frequent = np.argsort(-np.bincount(run.y[run.y >= 0], minlength=len(run.class_names)), kind="stable")
        names = {int(label): run.class_names[label] for label in np.sort(frequent[:MOST_LEGEND])}
        return np.where(run.y < 0, -1, np.where(np.isin(run.y, list(names)), run.y, -2)), names | {-1: "no label"}
    if run.task == "multilabel":
        wrong = ((run.prediction != run.y) & ~np.isnan(run.y)).sum(1)
        return np.where(run.known, np.minimum(wrong, 2), -1), {
            -1: "no label",
            0: "right",
            1: "one wrong",
            2: "more wrong",
        }
    residual = run.y[:, 0] - run.prediction[:, 0]
    third = np.nanquantile(np.abs(residual), 0.5) if (~np.isnan(residual)).any() else 0.0
    group = np.where(np.isnan(residual), -1, np.where(residual > third, 1, np.where(residual < -third, 2, 0)))
    return group, {-1: "no label", 0: "near", 1: "predicted too low", 2: "predicted too high"}


def _degrees(run: Run) -> list[Section]:
    """How many nodes have each degree; where degrees are grouped into tasks, which of them share one."""
    if not run.degrees.size:
        return []
    degrees, counts, tasks = run.degrees.tolist(), run.degree_counts.tolist(), run.degree_task
    whose = "all nodes" if run.kind == "nodes" else "the nodes of all graphs"
    caption = f"How many of {whose} have each degree, both axes logarithmic."
    alt = f"Degree distribution: {len(degrees):,} degrees from {degrees[0]:,} to {degrees[-1]:,}."
    cells: list[list[Cell]] = [list(row) for row in zip(degrees, counts, strict=True)]
    numbers = Table(["degree", "nodes"], cells)
    found: list[Section] = [
        Figure(degree_chart(degrees, counts), alt, caption, numbers=numbers, title="Degrees", half=True)
    ]
    if tasks is not None:
        shared: list[list[Cell]] = []
        for task in dict.fromkeys(tasks.tolist()):
            members = tasks == task
            shared.append([ranges(run.degrees[members].tolist()), task, int(run.degree_counts[members].sum())])
        meaning = (
            "Nodes of one task share their degree-specific weights; a task with few nodes leans on the shared ones."
        )
        found.append(Table(["degrees", "task", "nodes"], shared, meaning, title="Tasks", half=True))
    return found


def degree_chart(degrees: list[int], counts: list[int]) -> Chart:
    """The number of nodes by degree, ascending, on logarithmic axes; 0 has no logarithm and is drawn at 0.5."""
    x, hover = (
        [max(degree, 0.5) for degree in degrees],
        [f"degree {d:,}\nnodes {n:,}" for d, n in zip(degrees, counts, strict=True)],
    )
    series = Series("nodes", x, counts, mark="points", colour=0, hover=hover)
    ticks: list[float] = [base * 10**power for power in range(len(str(degrees[-1]))) for base in (1, 2, 5)]
    ticks = [tick for tick in ticks if tick <= max(degrees[-1], 1)]
    ticks = ticks if len(ticks) <= 10 else [tick for tick in ticks if str(tick)[0] == "1"]
    names = {0.5: "0"} if degrees[0] == 0 else {}
    across = Axis("degree", log=True, names=names | {tick: f"{tick:,}" for tick in ticks})
    return Chart("Degree distribution", [Panel("", [series])], across, Axis("nodes", log=True), legend=False)


def _settings(run: Run) -> list[Section]:
    """The configuration of the run."""
    measured = {name: run.metrics.get(name) for name in ("model", "effort", "val_metric", "epochs", "seconds", "split")}
    rows: list[list[Cell]] = [[name, value] for name, value in _flat(measured | run.config)]
    caption = "The configuration of the run, from config.json, and its validation score and time, from metrics.json."
    return [Table(["setting", "value"], rows, caption)]


def _flat(value: Any, name: str = "") -> list[tuple[str, str]]:
    """The leaves of nested JSON and their paths."""
    if isinstance(value, Mapping):
        return [leaf for key, part in value.items() for leaf in _flat(part, f"{name}.{key}" if name else str(key))]
    if value is None or value == []:
        return []
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return [(visible(name), visible(text))]
