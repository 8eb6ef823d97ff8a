"""The accuracy of a run: compared with simple baselines (floors), by class, and by degree or size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from demonet.report.accuracy import Share, bin_of, percent, size_bins
from demonet.report.escape import visible
from demonet.report.figures import interval_bars
from demonet.report.page import Figure, Section, Table
from demonet.report.run_figures import accuracy_by_size, confusion
from demonet.report.table_cells import Cell, Column
from demonet.runs.evaluate import student
from demonet.runs.run import Run

OURS = "DEMO-Net"
FLOOR_NAMES = {"degree-knn": "degree only", "attribute-lr": "attributes only"}
TEST = 2


def tested(run: Run) -> NDArray[np.int64]:
    """The test items whose class is known."""
    return np.flatnonzero((run.part == TEST) & (run.y >= 0))


def share_right(run: Run) -> Share:
    """The share of test items that are classified correctly."""
    items = tested(run)
    return Share(int((run.prediction[items] == run.y[items]).sum()), items.size)


def floor_shares(run: Run) -> dict[str, Share]:
    """The shares of the floors on the same test items; floors without a result are left out."""
    total = tested(run).size
    floors = (run.metrics.get("floors") or {}) if total else {}
    measured = {FLOOR_NAMES.get(name, visible(name)): value for name, value in floors.items() if is_number(value)}
    return {name: Share(round(value * total), total) for name, value in measured.items()}


def is_number(value: object) -> bool:
    """Whether a metric is a finite number."""
    return isinstance(value, int | float) and bool(np.isfinite(value))


def verdict(run: Run) -> str:
    """An interpretation of the accuracy, in a few sentences."""
    share, shares = share_right(run), floor_shares(run)
    noun = run.kind
    if not share.total:
        return f"No {noun} of known class were held out, so nothing here says how good this model is on new ones."
    low, high = share.interval
    told = (
        f"Of {share.total:,} test {noun}, which had no part in training or in choosing the epoch, the model names "
        f"{share.right:,} right: {percent(share.value)}. The 95 % interval, for {noun} like these, runs from "
        f"{percent(low)} to {percent(high)}."
    )
    if not shares:
        return told
    name, best = max(shares.items(), key=lambda floor: floor[1].value)
    told += f"\n\nThe best floor, {name}, has {percent(best.value)}"
    if best.value >= share.value:
        return f"{told}: the model does not beat it, and what it learnt beyond that does not show on this test."
    if best.value >= low:
        return f"{told}, which is inside that interval: the model is ahead, but on so few {noun} that may be luck."
    return f"{told}, below that interval: the model has learnt more than that."


def floors(run: Run) -> list[Section]:
    """Accuracy of the model and of every floor, as bars and as numbers; and the means over repeated splits."""
    share = share_right(run)
    if not share.total:
        return []
    rows = {OURS: (share.value, *share.interval)}
    rows |= {name: (floor.value, *floor.interval) for name, floor in floor_shares(run).items()}
    caption = f"Test accuracy on {share.total:,} {run.kind}, with Wilson's 95 % interval."
    sections = _beside(rows, caption, "Accuracy beside the floors")
    over = run.metrics.get("cv")
    if over:
        count = len(over["test_accuracy"])
        every = {OURS: over["test_accuracy"]}
        every |= {FLOOR_NAMES.get(name, visible(name)): values for name, values in over.get("floors", {}).items()}
        means = {name: (float(np.mean(v)), *_student(v)) for name, v in every.items()}
        caption = (
            f"Mean test accuracy over {count} random splits, with Student's 95 % interval. Splits share items, so the "
            "interval is a guide. The rest of this page is about the first split."
        )
        sections += _beside(means, caption, f"Over {count} splits")
    return sections


def _student(values: list[float]) -> tuple[float, float]:
    """Student's interval, clipped to [0, 1]."""
    low, high = student(values) or (np.nan, np.nan)
    return max(low, 0.0), min(high, 1.0)


