"""Single items of a run on its page: the worst errors, the least certain predictions, and those without a label."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from demonet.report.bins import decimals
from demonet.report.page import Section, Table, Text
from demonet.report.table_cells import Cell, Column
from demonet.runs.run import Run

MOST_ROWS = 20
PARTS = {-1: "none", 0: "training", 1: "validation", 2: "test"}
MOST_SAVED = 20_000  # items in the file that the page offers; predictions.csv has all
MOST_NAMES = 6  # classes or labels that are counted in the text
SURE = 0.9


def tested(run: Run) -> NDArray[np.int64]:
    """The test items whose target is known."""
    return np.flatnonzero((run.part == 2) & run.known)


def noun(run: Run) -> str:
    """What an item is."""
    return run.kind.removesuffix("s")


def size_name(run: Run) -> str:
    """What the size of an item is."""
    return "degree" if run.kind == "nodes" else "number of nodes"


def _size_names(run: Run) -> list[str]:
    return ["degree"] if run.kind == "nodes" else ["nodes", "edges"] if run.edge_count is not None else ["nodes"]


def _sizes(run: Run, item: int) -> list[Cell]:
    """The degree of a node, or the numbers of nodes and edges of a graph."""
    size = int(run.degree[item])
    return [size] if run.edge_count is None else [size, int(run.edge_count[item])]


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
            *_sizes(run, i),
        ]
        for i in worst.tolist()
    ]
    columns = [noun(run), "true class", "prediction", "confidence", "probability of the true class", *_size_names(run)]
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
    rows: list[list[Cell]] = [
        [
            run.ids[i],
            *_predicted(run, i),
            names[run.y[i]] if run.y[i] >= 0 else None,
            PARTS[int(run.part[i])],
            *_sizes(run, i),
        ]
        for i in doubtful.tolist()
    ]
    columns = [noun(run), "likeliest", "probability", "second", "probability", "true class", "part", *_size_names(run)]
    caption = (
        f"{doubtful.size:,} of the {items.size:,} {run.kind} outside the training part, sorted by "
        "the margin between the two most probable classes. Labels for these would help the model most."
    )
    return [Table([Column(name) for name in columns], rows, caption, title="Least sure about")]


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
        rows.append([run.ids[i], int(wrong[i]), ", ".join(missed), ", ".join(added), *_sizes(run, i)])
    columns = [noun(run), "wrong labels", "missed", "added", *_size_names(run)]
    caption = f"{worst.size:,} of the {items.size:,} test {run.kind} with a wrong label, those with the most first."
    return [Table([Column(name) for name in columns], rows, caption, title="Most wrong about")]


def wrong_labels(run: Run) -> NDArray[np.int64]:
    """``[items]`` the number of wrong labels among the known ones."""
    return ((run.prediction != run.y) & ~np.isnan(run.y)).sum(1)


def largest_errors(run: Run) -> list[Section]:
    """The test items with the largest residuals."""
    items = tested(run)
    if not items.size:
        return []
    spread = np.nanstd(run.y[items], axis=0)
    off = np.nan_to_num(np.abs(run.y - run.prediction)[items] / np.where(spread > 0, spread, 1), nan=-1)
    order = np.argsort(-off.max(1), kind="stable")[:MOST_ROWS]
    several = len(run.class_names) > 1
    rows: list[list[Cell]] = []
    for place in order.tolist():
        i, column = int(items[place]), int(off[place].argmax())
        true, predicted = float(run.y[i, column]), float(run.prediction[i, column])
        target: list[Cell] = [run.class_names[column]] if several else []
        rows.append([run.ids[i], *target, true, predicted, true - predicted, *_sizes(run, i)])
    names = [noun(run), *(["target"] if several else []), "true value", "prediction", "residual", *_size_names(run)]
    caption = f"The {len(rows):,} of {items.size:,} test {run.kind} with the largest residuals, true minus predicted."
    caption += " Those of several targets are compared in standard deviations." if several else ""
    columns = [Column(name, max(map(decimals, spread.tolist()))) for name in names]
    return [Table(columns, rows, caption, title="Largest errors")]


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
    rows: list[list[Cell]] = [[run.ids[i], *_predicted(run, i), *_sizes(run, i)] for i in listed.tolist()]
    columns = [Column(name) for name in (noun(run), *_predicted_names(run), *_size_names(run))]
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


def _predicted_names(run: Run) -> list[str]:
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
