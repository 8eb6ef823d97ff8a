"""The page of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from demonet.report.escape import VisibleNames, visible
from demonet.report.explorer import Channel, Explorer, View
from demonet.report.figures import learning_curves
from demonet.report.page import Facts, Figure, Page, Section, Table, Text
from demonet.report.run_accuracy import best_floor, by_size, classes, floors, is_number, score, size_name, verdict
from demonet.report.run_candidates import candidates, degree_matters, rule_sentence
from demonet.report.run_figures import degree_tasks
from demonet.report.run_labels import channels as label_channels
from demonet.report.run_labels import label_table, most_wrong_labels
from demonet.report.run_numbers import against, largest_errors
from demonet.report.run_numbers import channels as number_channels
from demonet.report.run_tables import PARTS, least_sure, most_wrong, noun, settings, tasks_table
from demonet.report.run_unlabelled import unlabelled
from demonet.report.table_cells import Cell, Column
from demonet.runs.evaluate import shown
from demonet.runs.outputs import chosen_by, left_out_sentence
from demonet.runs.run import Run

KEPT = "model"
MOST_ITEMS = 200_000  # items in the explorer; of more, it has a sample
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
        results=(label_table, by_size),
        items=(most_wrong_labels,),
        channels=label_channels,
        hint="where wrong labels lie together it misses something that they share",
    ),
    "regress": TaskPage(
        what=lambda run: "with a number each" if len(run.class_names) == 1 else f"with {len(run.class_names)} numbers",
        results=(against,),
        items=(largest_errors,),
        channels=number_channels,
        hint="where residuals of one colour lie together it misses something that they share",
    ),
}


def run_page(run: Run) -> Page:
    """Metrics compared with simple baselines (floors), errors, learning curves, and an explorer of all items."""
    task = TASK_PAGES[run.task]
    ids = run.ids
    run = replace(run, ids=VisibleNames(run.ids), class_names=[visible(name) for name in run.class_names])
    return Page(
        _title(run),
        _subtitle(run),
        [
            Text("\n\n".join(filter(None, (verdict(run), rule_sentence(run), left_out_sentence(run))))),
            Facts(_headline(run)),
            *floors(run),
            *unlabelled(run, ids),
            *candidates(run),
            *degree_matters(run),
            *(section for make in task.results for section in make(run)),
            *_curves(run),
            *(_degrees(run) if run.model != "network" else []),
            _explorer(run),
            *(_degrees(run) if run.model == "network" else []),
            *(section for make in task.items for section in make(run)),
            *settings(run),
        ],
    )


def _title(run: Run) -> str:
    name = run.config.get("name")
    return f"DEMO-Net on {visible(name)}" if name else "A run of DEMO-Net"


def _subtitle(run: Run) -> str:
    trained, chosen, tested = (int((run.part == part).sum()) for part in range(3))
    what = "Nodes of a graph" if run.kind == "nodes" else "Graphs"
    return (
        f"{what}, {len(run.ids):,} in all, {TASK_PAGES[run.task].what(run)}: {trained:,} for training, {chosen:,} for "
        f"{chosen_by(run)}, {tested:,} for the test. {_how(run)}"
    ).rstrip()


def _how(run: Run) -> str:
    """Model, preset, scheme and seed, as far as the configuration has them."""
    known = {"model": run.metrics.get("model"), "effort": run.metrics.get("effort")}
    known |= {key: run.config.get(key) for key in ("preset", "scheme", "seed")}
    said = [f"{key} {visible(value)}" for key, value in known.items() if value is not None]
    return f"Trained with {', '.join(said)}." if said else ""


def _headline(run: Run) -> dict[str, Cell]:
    """The most important numbers."""
    found, floor, title = score(run), best_floor(run), run.metric.title
    facts: dict[str, Cell] = {}
    if found is not None:
        value, low, high = found
        facts[f"test {title}"] = _number(run, value)
        how = "Wilson" if run.metric.name == "accuracy" else "bootstrap"
        if not np.isnan(low):
            facts[f"95 % interval, {how}"] = f"{shown(low)}–{shown(high)}"
    if floor is not None:
        facts[f"best simple baseline: {floor[0]}"] = _number(run, floor[1][0])
    names = {"test_accuracy": "accuracy", "macro_f1": "macro F1", "average_precision": "average precision"}
    names |= {"rmse": "RMSE", "mae": "MAE", "r2": "R²"}
    others = {f"{name}, test": run.metrics.get(key) for key, name in names.items() if name != title}
    others[f"validation {title}" + (", strict" if run.model != "network" else "")] = run.metrics["val_metric"]
    facts |= {name: _number(run, value) for name, value in others.items() if is_number(value)}
    if is_number(run.metrics.get("epochs")):
        facts["epochs"] = run.metrics["epochs"]
    if is_number(run.metrics.get("seconds")):
        facts["fitting took" if run.model != "network" else "training took"] = f"{run.metrics['seconds']:,.1f} s"
    return facts


def _number(run: Run, value: Any) -> Cell:
    """Errors in the units of a target may be of any size."""
    return value if run.task != "regress" or 0.01 <= abs(value) < 1000 else shown(value)


def _curves(run: Run) -> list[Section]:
    title, history = run.metric.title, run.history
    curves = {key: history.get(key) or [] for key in ("train_loss", "val_loss")}
    metric = history.get("val_metric") or history.get("val_accuracy") or []
    curves[f"val_{title}"] = [np.nan if value is None else value for value in metric]
    if not all(curves.values()):
        return []
    kept = int(run.history.get("best_epoch", -1))
    epochs = len(curves["val_loss"])
    chosen = {KEPT: kept} if 0 <= kept < epochs else None
    caption = (
        f"The model is that of epoch {kept + 1} of {epochs} (dots), with the best validation {title}; ties are broken "
        "by loss. If the training loss (dotted) falls while the validation loss rises, the network overfits."
    )
    columns = [Column("epoch"), *(Column(name.replace("_", " "), 4) for name in curves)]
    rows: list[list[Cell]] = [[i + 1, *(curve[i] for curve in curves.values())] for i in range(epochs)]
    return [
        Figure(
            learning_curves({KEPT: curves}, kept=chosen, metric=title),
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
    if not run.degrees.size:
        return []
    if run.degree_task is None:
        return [_degree_distribution(run)]
    tasks, sizes = np.unique(run.degree_task, return_counts=True)
    shared = int((sizes > 1).sum())
    whose = "all nodes" if run.kind == "nodes" else "the nodes of all graphs"
    if shared:
        told = f"{run.degrees.size:,} degrees make {tasks.size:,} tasks; degrees that share one have colour and shape."
    else:
        told = f"Each of the {run.degrees.size:,} degrees is a task of its own."
    caption = (
        f"How many of {whose} have each degree, both axes logarithmic. {told} A task with few nodes has "
        "little training data of its own; for it the shared weights matter most."
    )
    columns = [Column("degree"), Column("nodes"), Column("task")]
    rows: list[list[Cell]] = [
        [int(d), int(c), int(t)] for d, c, t in zip(run.degrees, run.degree_counts, run.degree_task, strict=True)
    ]
    figure = degree_tasks(run.degrees, run.degree_counts, run.degree_task)
    alt = f"Degree distribution: {run.degrees.size:,} degrees from {run.degrees[0]:,} to {run.degrees[-1]:,}. {told}"
    return [
        Figure(figure, alt, caption, numbers=Table(columns, rows), title="Degrees and the tasks they share", half=True),
        tasks_table(run),
    ]


def _degree_distribution(run: Run) -> Section:
    """How many nodes have each degree, where degrees are not grouped into tasks."""
    whose = "all nodes" if run.kind == "nodes" else "the nodes of all graphs"
    rows: list[list[Cell]] = [[int(d), int(c)] for d, c in zip(run.degrees, run.degree_counts, strict=True)]
    return Figure(
        degree_tasks(run.degrees, run.degree_counts, np.arange(run.degrees.size)),
        f"Degree distribution: {run.degrees.size:,} degrees from {run.degrees[0]:,} to {run.degrees[-1]:,}.",
        f"How many of {whose} have each degree, both axes logarithmic.",
        numbers=Table([Column("degree"), Column("nodes")], rows),
        title="Degrees",
        half=True,
    )
