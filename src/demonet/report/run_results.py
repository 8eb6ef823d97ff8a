"""Results of a run on its page: curves, a threshold, importance, baselines, classes, labels, degrees and residuals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demonet.escape import visible
from demonet.report.bins import bin_of, decimals, share, size_bins
from demonet.report.chart import Axis, Chart, Panel, Series
from demonet.report.figures import confusion, interval_bars
from demonet.report.items import Threshold, ranked
from demonet.report.page import Figure, Section, Table
from demonet.report.run_items import size_name, tested
from demonet.report.table_cells import Cell, Column
from demonet.runs.evaluate import mean_interval, metric_range
from demonet.runs.facts import OURS, RunFacts
from demonet.runs.run import Run

MOST_CLASSES = 40  # of more, a page shows the largest and the most often confused
MOST_TARGETS = 6  # of more classes, labels or target columns, the page has curves of the largest ones
MOST_POINTS = 2000  # of more test items, a scatter shows an even sample, so that the page stays light
MOST_STEPS = 300  # points of a curve
BINS = 10  # of a reliability diagram
NAN = (np.nan, np.nan)


def judged(run: Run, facts: RunFacts) -> list[tuple[str, NDArray[np.bool_], NDArray[Any]]]:
    """Name, truth and probability of the class that matters, or of the largest classes or labels, on the test part."""
    items = tested(run)
    if run.task == "regress" or not items.size:
        return []
    y, outputs, names = run.y[items], run.outputs[items], run.class_names
    if run.task == "classify":
        y = (y[:, None] == np.arange(len(names))).astype(np.float64)
    chosen = (
        np.argsort(-np.nansum(y, axis=0), kind="stable")[:MOST_TARGETS] if facts.positive is None else [facts.positive]
    )
    found = []
    for column in sorted(map(int, chosen)):
        known = ~np.isnan(y[:, column])
        true = y[known, column] == 1
        if 0 < true.sum() < true.size:
            found.append((names[column], true, outputs[known, column]))
    return found


def curves(run: Run, facts: RunFacts) -> list[Section]:
    """ROC, precision and recall, lift, reliability."""
    every = judged(run, facts)
    if not every:
        return []
    counted = {name: [np.append(0.0, n) for n in ranked(true, p)[1:]] for name, true, p in every}
    some = " Of the largest ones." if facts.positive is None and len(run.class_names) > len(every) else ""

    def told(of: Callable[..., str]) -> str:
        return "; ".join(f"“{_short(name)}” {of(*counts)}" for name, counts in counted.items())

    def figure(
        title: str, x: str, y: str, caption: str, of: Callable[..., Any], ends: Any, even: list[float]
    ) -> Section:
        series = [Series("random order", [0, 1], even, mark="curve", dash=2)] if even else []
        for turn, (name, counts) in enumerate(counted.items()):
            across, up = map(_thin, of(*counts))
            series.append(Series(name, across, up, mark="curve", colour=turn, dash=turn % 4))
        axes = Axis(x, share=True, ends=(0, 1)), Axis(y, ends=ends)
        chart = Chart(title, [Panel("", series)], *axes, legend=len(every) > 1)
        return Figure(chart, f"{title}. {caption}", caption + some, title=title, half=True)

    areas, rates = told(lambda n, h: f"{_area(n, h):.3f}"), told(lambda n, h: f"{h[-1] / n[-1]:.1%}")
    caption = f"The area under the curve: {areas}. 0.5 is a random order, 1 a perfect one."
    shares, found = (lambda n, h: (_part(n - h), _part(h))), (lambda n, h: (_part(h)[1:], h[1:] / n[1:]))
    roc = figure("ROC", "false alarms among the others", "found", caption, shares, (0, 1.02), [0, 1])
    caption = f"Of those above a threshold, how many are correct, by how many are found. At random: {rates}."
    precise = figure("Precision and recall", "found", "correct", caption, found, (0, 1.02), [])
    tenth = told(lambda n, h: f"{_lift(n, h):.1f} times")
    caption = f"How many more are in the first part of the list than at random; in its first tenth: {tenth}."
    more = lambda n, h: (_part(n)[1:], _part(h)[1:] / _part(n)[1:])  # noqa: E731
    lift = figure("Lift", "part of the list, from its top", "times as many as at random", caption, more, None, [1, 1])
    return [roc, precise, lift, _reliability(run, every)]


def _part(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Running counts as shares of the last."""
    return counts / counts[-1]


def _area(n: NDArray[np.float64], h: NDArray[np.float64]) -> float:
    """The area under the ROC curve."""
    return float(np.trapezoid(_part(h), _part(n - h)))


def _lift(n: NDArray[np.float64], h: NDArray[np.float64]) -> float:
    """The lift of the first tenth."""
    tenth = max(1.0, 0.1 * n[-1])
    return float(np.interp(tenth, n, h) / tenth / (h[-1] / n[-1]))


def _thin(values: NDArray[np.float64]) -> list[float]:
    """An even sample of a curve, with both ends."""
    places = np.unique(np.linspace(0, len(values) - 1, min(len(values), MOST_STEPS)).round().astype(int))
    return np.round(values[places], 5).tolist()


