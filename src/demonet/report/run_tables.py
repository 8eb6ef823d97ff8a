"""Tables of a run: worst errors, least certain predictions, tasks, and settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from demonet.report.accuracy import ranges
from demonet.report.escape import visible
from demonet.report.page import Section, Table
from demonet.report.run_accuracy import tested
from demonet.report.table_cells import Cell, Column
from demonet.runs.run import Run

MOST_ROWS = 20
PARTS = {-1: "none", 0: "training", 1: "validation", 2: "test"}


def most_wrong(run: Run) -> list[Section]:
    """The test items whose true class has the lowest probability."""
    items = tested(run)
    wrong = items[run.prediction[items] != run.y[items]]
    if not wrong.size:
        return []
    of_truth = run.outputs[wrong, run.y[wrong]]
    worst = wrong[np.lexsort((wrong, of_truth))][:MOST_ROWS]
    names = run.class_names
    rows: list[list[Cell]] = [
        [
            run.ids[i],
            names[run.y[i]],
            names[run.prediction[i]],
            float(run.confidence[i]),
            float(run.outputs[i, run.y[i]]),
            *sizes(run, i),
        ]
        for i in worst.tolist()
    ]
    columns = [noun(run), "true class", "prediction", "confidence", "probability of the true class", *size_names(run)]
    which = "All" if worst.size == wrong.size else f"{worst.size:,} of the {wrong.size:,}"
    caption = (
        f"{which} test {run.kind} that are predicted wrongly, sorted by the probability of their true class, lowest "
        "first. Wrong labels in the data often appear here."
    )
    return [Table([Column(name) for name in columns], rows, caption, title="Most wrong about")]


def least_sure(run: Run) -> list[Section]:
    """The items outside the training part with the smallest margin between their two most probable classes."""
    items = np.flatnonzero(run.part != 0)
    if not items.size or len(run.class_names) < 2:
        return []
    ordered = np.sort(run.outputs[items], axis=1)
    margin = ordered[:, -1] - ordered[:, -2]
    doubtful = items[np.lexsort((items, margin))][:MOST_ROWS]
    names = run.class_names
    rows: list[list[Cell]] = []
    for i in doubtful.tolist():
        second, first = np.argsort(run.outputs[i], kind="stable")[-2:]
        rows.append(
            [
                run.ids[i],
                names[first],
                float(run.outputs[i, first]),
                names[second],
                float(run.outputs[i, second]),
                names[run.y[i]] if run.y[i] >= 0 else None,
                PARTS[int(run.part[i])],
                *sizes(run, i),
            ]
        )
    columns = [noun(run), "likeliest", "probability", "second", "probability", "true class", "part", *size_names(run)]
    caption = (
        f"{doubtful.size:,} of the {items.size:,} {run.kind} outside the training part, sorted by "
        "the margin between the two most probable classes. Labels for these would help the model most."
    )
    return [Table([Column(name) for name in columns], rows, caption, title="Least sure about")]


def tasks_table(run: Run) -> Section:
    """The degrees and the number of nodes of each task."""
    rows: list[list[Cell]] = []
    assert run.degree_task is not None
    for task in dict.fromkeys(run.degree_task.tolist()):
        members = run.degree_task == task
        rows.append([ranges(run.degrees[members].tolist()), task, int(run.degree_counts[members].sum())])
    columns = [Column("degrees"), Column("task"), Column("nodes")]
    return Table(columns, rows, "Nodes of one task share their degree-specific weights.", title="Tasks", half=True)


def settings(run: Run) -> list[Section]:
    """The configuration of the run."""
    rows: list[list[Cell]] = [[name, value] for name, value in _flat({**run.config, "split": run.metrics.get("split")})]
    caption = "The configuration of the run, from config.json."
    return [Table(["setting", "value"], rows, caption, title="How it was made")] if rows else []


def _flat(value: Any, name: str = "") -> list[tuple[str, str]]:
    """The leaves of nested JSON and their paths."""
    if isinstance(value, Mapping):
        return [leaf for key, part in value.items() for leaf in _flat(part, f"{name}.{key}" if name else str(key))]
    if value is None or value == []:
        return []
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return [(visible(name), visible(text))]


def noun(run: Run) -> str:
    """What an item is."""
    return run.kind.removesuffix("s")


def size_names(run: Run) -> list[str]:
    """The columns of :func:`sizes`."""
    return ["degree"] if run.kind == "nodes" else ["nodes", "edges"] if run.edge_count is not None else ["nodes"]


def sizes(run: Run, item: int) -> list[Cell]:
    """The degree of a node, or the numbers of nodes and edges of a graph."""
    size = int(run.degree[item])
    return [size] if run.edge_count is None else [size, int(run.edge_count[item])]
