"""The page of a run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from demonet.report.escape import visible
from demonet.report.explorer import Explorer, View
from demonet.report.figures import learning_curves
from demonet.report.page import Facts, Figure, Page, Section, Table, Text
from demonet.report.run_accuracy import by_size, classes, floor_shares, floors, is_number, share_right, verdict
from demonet.report.run_figures import degree_tasks
from demonet.report.run_tables import least_sure, most_wrong, settings, tasks_table
from demonet.report.table_cells import Cell, Column
from demonet.runs.run import Run

KEPT = "model"


def run_page(run: Run) -> Page:
    """Accuracy compared with simple baselines (floors), errors, learning curves, and an explorer of all items."""
    run = replace(run, ids=[visible(name) for name in run.ids], class_names=[visible(name) for name in run.class_names])
    return Page(
        _title(run),
        _subtitle(run),
        [
            Text(verdict(run)),
            Facts(_headline(run)),
            *floors(run),
            *classes(run),
            *by_size(run),
            *_curves(run),
            _explorer(run),
            *_degrees(run),
            *most_wrong(run),
            *least_sure(run),
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
        f"{what}, {len(run.ids):,} in all, sorted into {len(run.class_names):,} classes: trained on {trained:,}, the "
        f"epoch chosen on {chosen:,}, tested on {tested:,}. {_how(run)}"
    ).rstrip()


def _how(run: Run) -> str:
    """Preset, scheme and seed, as far as the configuration has them."""
    said = [f"{key} {visible(run.config[key])}" for key in ("preset", "scheme", "seed") if key in run.config]
    return f"Trained with {', '.join(said)}." if said else ""


def _headline(run: Run) -> dict[str, Cell]:
    """The most important numbers."""
    share = share_right(run)
    low, high = share.interval
    facts: dict[str, Cell] = {}
    if share.total:
        facts["test accuracy"] = share.value
        facts["95 % interval, Wilson"] = f"{low:.3f}–{high:.3f}"
    shares = floor_shares(run)
    if shares:
        name = max(shares, key=lambda floor: shares[floor].value)
        facts[f"best floor: {name}"] = shares[name].value
    names = {"macro_f1": "macro F1, test", "val_accuracy": "validation accuracy", "epochs": "epochs"}
    facts |= {name: run.metrics[key] for key, name in names.items() if is_number(run.metrics.get(key))}
    if is_number(run.metrics.get("seconds")):
        facts["training took"] = f"{run.metrics['seconds']:,.1f} s"
    return facts


def _curves(run: Run) -> list[Section]:
    curves = {key: run.history.get(key) or [] for key in ("train_loss", "val_loss", "val_accuracy")}
    if not all(curves.values()):
        return []
    kept = int(run.history.get("best_epoch", -1))
    epochs = len(curves["val_loss"])
    chosen = {KEPT: kept} if 0 <= kept < epochs else None
    caption = (
        f"Epoch {kept + 1} of {epochs} was kept (dots): the highest validation accuracy, ties by loss. Where training "
        "loss (dotted) goes on falling and validation loss rises, the network learns its training part by heart."
    )
    columns = [Column("epoch"), *(Column(name.replace("_", " "), 4) for name in curves)]
    rows: list[list[Cell]] = [[i + 1, *(curve[i] for curve in curves.values())] for i in range(epochs)]
    return [
        Figure(
            learning_curves({KEPT: curves}, kept=chosen),
            alt=f"Learning curves over {epochs} epochs; epoch {kept + 1} was kept.",
            caption=caption,
            numbers=Table(columns, rows),
            title="Learning curves",
            half=True,
        )
    ]


def _explorer(run: Run) -> Section:
    noun = "node" if run.kind == "nodes" else "graph"
    size = "degree" if run.kind == "nodes" else "number of nodes"
    count = len(run.ids)
    caption = (
        f"Each point is a {noun}, its embedding in two dimensions: near points look alike to the network, and where "
        "colours mix it cannot tell the classes apart. Point at one to read it, press it to keep it."
    )
    views = {"place": View("Embedding", f"The embeddings of {count:,} {noun}s in two dimensions.", caption, run.place)}
    if run.edges is not None and run.drawing is not None:
        views["drawing"] = View(
            "The graph",
            f"A drawing of the graph: {count:,} nodes, {run.edges.shape[1]:,} edges.",
            f"The graph itself: {count:,} nodes, {run.edges.shape[1]:,} edges, in the same colours. Neighbours of one "
            "colour say that the class follows the links; nodes alike in degree and far apart, that it follows roles.",
            run.drawing,
            run.edges,
        )
    return Explorer(
        noun=noun,
        size=size,
        ids=run.ids,
        class_names=run.class_names,
        y=run.y,
        prediction=run.prediction,
        confidence=run.confidence,
        part=run.part,
        sizes=run.degree,
        views=views,
        edge_count=run.edge_count,
        title=f"Every {noun}",
    )


def _degrees(run: Run) -> list[Section]:
    if not run.degrees.size:
        return []
    tasks, sizes = np.unique(run.degree_task, return_counts=True)
    shared = int((sizes > 1).sum())
    whose = "all nodes" if run.kind == "nodes" else "the nodes of all graphs"
    if shared:
        told = f"{run.degrees.size:,} degrees make {tasks.size:,} tasks; degrees that share one have colour and shape."
    else:
        told = f"Each of the {run.degrees.size:,} degrees is a task of its own."
    caption = (
        f"How many of {whose} have each degree, both axes logarithmic. {told} A task with few nodes has little of "
        "its own to learn from, and leans on what all degrees share."
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
