"""The items without a label on the page of a run: how many, what is predicted for them, and a file of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from demonet.report.page import Section, Table, Text
from demonet.report.run_tables import MOST_ROWS, noun, size_names, sizes
from demonet.report.table_cells import Cell, Column
from demonet.runs.run import Run

MOST_SAVED = 20_000  # items in the file that the page offers; predictions.csv has all
MOST_NAMES = 6  # classes or labels that are counted in the text
SURE = 0.9


def unlabelled(run: Run, ids: Sequence[str]) -> list[Section]:
    """A count, and a table of the most certain and the most doubtful; of a regression, of the largest and the smallest.

    Args:
        run: The run, with text as the page shows it.
        ids: The ids as they are, for the file.
    """
    items = np.flatnonzero(~run.known)
    if not items.size:
        return []
    ordered = items[np.argsort(-_order(run)[items], kind="stable")]
    half = MOST_ROWS // 2
    first, last = ("largest", "smallest") if run.task == "regress" else ("most certain", "most doubtful")
    if ordered.size <= MOST_ROWS:
        listed, groups = ordered, []
    else:
        listed = np.concatenate([ordered[:half], ordered[: -half - 1 : -1]])
        groups = [(f"The {half} {first}", half), (f"The {half} {last}", half)]
    rows: list[list[Cell]] = [[run.ids[i], *_predicted(run, i), *sizes(run, i)] for i in listed.tolist()]
    columns = [Column(name) for name in (noun(run), *_names(run), *size_names(run))]
    which = f"All {items.size:,}" if not groups else f"{len(rows)} of the {items.size:,}"
    how = "the largest prediction first" if run.task == "regress" else "the most certain first"
    caption = (
        f"{which} {run.kind} without a label{'' if groups else f', {how}'}. predictions.csv has every {noun(run)}."
    )
    text = Text(_told(run, items), title=f"Predictions for {run.kind} without a label", anchor="unlabelled")
    file = ("unlabelled.csv", _csv(run, ordered, ids)) if items.size <= MOST_SAVED else None
    return [text, Table(columns, rows, caption, groups, file=file, below=True)]


def _told(run: Run, items: NDArray[np.int64]) -> str:
    said = f"{items.size:,} of {len(run.ids):,} {run.kind} had no label."
    if run.task == "regress":
        return said
    if run.task == "classify":
        counts = np.bincount(run.prediction[items], minlength=len(run.class_names))
        sure = int((run.confidence[items] >= SURE).sum())
        said += f" For {sure:,} of them the most probable class has a probability of at least {SURE}."
    else:
        counts = run.prediction[items].sum(0).astype(int)
    most = np.argsort(-counts, kind="stable")[:MOST_NAMES]
    listed = ", ".join(f"{run.class_names[name]} {counts[name]:,}" for name in most if counts[name])
    rest = ", and others" if np.count_nonzero(counts) > MOST_NAMES else ""
    return f"{said} Predicted: {listed or 'none'}{rest}."


def _order(run: Run) -> NDArray[np.float64]:
    """What the items are sorted by: how certain they are, or their (first) number."""
    outputs = run.outputs.astype(np.float64)
    if run.task == "regress":
        return outputs[:, 0]
    return outputs.max(1) if run.task == "classify" else np.maximum(outputs, 1 - outputs).min(1)


def _names(run: Run) -> list[str]:
    """The columns of :func:`_predicted`."""
    if run.task == "classify":
        return ["prediction", "confidence", "second", "its probability"]
    if run.task == "multilabel":
        return ["labels", "least certain label", "its probability"]
    return ["prediction"] if len(run.class_names) == 1 else list(run.class_names)


def _predicted(run: Run, item: int) -> list[Cell]:
    names, output = run.class_names, run.outputs[item]
    if run.task == "classify":
        order = np.argsort(-output, kind="stable")
        second: list[Cell] = [names[order[1]], float(output[order[1]])] if len(names) > 1 else [None, None]
        return [names[order[0]], float(output[order[0]]), *second]
    if run.task == "multilabel":
        doubtful = int(np.abs(output - 0.5).argmin())
        has = ", ".join(name for name, value in zip(names, run.prediction[item], strict=True) if value)
        return [has or None, names[doubtful], float(output[doubtful])]
    return [float(value) for value in output]


def _csv(run: Run, items: NDArray[np.int64], ids: Sequence[str]) -> str:
    """The predictions for these items as a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    numbers = run.task != "classify"
    head = ["prediction"] if len(run.class_names) == 1 else list(run.class_names)
    writer.writerow([noun(run), *(head if numbers else ["prediction", "confidence"])])
    for i in items.tolist():
        values = (
            run.prediction[i].tolist() if numbers else [run.class_names[run.prediction[i]], run.confidence[i].item()]
        )
        writer.writerow([ids[i], *values])
    return text.getvalue()
