"""The page of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from demonet.report.bins import ranges
from demonet.report.chart import Axis, Chart, Panel, Series
from demonet.report.escape import VisibleNames, visible
from demonet.report.explorer import Channel, Explorer, View
from demonet.report.figures import learning_curves
from demonet.report.page import Facts, Figure, Page, Section, Table, Text
from demonet.report.palette import CATEGORICAL
from demonet.report.run_candidates import candidates, degree_matters
from demonet.report.run_items import (
    PARTS,
    largest_errors,
    least_sure,
    most_wrong,
    most_wrong_labels,
    noun,
    size_name,
    unlabelled,
    wrong_labels,
)
from demonet.report.run_results import baselines, by_size, classes, labels, numbers
from demonet.report.table_cells import Cell, Column
from demonet.runs.evaluate import shown
from demonet.runs.facts import RunFacts, run_facts
from demonet.runs.run import Run

KEPT = "model"
MOST_ITEMS = 200_000  # items in the explorer; of more, it has a sample
MOST_LABELS = 50  # to choose colours by
MOST_DETAILS = 6  # with more labels, the details of an item have only the chosen one
MOST_LOOKS = 48  # of tasks: colours and shapes
Sections = Callable[[Run], list[Section]]


@dataclass(frozen=True)
class TaskPage:
    """What a page has for a task.

    Attributes:
        what: What is predicted, for the subtitle.
        results: Sections about the test part.
        items: Tables of single items.
        channels: What the explorer knows of the items besides size and part.
        hint: How to read the colours of the explorer.
    """

    what: Callable[[Run], str]
    results: tuple[Sections, ...]
    items: tuple[Sections, ...]
    channels: Callable[[Run], dict[str, Channel]]
    hint: str


def _class_channels(run: Run) -> dict[str, Channel]:
    return {
        "y": Channel("true class", run.y, run.class_names, colour="class"),
        "prediction": Channel("prediction", run.prediction, run.class_names, colour="prediction"),
        "confidence": Channel("confidence", np.nan_to_num(run.confidence)),
    }


def _label_channels(run: Run) -> dict[str, Channel]:
    """The number of wrong labels, and the outcome of each label; of many, of those with the most positives."""
    found = {"wrong": Channel("wrong labels", wrong_labels(run), colour="number of wrong labels")}
    frequent = np.argsort(-np.nansum(run.y, axis=0), kind="stable")[:MOST_LABELS]
    outcomes = ("1, found", "1, missed", "0, right", "0, wrong")
    for column in np.sort(frequent).tolist():
        name = run.class_names[column]
        true, predicted = run.y[:, column], run.prediction[:, column]
        outcome = np.where(np.isnan(true), -1, np.where(true == 1, 1 - predicted, 2 + predicted)).astype(np.int64)
        term = name if len(run.class_names) <= MOST_DETAILS else ""
        found[f"label-{column}"] = Channel(term, outcome, outcomes, colour=name)
    return found


def _number_channels(run: Run) -> dict[str, Channel]:
    """Residual, true value and prediction of each target."""
    found, alone = {}, len(run.class_names) == 1
    for column, name in enumerate(run.class_names[:MOST_DETAILS]):
        true, predicted, of = run.y[:, column], run.prediction[:, column], "" if alone else f", {name}"
        for term, values in {"residual": true - predicted, "true value": true, "prediction": predicted}.items():
            scale: Any = "diverging" if term == "residual" else "linear"
            choice = f"{term}{of}" if term == "residual" or alone else None
            found[f"{term}-{column}"] = Channel(f"{term}{of}", values.astype(np.float32), colour=choice, scale=scale)
    return found


TASK_PAGES = {
    "classify": TaskPage(
        what=lambda run: f"sorted into {len(run.class_names):,} classes",
        results=(classes, by_size),
        items=(most_wrong, least_sure),
        channels=_class_channels,
        hint="where colours mix it cannot tell the classes apart",
    ),
    "multilabel": TaskPage(
        what=lambda run: f"with {len(run.class_names):,} labels each",
        results=(labels, by_size),
        items=(most_wrong_labels,),
        channels=_label_channels,
        hint="where wrong labels lie together it misses something that they share",
    ),
    "regress": TaskPage(
        what=lambda run: "with a number each" if len(run.class_names) == 1 else f"with {len(run.class_names)} numbers",
        results=(numbers,),
        items=(largest_errors,),
        channels=_number_channels,
        hint="where residuals of one colour lie together it misses something that they share",
    ),
}


def run_page(run: Run) -> Page:
    """Metrics compared with simple baselines, errors, learning curves, and an explorer of all items."""
    task, ids = TASK_PAGES[run.task], run.ids
    run = replace(run, ids=VisibleNames(run.ids), class_names=[visible(name) for name in run.class_names])
    facts = run_facts(run)
    name = run.config.get("name")
    return Page(
        f"DEMO-Net on {visible(name)}" if name else "A run of DEMO-Net",
        _subtitle(run, facts),
        [
            Text("\n\n".join(filter(None, (facts.verdict, _rules(run, facts), facts.elsewhere)))),
            Facts(_headline(run, facts)),
            *baselines(run, facts),
            *unlabelled(run, ids),
            *candidates(run, facts),
            *degree_matters(run, facts),
            *(section for make in task.results for section in make(run)),
            *_curves(run),
            *(_degrees(run) if run.model != "network" else []),
            _explorer(run),
            *(_degrees(run) if run.model == "network" else []),
            *(section for make in task.items for section in make(run)),
            *_settings(run),
        ],
    )


def _subtitle(run: Run, facts: RunFacts) -> str:
    """What was predicted, and with which model, preset, scheme and seed."""
    split = run.metrics["split"]
    what = "Nodes of a graph" if run.kind == "nodes" else "Graphs"
    known = {"model": run.metrics.get("model"), "effort": run.metrics.get("effort")}
    known |= {key: run.config.get(key) for key in ("preset", "scheme", "seed")}
    how = ", ".join(f"{key} {visible(value)}" for key, value in known.items() if value is not None)
    return (
        f"{what}, {len(run.ids):,} in all, {TASK_PAGES[run.task].what(run)}: {split['train']:,} for training, "
        f"{split['val']:,} for {facts.chosen_by}, {split['test']:,} for the test. Trained with {how}."
    )


def _rules(run: Run, facts: RunFacts) -> str:
    """Under which rule the numbers on top were measured, and what the other one gave."""
    if not facts.rules_told:
        return ""
    (_, _, rows), *_ = facts.tables(run)
    other = "; ".join(f"{row[0]} {row[-1]}" for row in rows)
    return f"{facts.rules_told} {facts.rules[-1].capitalize()} {run.metric.title}: {other}."


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
    found |= {f"{name}, test": _number(run, value) for name, value in facts.others.items()}
    if run.metrics["val_metric"] is not None:
        strict = ", strict" if run.model != "network" else ""
        found[f"validation {title}{strict}"] = _number(run, run.metrics["val_metric"])
    if "epochs" in run.metrics:
        found["epochs"] = run.metrics["epochs"]
    took = "fitting took" if run.model != "network" else "training took"
    return found | {took: f"{run.metrics['seconds']:,.1f} s"}


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
            half=run.task != "regress",  # there, all other figures come in pairs
        )
    ]


def _explorer(run: Run) -> Section:
    count, size, task = len(run.ids), size_name(run), TASK_PAGES[run.task]
    caption = (
        f"Each point is the embedding of a {noun(run)} in two dimensions. Points close together are similar for the "
        f"model; {task.hint}. Hover over a point for details, click it to keep them."
    )
    rows: Any
    title, ids, rows = f"Every {noun(run)}", run.ids, slice(None)
    if count > MOST_ITEMS:
        drawn = np.sort(np.random.default_rng(0).choice(count, MOST_ITEMS, replace=False))
        title, ids, rows = f"A sample of the {run.kind}", [run.ids[row] for row in drawn.tolist()], drawn
        caption += (
            f" These are {MOST_ITEMS:,} of {count:,} {run.kind}, drawn at random; predictions.csv has all of them."
        )
    views = {
        "place": View(
            "Embedding", f"The embeddings of {len(ids):,} {run.kind} in two dimensions.", caption, run.place[rows]
        )
    }
    if run.edges is not None and run.drawing is not None:
        views["drawing"] = View(
            "The graph",
            f"A drawing of the graph: {count:,} nodes, {run.edges.shape[1]:,} edges.",
            f"The graph: {count:,} nodes, {run.edges.shape[1]:,} edges, in the same colours. If neighbours have the "
            "same colour, it follows the edges. If nodes of similar degree have it, it follows structural roles.",
            run.drawing,
            run.edges,
        )
    channels = task.channels(run) | {"size": Channel(size, run.degree, colour=size, scale="log")}
    if run.edge_count is not None:
        channels["edges"] = Channel("edges", run.edge_count)
    parts = [PARTS[part] for part in range(3)]
    channels["part"] = Channel("part", run.part, parts, missing=PARTS[-1])
    channels = {name: replace(channel, values=channel.values[rows]) for name, channel in channels.items()}
    return Explorer(noun=noun(run), ids=ids, channels=channels, views=views, title=title)


def _degrees(run: Run) -> list[Section]:
    """How many nodes have each degree; where degrees are grouped into tasks, which of them share one."""
    if not run.degrees.size:
        return []
    degrees, counts, tasks = run.degrees.tolist(), run.degree_counts.tolist(), run.degree_task
    whose = "all nodes" if run.kind == "nodes" else "the nodes of all graphs"
    caption = f"How many of {whose} have each degree, both axes logarithmic."
    columns, rows, title = [Column("degree"), Column("nodes")], [degrees, counts], "Degrees"
    found: list[Section] = []
    if tasks is not None:
        title, several = "Degrees and the tasks they share", len(set(tasks.tolist()))
        told = f"{len(degrees):,} degrees make {several:,} tasks; degrees that share one have colour and shape."
        if several == len(degrees):
            told = f"Each of the {several:,} degrees is a task of its own."
        caption += f" {told} A task with few nodes has little training data of its own; for it the shared weights "
        caption += "matter most."
        columns, rows = [*columns, Column("task")], [*rows, tasks.tolist()]
        shared: list[list[Cell]] = []
        for task in dict.fromkeys(tasks.tolist()):
            members = tasks == task
            shared.append([ranges(run.degrees[members].tolist()), task, int(run.degree_counts[members].sum())])
        heads = [Column("degrees"), Column("task"), Column("nodes")]
        meaning = "Nodes of one task share their degree-specific weights."
        found = [Table(heads, shared, meaning, title="Tasks", half=True)]
    cells: list[list[Cell]] = [list(row) for row in zip(*rows, strict=True)]
    chart = degree_chart(degrees, counts, [] if tasks is None else tasks.tolist())
    alt = f"Degree distribution: {len(degrees):,} degrees from {degrees[0]:,} to {degrees[-1]:,}."
    return [Figure(chart, alt, caption, numbers=Table(columns, cells), title=title, half=True), *found]


def degree_chart(degrees: list[int], counts: list[int], tasks: list[int]) -> Chart:
    """The number of nodes by degree on logarithmic axes; degrees that share a task have the same colour and shape.

    Args:
        degrees: The degrees, ascending; 0 has no logarithm and is drawn at 0.5.
        counts: The number of nodes of each.
        tasks: The task of each; empty if degrees have none.
    """
    sizes, looks = Counter(tasks), dict[int, list[int]]()
    turns: dict[int, int] = {}
    for place, task in enumerate(tasks or range(len(degrees))):
        # In order of degree, so that neighbouring tasks differ; a degree alone in its task needs no colour.
        look = turns.setdefault(task, len(turns)) % MOST_LOOKS if sizes[task] > 1 else -1
        looks.setdefault(look, []).append(place)
    series = [
        Series(
            "" if look < 0 else f"look {look}",
            [max(degrees[i], 0.5) for i in members],
            [counts[i] for i in members],
            mark="points",
            colour=look if look >= 0 else None if turns else 0,
            symbol=max(look, 0) // len(CATEGORICAL),
            hover=[
                f"degree {degrees[i]:,}\n{counts[i]:,} {'node' if counts[i] == 1 else 'nodes'}"
                + (f"\ntask {tasks[i]}" if tasks else "")
                + (f", with {sizes[tasks[i]] - 1:,} more" if look >= 0 else "")
                for i in members
            ],
        )
        for look, members in sorted(looks.items())
    ]
    ticks: list[float] = [base * 10**power for power in range(len(str(degrees[-1]))) for base in (1, 2, 5)]
    ticks = [tick for tick in ticks if tick <= max(degrees[-1], 1)]
    ticks = ticks if len(ticks) <= 10 else [tick for tick in ticks if str(tick)[0] == "1"]
    names = {0.5: "0"} if degrees[0] == 0 else {}
    across = Axis("degree", log=True, names=names | {tick: f"{tick:,}" for tick in ticks})
    return Chart("Degree distribution", [Panel("", series)], across, Axis("nodes", log=True), legend=False)


def _settings(run: Run) -> list[Section]:
    """The configuration of the run."""
    rows: list[list[Cell]] = [[name, value] for name, value in _flat({**run.config, "split": run.metrics["split"]})]
    caption = "The configuration of the run, from config.json."
    return [Table(["setting", "value"], rows, caption, title="How it was made")]


def _flat(value: Any, name: str = "") -> list[tuple[str, str]]:
    """The leaves of nested JSON and their paths."""
    if isinstance(value, Mapping):
        return [leaf for key, part in value.items() for leaf in _flat(part, f"{name}.{key}" if name else str(key))]
    if value is None or value == []:
        return []
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return [(visible(name), visible(text))]
