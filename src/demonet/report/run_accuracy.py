"""The test metric of a run beside simple baselines (floors), and accuracy by class and by degree or size."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from demonet.report.accuracy import Share, bin_of, percent, size_bins
from demonet.report.escape import visible
from demonet.report.figures import interval_bars
from demonet.report.page import Figure, Section, Table
from demonet.report.run_figures import accuracy_by_size, confusion
from demonet.report.table_cells import Cell, Column
from demonet.runs.evaluate import mean_interval, metric_range, shown
from demonet.runs.run import Run

OURS = "DEMO-Net"
FLOOR_NAMES = {"degree-knn": "degree only", "attribute-lr": "attributes only", "attribute-ridge": "attributes only"}
TEST = 2

Score = tuple[float, float, float]
"""A value and the ends of its interval, NaN if it has none."""


def tested(run: Run) -> NDArray[np.int64]:
    """The test items whose target is known."""
    return np.flatnonzero((run.part == TEST) & run.known)


def score(run: Run) -> Score | None:
    """The test metric; None without a test part."""
    items = tested(run)
    if run.metric.name == "accuracy":
        return _share(Share(int((run.prediction[items] == run.y[items]).sum()), items.size)) if items.size else None
    value, interval = run.metrics.get("test_metric"), run.metrics.get("test_metric_interval")
    return (value, *(interval or (np.nan, np.nan))) if is_number(value) and items.size else None


def floor_scores(run: Run) -> dict[str, Score]:
    """The same of the floors; those without a result are left out."""
    total = tested(run).size
    floors = (run.metrics.get("floors") or {}) if total else {}
    measured = {FLOOR_NAMES.get(name, visible(name)): value for name, value in floors.items() if is_number(value)}
    if run.metric.name == "accuracy":
        return {name: _share(Share(round(value * total), total)) for name, value in measured.items()}
    return {name: (value, np.nan, np.nan) for name, value in measured.items()}


def best_floor(run: Run) -> tuple[str, Score] | None:
    """The best of the floors."""
    sign = 1 if run.metric.larger_is_better else -1
    return max(floor_scores(run).items(), key=lambda floor: sign * floor[1][0], default=None)


def _share(share: Share) -> Score:
    return share.value, *share.interval


def is_number(value: object) -> bool:
    """Whether a metric is a finite number."""
    return isinstance(value, int | float) and bool(np.isfinite(value))


def verdict(run: Run) -> str:
    """An interpretation of the test metric, in a few sentences."""
    found, noun, metric = score(run), run.kind, run.metric
    if found is None:
        return f"No {noun} with known labels were held out, so the quality of this model on new {noun} is unknown."
    total, (value, low, high) = tested(run).size, found
    accuracy = metric.name == "accuracy"
    text = percent if accuracy else shown
    told = f"Of {total:,} test {noun}, which were not used for training or for choosing anything, the model "
    if accuracy:
        told += f"predicts {round(value * total):,} correctly: {percent(value)}."
    else:
        article = "an" if metric.title[0] in "aRM" else "a"
        told = f"{told.replace('Of', 'On', 1)}has {article} {metric.title} of {shown(value)}."
        told += "" if metric.larger_is_better else " Smaller is better."
    if not np.isnan(low):
        told += f" The 95 % interval for such {noun} is {text(low)} to {text(high)}."
    floor = best_floor(run)
    if floor is None:
        return told
    name, (best, _, _) = floor
    sign = 1 if metric.larger_is_better else -1
    told += f"\n\nThe best simple baseline (floor), {name}, has {text(best)}"
    if sign * best >= sign * value:
        return f"{told}. The model does not beat it: on this test the simple baseline is as good or better."
    if low <= best <= high:
        return f"{told}, inside that interval. The model is ahead, but with so few {noun} this may be chance."
    if np.isnan(low):
        return f"{told}: the model is ahead."
    return f"{told}, {'below' if sign > 0 else 'above'} that interval. The model is better than its simple baselines."


def floors(run: Run) -> list[Section]:
    """The test metric of the model and of every floor, as bars and as numbers; and the means over repeated splits."""
    found, title = score(run), run.metric.title
    if found is None:
        return []
    rows = {OURS: found, **floor_scores(run)}
    how = "Wilson's 95 % interval" if run.metric.name == "accuracy" else "a 95 % interval of the model by bootstrap"
    caption = f"Test {title} on {tested(run).size:,} {run.kind}, with {how}."
    sections = _beside(run, rows, caption, f"{_capital(title)} compared with simple baselines")
    over = run.metrics.get("cv")
    if over:
        values = over.get("test_metric") or over["test_accuracy"]
        every = {OURS: values}
        every |= {FLOOR_NAMES.get(name, visible(name)): values for name, values in over.get("floors", {}).items()}
        every = {name: values for name, values in every.items() if all(map(is_number, values))}
        means = {name: (float(np.mean(v)), *_student(run, v)) for name, v in every.items()}
        caption = (
            f"Mean test {title} over {len(values)} random splits, with Student's 95 % interval. Splits share items, so "
            "the interval is a guide. The rest of this page is about the first split."
        )
        sections += _beside(run, means, caption, f"Over {len(values)} splits") if OURS in means else []
    return sections


def _student(run: Run, values: list[float]) -> tuple[float, float]:
    """Student's interval, within the range of the metric."""
    low, high = mean_interval(run.metric, values) or (np.nan, np.nan)
    return low, high


