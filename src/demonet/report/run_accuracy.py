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
from demonet.runs.floors import FLOOR_NAMES
from demonet.runs.run import Run

OURS = "DEMO-Net"
TEST = 2
MOST_CLASSES = 40  # of more, a page shows the largest and the most often confused

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
    told += f"\n\nThe best simple baseline, {name}, has {text(best)}"
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
    told = f"{caption} Grey bars are simple baselines, which use less information than the model."
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
    """The confusion matrix, and recall, precision and F1 of each class; of many classes, of :func:`shown_classes`."""
    items = tested(run)
    if not items.size:
        return []
    size, y, prediction = len(run.class_names), run.y[items], run.prediction[items]
    shown = shown_classes(y, prediction, size)
    counts, names = _confusion(y, prediction, shown, run.class_names)
    true, named = np.bincount(y, minlength=size)[shown], np.bincount(prediction, minlength=size)[shown]
    right = np.bincount(y[y == prediction], minlength=size)[shown]
    matrix: list[list[Cell]] = [[name, *row] for name, row in zip(names, counts.tolist(), strict=True)]
    rows: list[list[Cell]] = [
        [
            run.class_names[label],
            int(true[i]),
            right[i] / true[i] if true[i] else None,
            right[i] / named[i] if named[i] else None,
            2 * right[i] / (true[i] + named[i]) if true[i] + named[i] else None,
        ]
        for i, label in enumerate(shown.tolist())
    ]
    told = "Rows are true classes, columns are predictions. Colours show the share of a row. The diagonal is correct."
    pairs, times = np.unique(np.stack([y, prediction])[:, y != prediction], axis=1, return_counts=True)
    if times.size:
        true_name, taken = (run.class_names[i] for i in pairs[:, times.argmax()])
        total = int((y == pairs[0, times.argmax()]).sum())
        told += f" Most frequent: “{_short(true_name)}” as “{_short(taken)}”, {times.max():,} of {total:,}."
    some = f" The {shown.size} largest and most often confused of {size:,} classes." if shown.size < size else ""
    figure = confusion(counts, names, title=f"Confusion matrix, {items.size:,} test {run.kind}")
    correct = int((y == prediction).sum())
    alt = f"Confusion matrix of {size:,} classes: {correct:,} of {items.size:,} on the diagonal.{some}"
    columns = [Column("class"), Column(f"test {run.kind}"), Column("recall"), Column("precision"), Column("F1")]
    return [
        Figure(figure, alt, told + some, numbers=Table(["true class", *names], matrix), title="Confusion", half=True),
        Table(
            columns,
            rows,
            "Recall: the share of a class that was found. Precision: the share of its predictions that is correct."
            + some,
            title="Class by class",
            half=True,
        ),
    ]


def shown_classes(y: NDArray[np.int64], prediction: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """The classes that a page shows: all, or of more than 40 the 20 largest and the 20 most often confused.

    Args:
        y: The true class of each test item.
        prediction: The predicted class.
        size: The number of classes.
    """
    if size <= MOST_CLASSES:
        return np.arange(size)
    wrong = y != prediction
    confused = np.bincount(y[wrong], minlength=size) + np.bincount(prediction[wrong], minlength=size)
    chosen = np.argsort(-np.bincount(y, minlength=size), kind="stable")[: MOST_CLASSES // 2]
    rest = np.argsort(-confused, kind="stable")
    return np.sort(np.concatenate([chosen, rest[~np.isin(rest, chosen)][: MOST_CLASSES // 2]]))


def _confusion(
    y: NDArray[np.int64], prediction: NDArray[np.int64], shown: NDArray[np.int64], names: list[str]
) -> tuple[NDArray[np.int64], list[str]]:
    """The confusion matrix of some classes, with one more row and column for all others, and the names."""
    place = np.full(len(names), shown.size)
    place[shown] = np.arange(shown.size)
    size = shown.size + (shown.size < len(names))
    counts = np.zeros((size, size), dtype=np.int64)
    np.add.at(counts, (place[y], place[prediction]), 1)
    others = [f"{len(names) - shown.size:,} others"] if shown.size < len(names) else []
    return counts, [*(names[label] for label in shown.tolist()), *others]


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
