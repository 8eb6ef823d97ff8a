"""The page of a multi-label run: a table of the labels, and the items with the most wrong labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from demonet.report.explorer import Channel
from demonet.report.page import Section, Table
from demonet.report.run_accuracy import tested
from demonet.report.run_tables import MOST_ROWS, noun, size_names, sizes
from demonet.report.table_cells import Cell, Column
from demonet.runs.run import Run

OUTCOMES = ("1, found", "1, missed", "0, right", "0, wrong")
MOST_LABELS = 50  # to choose colours by
MOST_DETAILS = 6
"""With more labels, the details of an item have only the chosen one."""


def label_table(run: Run) -> list[Section]:
    """Positives, precision, recall, F1 and average precision of each label on the test part."""
    measured = run.metrics.get("labels") or []
    if not measured:
        return []
    keys = ("positives", "precision", "recall", "f1", "average_precision")
    rows: list[list[Cell]] = [
        [name, row["known"], *(row[key] for key in keys)] for name, row in zip(run.class_names, measured, strict=True)
    ]
    columns = ["label", f"test {run.kind}", "positives", "precision", "recall", "F1", "average precision"]
    caption = (
        f"Test {run.kind} whose label is known, and those of them that have it. Precision: the share of its "
        "predictions that is correct. Recall: the share that was found. Average precision: the quality of the order by "
        "probability; a random order has the share of positives."
    )
    return [Table([Column(name) for name in columns], rows, caption, title="Label by label")]


def most_wrong_labels(run: Run) -> list[Section]:
    """The test items with the most wrong labels."""
    wrong, items = wrong_labels(run), tested(run)
    items = items[wrong[items] > 0]
    if not items.size:
        return []
    worst = items[np.lexsort((items, -wrong[items]))][:MOST_ROWS]
    names = np.array(run.class_names, dtype=object)
    rows: list[list[Cell]] = []
    for i in worst.tolist():
        missed = names[(run.y[i] == 1) & (run.prediction[i] == 0)]
        added = names[(run.y[i] == 0) & (run.prediction[i] == 1)]
        rows.append([run.ids[i], int(wrong[i]), ", ".join(missed), ", ".join(added), *sizes(run, i)])
    columns = [noun(run), "wrong labels", "missed", "added", *size_names(run)]
    caption = f"{worst.size:,} of the {items.size:,} test {run.kind} with a wrong label, those with the most first."
    return [Table([Column(name) for name in columns], rows, caption, title="Most wrong about")]


def wrong_labels(run: Run) -> NDArray[np.int64]:
    """``[items]`` the number of wrong labels among the known ones."""
    return ((run.prediction != run.y) & ~np.isnan(run.y)).sum(1)


def channels(run: Run) -> dict[str, Channel]:
    """The number of wrong labels, and the outcome of each label; of many, of those with the most positives."""
    found = {"wrong": Channel("wrong labels", wrong_labels(run), colour="number of wrong labels")}
    frequent = np.argsort(-np.nansum(run.y, axis=0), kind="stable")[:MOST_LABELS]
    for column in np.sort(frequent).tolist():
        name = run.class_names[column]
        true, predicted = run.y[:, column], run.prediction[:, column]
        outcome = np.where(np.isnan(true), -1, np.where(true == 1, 1 - predicted, 2 + predicted)).astype(np.int64)
        term = name if len(run.class_names) <= MOST_DETAILS else ""
        found[f"label-{column}"] = Channel(term, outcome, OUTCOMES, colour=name)
    return found