def _beside(run: Run, rows: dict[str, Score], caption: str, title: str) -> list[Section]:
    ours, name = rows[OURS][0], run.metric.title
    told = f"{caption} Grey bars are simple baselines (floors), which use less information than the model."
    if not run.metric.larger_is_better:
        told += " Shorter bars are better."
    best: Literal["max", "min"] = "max" if run.metric.larger_is_better else "min"
    digits = 3 if abs(ours) >= 0.01 else decimals(abs(ours))
    columns = [Column("method"), Column(name, digits, best=best)]
    columns += [Column(heading, digits) for heading in ("from", "to", "model − this")]
    cells: list[list[Cell]] = [
        [method, value, _known(low), _known(high), None if method == OURS else ours - value]
        for method, (value, low, high) in rows.items()
    ]
    alt = "; ".join(f"{method} {shown(value)}" for method, (value, _, _) in rows.items())
    figure = interval_bars(rows, highlight=[OURS], title=f"Test {name}, 95 % intervals", axis=f"test {name}")
    if metric_range(run.metric) != (0, 1):
        ends = np.array(list(rows.values()))
        low, high = min(0.0, float(np.nanmin(ends))), max(0.0, float(np.nanmax(ends)))
        figure.update_xaxes(range=[1.05 * low, 1.05 * high])
    return [
        Figure(figure, f"Test {name}: {alt}", told if len(rows) > 1 else caption, title=title, half=True),
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
    told = "Rows are true classes, columns are predictions. Colours show the share of a row. The diagonal is correct."
    if off.max() > 0:
        true_name, taken = (run.class_names[i] for i in worst)
        told += f" Most frequent: “{_short(true_name)}” as “{_short(taken)}”, {off.max():,} of {true[worst[0]]:,}."
    figure = confusion(counts, run.class_names, title=f"Confusion matrix, {items.size:,} test {run.kind}")
    alt = f"Confusion matrix of {size} classes: {right.sum():,} of {items.size:,} on the diagonal."
    columns = [Column("class"), Column(f"test {run.kind}"), Column("recall"), Column("precision"), Column("F1")]
    return [
        Figure(
            figure, alt, told, numbers=Table(["true class", *run.class_names], matrix), title="Confusion", half=True
        ),
        Table(
            columns,
            rows,
            "Recall: the share of a class that was found. Precision: the share of its predictions that is correct.",
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
    known, here = np.ones_like(right), place[items]
    what = f"test {run.kind}"
    if run.task == "multilabel":
        known, what = ~np.isnan(run.y[items]), f"labels of test {run.kind}"
    shares = [Share(int(right[here == i].sum()), int(known[here == i].sum())) for i in range(len(bins))]
    counts = np.bincount(place, minlength=len(bins)).tolist()
    counted = np.bincount(here, minlength=len(bins)).tolist()
    size = size_name(run)
    caption = (
        f"Top: the share of {what} predicted correctly at each {size}; the dotted line is the share of all. Bottom: "
        f"the number of {run.kind}, test {run.kind} in colour. With few test {run.kind} the interval is wide."
    )
    rows: list[list[Cell]] = [
        [bin.name, count, tests, share.total, share.right, *(_known(v) for v in (share.value, *share.interval))]
        for bin, count, tests, share in zip(bins, counts, counted, shares, strict=True)
    ]
    names = [size, run.kind, f"test {run.kind}", "labels", "right", "accuracy", "from", "to"]
    if run.task == "classify":
        rows, names = [row[:3] + row[4:] for row in rows], names[:3] + names[4:]
    overall = float(right.sum() / known.sum())
    figure = accuracy_by_size(bins, shares, counts, counted, overall=overall, size=size, noun=run.kind)
    alt = "; ".join(
        f"{size} {bin.name}: {share.right} of {share.total}" for bin, share in zip(bins, shares, strict=True)
    )
    return [Figure(figure, alt, caption, numbers=Table(names, rows), title=f"Accuracy by {size}", half=True)]


def decimals(size: float) -> int:
    """Digits after the decimal point that show numbers of a size with four digits.

    >>> decimals(1.4), decimals(2000.0), decimals(0.002)
    (3, 0, 6)
    """
    return int(np.clip(3 - np.floor(np.log10(size)), 0, 12)) if size > 0 else 3


def size_name(run: Run) -> str:
    """What the size of an item is."""
    return "degree" if run.kind == "nodes" else "number of nodes"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:39]}…"