def _reliability(run: Run, every: list[tuple[str, NDArray[np.bool_], NDArray[Any]]]) -> Section:
    """Of one class its probability; of several the confidence in the predicted one; of labels all of them together."""
    name, true, probability = every[0]
    if len(every) > 1 and run.task == "classify":
        items = tested(run)
        name, true, probability = "predicted class", run.prediction[items] == run.y[items], run.confidence[items]
    elif len(every) > 1:
        true, probability = (np.concatenate([one[part] for one in every]) for part in (1, 2))
        name = "all labels"
    place = np.minimum((probability * BINS).astype(int), BINS - 1)
    groups = [place == number for number in range(BINS) if (place == number).any()]
    said = [float(probability[group].mean()) for group in groups]
    value, low, high = np.array([share(int(true[group].sum()), int(group.sum())) for group in groups]).T
    hover = [
        f"{name}\npredicted {p:.2f}\n{true[group].sum():,} of {group.sum():,}: {v:.2f}"
        for p, v, group in zip(said, value, groups, strict=True)
    ]
    series = [
        Series("exact", [0, 1], [0, 1], mark="curve", dash=2),
        Series(name, said, value, low, high, mark="points", colour=0, hover=hover),
    ]
    across, up = Axis("predicted probability", share=True, ends=(0, 1)), Axis("share that is", ends=(-0.02, 1.02))
    chart = Chart("Reliability", [Panel("", series)], across, up, legend=False)
    told = f"“{_short(name)}”: predicted {probability.mean():.3f} on average, true {true.mean():.3f}"
    caption = (
        "On the dotted line a probability is the share of cases that are as predicted. Below it the model is too sure. "
        f"With 95 % intervals; {told}."
    )
    return Figure(chart, f"Reliability. {told}.", caption, title="Reliability", half=True)


def threshold(run: Run, facts: RunFacts) -> list[Section]:
    """What a threshold finds, misses and raises in vain, and what that costs."""
    every = judged(run, facts)
    if not every or (run.task == "classify" and facts.positive is None):
        return []
    caption = (
        f"Counted on the test {run.kind}. A threshold that is chosen here will do a little worse on new {run.kind}."
    )
    names, y, probability = zip(*every, strict=True)
    title = "Where to stop: threshold and costs"
    return [Threshold(names, y, probability, run.kind, caption, title=title, anchor="threshold")]


def importance(run: Run, facts: RunFacts) -> list[Section]:
    """How much worse the model gets without a column, the structure or the degree."""
    rows = {
        visible(row["name"]): (row["value"], *(row.get("interval") or NAN))
        for row in sorted(facts.importance, key=lambda row: -row["value"])[:MOST_CLASSES]
    }
    if not rows:
        return []
    title = run.metric.title
    bars = interval_bars(
        rows, title=f"Loss in {title} without it", highlight=rows, axis=f"loss in {title}", share=False
    )
    caption = (
        f"How much {title} gets worse on validation {run.kind} when the values of a column, of the structure or of the "
        "degree are shuffled among them, with 95 % intervals. An interval that includes 0 may be chance."
    )
    return [Figure(bars, caption=caption, title="What matters", anchor="importance")]


def baselines(run: Run, facts: RunFacts) -> list[Section]:
    """The test metric of the model and of every baseline, as bars and as numbers; and the means over several splits."""
    if not facts.methods:
        return []
    title = run.metric.title
    scores = {one.name: one.scores[facts.rule] for one in facts.methods if one.kind != "elsewhere"}
    rows = {name: (score.value, *(score.interval or NAN)) for name, score in scores.items()}
    how = "Wilson's 95 % interval" if run.metric.name == "accuracy" else "a 95 % interval of the model by bootstrap"
    caption = f"Test {title} on {run.metrics['split']['test']:,} {run.kind}, with {how}."
    sections = _beside(run, rows, caption, "Compared with simple baselines")
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
    return [Figure(bars, caption=told if len(rows) > 1 else caption, numbers=Table(columns, cells), title=title)]


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
    """The classes that a page shows: all, or of more than 40 the 20 largest and the 20 most often confused."""
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
        [name, row["known"], *(row[key] for key in keys), least]
        for name, row, least in zip(run.class_names, measured, run.decision or [0.5] * len(measured), strict=True)
    ]
    columns = ["label", f"test {run.kind}", "positives", "precision", "recall", "F1", "average precision"]
    columns.append("predicted from")
    caption = (
        f"Test {run.kind} whose label is known, and those of them that have it. Precision: the share of its "
        "predictions that is correct. Recall: the share that was found. Average precision: the quality of the order by "
        "probability; a random order has the share of positives. Last column: the probability from which on the label "
        "is predicted."
    )
    return [Table([Column(name) for name in columns], rows, caption, title="Label by label", sortable=True)]