def _beside(rows: dict[str, tuple[float, float, float]], caption: str, title: str) -> list[Section]:
    ours = rows[OURS][0]
    told = f"{caption} Grey are floors, which know less than the model: what they reach needs no network."
    columns = [Column("method"), Column("accuracy", best="max"), Column("from"), Column("to"), Column("model − this")]
    cells: list[list[Cell]] = [
        [name, value, _known(low), _known(high), None if name == OURS else ours - value]
        for name, (value, low, high) in rows.items()
    ]
    alt = "; ".join(f"{name} {value:.3f}" for name, (value, _, _) in rows.items())
    figure = interval_bars(rows, highlight=[OURS], title="Test accuracy, 95 % intervals", axis="test accuracy")
    return [
        Figure(figure, f"Test accuracy: {alt}", told if len(rows) > 1 else caption, title=title, half=True),
        Table(columns, cells, caption, title=f"{title}, in numbers", half=True),
    ]


def classes(run: Run) -> list[Section]:
    """The confusion matrix, and recall, precision and F1 of each class."""
    items = tested(run)
    if not items.size:
        return []
    size = len(run.class_names)
    counts = np.zeros((size, size), dtype=np.int64)
    np.add.at(counts, (run.y[items], run.prediction[items]), 1)
    right, true, named = counts.diagonal(), counts.sum(1), counts.sum(0)
    matrix: list[list[Cell]] = [[name, *counts[i].tolist()] for i, name in enumerate(run.class_names)]
    rows: list[list[Cell]] = [
        [
            name,
            int(true[i]),
            right[i] / true[i] if true[i] else None,
            right[i] / named[i] if named[i] else None,
            2 * right[i] / (true[i] + named[i]) if true[i] + named[i] else None,
        ]
        for i, name in enumerate(run.class_names)
    ]
    off = counts - np.diag(right)
    worst = np.unravel_index(off.argmax(), off.shape)
    told = "Rows are true classes, columns predictions, colour the share of a row; the diagonal is right."
    if off.max() > 0:
        true_name, taken = (run.class_names[i] for i in worst)
        told += f" Most often: “{_short(true_name)}” taken for “{_short(taken)}”, {off.max():,} of {true[worst[0]]:,}."
    figure = confusion(counts, run.class_names, title=f"Who is taken for whom, {items.size:,} test {run.kind}")
    alt = f"Confusion matrix of {size} classes: {right.sum():,} of {items.size:,} on the diagonal."
    columns = [Column("class"), Column(f"test {run.kind}"), Column("recall"), Column("precision"), Column("F1")]
    return [
        Figure(
            figure, alt, told, numbers=Table(["true class", *run.class_names], matrix), title="Confusion", half=True
        ),
        Table(
            columns,
            rows,
            "Recall: of those in the class, the share found. Precision: of those named so, the share that is.",
            title="Class by class",
            half=True,
        ),
    ]


def by_size(run: Run) -> list[Section]:
    """Test accuracy and number of items by degree or, for graphs, by number of nodes."""
    items = tested(run)
    if not items.size:
        return []
    bins = size_bins(run.degree)
    place = bin_of(run.degree, bins)
    right = run.prediction[items] == run.y[items]
    here = place[items]
    shares = [Share(int(right[here == i].sum()), int((here == i).sum())) for i in range(len(bins))]
    counts = np.bincount(place, minlength=len(bins)).tolist()
    size = "degree" if run.kind == "nodes" else "number of nodes"
    caption = (
        f"Above, the share of test {run.kind} named right at each {size}, the dotted line for all; below, how many "
        f"{run.kind} there are, tested ones coloured. Where few were tested the interval is wide: read little into it."
    )
    rows: list[list[Cell]] = [
        [bin.name, count, share.total, share.right, *(_known(v) for v in (share.value, *share.interval))]
        for bin, count, share in zip(bins, counts, shares, strict=True)
    ]
    columns = [size, run.kind, f"test {run.kind}", "right", "accuracy", "from", "to"]
    figure = accuracy_by_size(bins, shares, counts, overall=float(right.mean()), size=size, noun=run.kind)
    alt = "; ".join(
        f"{size} {bin.name}: {share.right} of {share.total}" for bin, share in zip(bins, shares, strict=True)
    )
    return [Figure(figure, alt, caption, numbers=Table(columns, rows), title=f"Accuracy by {size}", half=True)]


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:39]}…"
