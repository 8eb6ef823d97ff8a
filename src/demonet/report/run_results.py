"""Results of a run on its page: scores beside simple baselines, by class or label, by degree or size, and residuals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from demonet.report.bins import bin_of, decimals, share, size_bins
from demonet.report.chart import Axis, Chart, Panel, Series
from demonet.report.figures import confusion, interval_bars
from demonet.report.page import Figure, Section, Table
from demonet.report.run_items import size_name, tested
from demonet.report.table_cells import Cell, Column
from demonet.runs.evaluate import mean_interval, metric_range
from demonet.runs.facts import OURS, RunFacts
from demonet.runs.run import Run

MOST_CLASSES = 40  # of more, a page shows the largest and the most often confused
MOST_TARGETS = 6  # of more target columns, the page shows the first ones
MOST_POINTS = 2000  # of more test items, the scatter shows an even sample, so that the page stays light
NAN = (np.nan, np.nan)


def baselines(run: Run, facts: RunFacts) -> list[Section]:
    """The test metric of the model and of every baseline, as bars and as numbers; and the means over several splits."""
    if not facts.methods:
        return []
    title, scores = (
        run.metric.title,
        {one.name: one.scores[facts.rule] for one in facts.methods if one.kind != "elsewhere"},
    )
    rows = {name: (score.value, *(score.interval or NAN)) for name, score in scores.items()}
    how = "Wilson's 95 % interval" if run.metric.name == "accuracy" else "a 95 % interval of the model by bootstrap"
    caption = f"Test {title} on {run.metrics['split']['test']:,} {run.kind}, with {how}."
    sections = _beside(run, rows, caption, f"{title[0].upper()}{title[1:]} compared with simple baselines")
    over = {name: score.over for name, score in scores.items() if score.over}
    if OURS in over:
        means = {
            name: (float(np.mean(values)), *(mean_interval(run.metric, values) or NAN)) for name, values in over.items()
        }
        count = len(over[OURS])
        caption = (
            f"Mean test {title} over {count} random splits, with Student's 95 % interval. Splits share items, so "
            "the interval is a guide. The rest of this page is about the first split."
        )
        sections += _beside(run, means, caption, f"Over {count} splits")
    return sections


def _beside(run: Run, rows: dict[str, tuple[float, float, float]], caption: str, title: str) -> list[Section]:
    ours, name = rows[OURS][0], run.metric.title
    told = f"{caption} Grey bars are simple baselines, which use less information than the model."
    if not run.metric.larger_is_better:
        told += " Shorter bars are better."
    digits = 3 if abs(ours) >= 0.01 else decimals(abs(ours))
    columns = [Column("method"), Column(name, digits, best="max" if run.metric.larger_is_better else "min")]
    columns += [Column(heading, digits) for heading in ("from", "to", "model − this")]
    cells: list[list[Cell]] = [
        [method, value, known(low), known(high), None if method == OURS else ours - value]
        for method, (value, low, high) in rows.items()
    ]
    bars = interval_bars(
        rows, highlight=[OURS], title=f"Test {name}", axis=f"test {name}", share=metric_range(run.metric) == (0, 1)
    )
    return [
        Figure(bars, caption=told if len(rows) > 1 else caption, title=title, half=True),
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
    correct = int((y == prediction).sum())
    alt = f"Confusion matrix of {size:,} classes: {correct:,} of {items.size:,} on the diagonal.{some}"
    columns = [Column("class"), Column(f"test {run.kind}"), Column("recall"), Column("precision"), Column("F1")]
    numbers = Table(["true class", *names], matrix)
    return [
        Figure(confusion(counts, names), alt, told + some, numbers=numbers, title="Confusion", half=True),
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


def labels(run: Run) -> list[Section]:
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


def by_size(run: Run) -> list[Section]:
    """Test accuracy and number of items by degree or, for graphs, by number of nodes."""
    items = tested(run)
    if not items.size:
        return []
    bins = size_bins(run.degree)
    place = bin_of(run.degree, bins)
    right, here, what = run.prediction[items] == run.y[items], place[items], f"test {run.kind}"
    known_labels = np.ones_like(right)
    if run.task == "multilabel":
        known_labels, what = ~np.isnan(run.y[items]), f"labels of test {run.kind}"
    every = range(len(bins))
    correct = [int(right[here == i].sum()) for i in every]
    totals = [int(known_labels[here == i].sum()) for i in every]
    counts = np.bincount(place, minlength=len(bins))
    tests = np.bincount(here, minlength=len(bins))
    shares = [share(*pair) for pair in zip(correct, totals, strict=True)]
    size, drawn = size_name(run), [i for i in every if totals[i]]
    value, low, high = np.array([shares[i] for i in drawn]).T
    overall = float(right.sum() / known_labels.sum())
    hover = [
        f"{size} {bins[i].name}\n{correct[i]:,} of {totals[i]:,} right: {v:.3f}\n95 % interval {a:.3f} to {b:.3f}"
        for i, v, a, b in zip(drawn, value, low, high, strict=True)
    ]
    counted = [
        f"{size} {bin.name}\n{count:,} {run.kind}, {test:,} of them tested"
        for bin, count, test in zip(bins, counts, tests, strict=True)
    ]
    chart = Chart(
        f"Test accuracy by {size}",
        [
            Panel(
                "Test accuracy, 95 % intervals",
                [
                    Series("all", [-0.5, len(bins) - 0.5], [overall] * 2, mark="curve", dash=2),
                    Series("test", drawn, value, low, high, mark="points", colour=0, hover=hover),
                ],
                Axis("accuracy", ends=(-0.03, 1.03)),
            ),
            Panel(
                f"Number of {run.kind}",
                [
                    Series("test", every, tests.tolist(), mark="columns", colour=0, hover=counted),
                    Series("others", every, (counts - tests).tolist(), mark="columns", hover=counted),
                ],
                Axis(run.kind),
            ),
        ],
        Axis(size, names={float(i): bin.name for i, bin in enumerate(bins)}),
        Axis(""),
        columns=1,
        legend=False,
    )
    caption = (
        f"Top: the share of {what} predicted correctly at each {size}; the dotted line is the share of all. Bottom: "
        f"the number of {run.kind}, test {run.kind} in colour. With few test {run.kind} the interval is wide."
    )
    rows: list[list[Cell]] = [
        [bins[i].name, int(counts[i]), int(tests[i]), totals[i], correct[i], *map(known, shares[i])] for i in every
    ]
    names = [size, run.kind, f"test {run.kind}", "labels", "right", "accuracy", "from", "to"]
    if run.task == "classify":
        rows, names = [row[:3] + row[4:] for row in rows], names[:3] + names[4:]
    return [Figure(chart, caption=caption, numbers=Table(names, rows), title=f"Accuracy by {size}", half=True)]


def numbers(run: Run) -> list[Section]:
    """For each target: predictions against true numbers, and residuals by degree, both of the test part."""
    items, found = tested(run), []
    for column, name in enumerate(run.class_names[:MOST_TARGETS]):
        rows = items[~np.isnan(run.y[items, column])]
        if rows.size:
            of = "" if len(run.class_names) == 1 else f", {name}"
            found += [_scatter(run, rows, column, of), _residuals(run, rows, column, of)]
    return found


def _scatter(run: Run, rows: NDArray[np.int64], column: int, of: str) -> Section:
    drawn = rows[np.linspace(0, rows.size - 1, min(rows.size, MOST_POINTS)).astype(int)]
    true, predicted = run.y[drawn, column], run.prediction[drawn, column].astype(np.float64)
    ends = [float(min(true.min(), predicted.min())), float(max(true.max(), predicted.max()))]
    listed = list(zip([run.ids[i] for i in drawn.tolist()], true.tolist(), predicted.tolist(), strict=True))
    hover = [f"{name[:60]}\ntrue {a:.4g}\npredicted {b:.4g}" for name, a, b in listed]
    title = f"Predicted against true{of}"
    series = [
        Series("exact", ends, ends, mark="curve", dash=2),
        Series("test", true, predicted, mark="points", colour=0, hover=hover),
    ]
    chart = Chart(title, [Panel("", series)], Axis("true value"), Axis("prediction"), legend=False)
    shown = f"{drawn.size:,} of {rows.size:,}" if drawn.size < rows.size else f"{rows.size:,}"
    caption = (
        f"{shown} test {run.kind}. Predictions on the dotted line are exact. If the points form a flatter line, "
        "the model predicts values too close to the mean."
    )
    digits = decimals(float(np.std(true)))
    columns = [Column(name, digits) for name in (run.kind.removesuffix("s"), "true value", "prediction")]
    return Figure(chart, caption=caption, numbers=Table(columns, listed), title=title, half=True)


def _residuals(run: Run, rows: NDArray[np.int64], column: int, of: str) -> Section:
    bins, size = size_bins(run.degree), size_name(run)
    place, values = bin_of(run.degree, bins)[rows], (run.y - run.prediction)[rows, column]
    drawn = [i for i in range(len(bins)) if (place == i).any()]
    low, middle, high = np.array([np.percentile(values[place == i], [25, 50, 75]) for i in drawn]).T
    table: list[list[Cell]] = [
        [bins[i].name, int((place == i).sum()), float(a), float(m), float(b), _rmse(values[place == i])]
        for i, a, m, b in zip(drawn, low, middle, high, strict=True)
    ]
    hover = [
        f"{size} {name}\n{count:,} test {run.kind}\nmedian residual {m:.4g}\nhalf of them from {a:.4g} to {b:.4g}"
        for name, count, a, m, b, _ in table
    ]
    title = f"Residuals by {size}{of}"
    series = [
        Series("none", [-0.5, len(bins) - 0.5], [0, 0], mark="curve", dash=2),
        Series("median residual", drawn, middle, low, high, mark="points", colour=0, hover=hover),
    ]
    across = Axis(size, names={float(i): bin.name for i, bin in enumerate(bins)})
    chart = Chart(title, [Panel("", series)], across, Axis("residual, true − predicted"), legend=False)
    caption = (
        f"The median residual of test {run.kind} at each {size}; bars show the middle half. Above the dotted "
        "line predictions are too low, below it too high."
    )
    digits = decimals(float(np.std(values)))
    names = [size, f"test {run.kind}", "25 %", "median residual", "75 %", "RMSE"]
    counted = Table([Column(name, digits) for name in names], table)
    return Figure(chart, caption=caption, numbers=counted, title=title, half=True)


def known(value: float) -> float | None:
    """A number, or nothing for NaN."""
    return None if np.isnan(value) else float(value)


def _rmse(residuals: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(residuals**2)))


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:39]}…"