def by_size(run: Run) -> list[Section]:
    """Test accuracy by degree or, for graphs, by number of nodes."""
    items = tested(run)
    if not items.size:
        return []
    bins, size = size_bins(run.degree), size_name(run)
    right, here = run.prediction[items] == run.y[items], bin_of(run.degree, bins)[items]
    known_labels = np.ones_like(right) if run.task == "classify" else ~np.isnan(run.y[items])
    what = f"test {run.kind}" if run.task == "classify" else f"labels of test {run.kind}"
    drawn = [i for i in range(len(bins)) if known_labels[here == i].any()]
    counts = [(int(right[here == i].sum()), int(known_labels[here == i].sum())) for i in drawn]
    shares = [share(*pair) for pair in counts]
    value, low, high = np.array(shares).T
    hover = [
        f"{size} {bins[i].name}\n{correct:,} of {total:,} right: {v:.3f}\n95 % interval {a:.3f} to {b:.3f}"
        for i, (correct, total), (v, a, b) in zip(drawn, counts, shares, strict=True)
    ]
    overall = float(right.sum() / known_labels.sum())
    series = [
        Series("all", [-0.5, len(bins) - 0.5], [overall] * 2, mark="curve", dash=2),
        Series("test", drawn, value, low, high, mark="points", colour=0, hover=hover),
    ]
    across = Axis(size, names={float(i): bin.name for i, bin in enumerate(bins)})
    title = f"Accuracy by {size}"
    chart = Chart(title, [Panel("", series)], across, Axis("accuracy", ends=(-0.03, 1.03)), legend=False)
    caption = (
        f"The share of {what} predicted correctly at each {size}, with 95 % intervals; the dotted line is the share of "
        "all."
    )
    rows: list[list[Cell]] = [
        [bins[i].name, total, correct, *interval]
        for i, (correct, total), interval in zip(drawn, counts, shares, strict=True)
    ]
    numbers = Table([size, what, "right", "accuracy", "from", "to"], rows)
    return [Figure(chart, caption=caption, numbers=numbers, title=title, half=True)]


def numbers(run: Run) -> list[Section]:
    """For each target, on the test part: predictions against true numbers, and residuals by degree and by attribute."""
    items, found = tested(run), list[Section]()
    for column, name in enumerate(run.class_names[:MOST_TARGETS]):
        rows = items[~np.isnan(run.y[items, column])]
        if not rows.size:
            continue
        of = "" if len(run.class_names) == 1 else f", {name}"
        bins, values = size_bins(run.degree), (run.y - run.prediction)[rows, column]
        place = bin_of(run.degree, bins)[rows]
        groups = {bins[i].name: (place == i) for i in range(len(bins)) if (place == i).any()}
        quartiles = [np.percentile(values[group], [25, 50, 75]).tolist() for group in groups.values()]
        counts = [int(group.sum()) for group in groups.values()]
        found += [_scatter(run, rows, column, of), _residuals(run, size_name(run), of, list(groups), counts, quartiles)]
        for one in run.metrics.get("residuals") or ():
            if visible(one["target"]) == name:
                parts = one["groups"]
                names = ["–".join(dict.fromkeys(_rounded(end) for end in part["values"])) for part in parts]
                counts, quartiles = [part["count"] for part in parts], [part["quartiles"] for part in parts]
                found.append(_residuals(run, visible(one["column"]), of, names, counts, quartiles))
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
    return Figure(chart, caption=caption, title=title, half=True)


def _residuals(
    run: Run, by: str, of: str, names: Sequence[str], counts: Sequence[int], quartiles: Sequence[Sequence[float]]
) -> Section:
    low, middle, high = np.array(quartiles).T
    hover = [
        f"{by} {name}\n{count:,} test {run.kind}\nmedian residual {m:.4g}\nhalf of them from {a:.4g} to {b:.4g}"
        for name, count, (a, m, b) in zip(names, counts, quartiles, strict=True)
    ]
    title, places = f"Residuals by {by}{of}", range(len(names))
    series = [
        Series("none", [-0.5, len(names) - 0.5], [0, 0], mark="curve", dash=2),
        Series("median residual", places, middle, low, high, mark="points", colour=0, hover=hover),
    ]
    across = Axis(by, names={float(i): name for i, name in enumerate(names)})
    chart = Chart(title, [Panel("", series)], across, Axis("residual, true − predicted"), legend=False)
    caption = (
        f"The median residual of test {run.kind} at each value; bars show the middle half. Above the dotted "
        "line predictions are too low, below it too high."
    )
    rows: list[list[Cell]] = [
        [name, count, *three] for name, count, three in zip(names, counts, quartiles, strict=True)
    ]
    heads = [by, f"test {run.kind}", "25 %", "median residual", "75 %"]
    return Figure(chart, caption=caption, numbers=Table(heads, rows), title=title, half=True)


def _rounded(value: float) -> str:
    """A value of a column as a tick: at least three digits, without an exponent where it is of usual size."""
    return f"{value:.0f}" if 1000 <= abs(value) < 1_000_000 else f"{value:.3g}"


def known(value: float) -> float | None:
    """A number, or nothing for NaN."""
    return None if np.isnan(value) else float(value)


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:39]}…"
