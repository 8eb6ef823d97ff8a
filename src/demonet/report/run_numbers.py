"""The page of a regression: predicted against true numbers, residuals by degree, the largest errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from demonet.report.accuracy import bin_of, size_bins
from demonet.report.explorer import Channel
from demonet.report.figures import finish, plain
from demonet.report.page import Figure, Section, Table
from demonet.report.palette import NEUTRAL, colour
from demonet.report.run_accuracy import decimals, size_name, tested
from demonet.report.run_tables import MOST_ROWS, noun, size_names, sizes
from demonet.report.table_cells import Cell, Column
from demonet.runs.run import Run

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_TARGETS = 6
"""Of more target columns, the page shows the first ones."""
MOST_POINTS = 2000
"""Of more test items, the scatter shows an even sample, so that the page stays light."""


def against(run: Run) -> list[Section]:
    """For each target: predictions against true numbers, and residuals by degree, both of the test part."""
    items, found = tested(run), []
    for column, name in enumerate(run.class_names[:MOST_TARGETS]):
        rows = items[~np.isnan(run.y[items, column])]
        if rows.size:
            of = "" if len(run.class_names) == 1 else f", {name}"
            found += [_scatter(run, rows, column, of), _residuals(run, rows, column, of)]
    return found


def largest_errors(run: Run) -> list[Section]:
    """The test items with the largest residuals."""
    items = tested(run)
    if not items.size:
        return []
    spread = np.nanstd(run.y[items], axis=0)
    off = np.abs(residuals(run)[items]) / np.where(spread > 0, spread, 1)
    farthest = np.nan_to_num(off, nan=-1).argmax(1)
    order = np.argsort(-np.nan_to_num(off, nan=-1).max(1), kind="stable")[:MOST_ROWS]
    several = len(run.class_names) > 1
    rows: list[list[Cell]] = []
    for place in order.tolist():
        i, column = int(items[place]), int(farthest[place])
        true, predicted = float(run.y[i, column]), float(run.prediction[i, column])
        target: list[Cell] = [run.class_names[column]] if several else []
        rows.append([run.ids[i], *target, true, predicted, true - predicted, *sizes(run, i)])
    names = [noun(run), *(["target"] if several else []), "true value", "prediction", "residual", *size_names(run)]
    caption = f"The {len(rows):,} of {items.size:,} test {run.kind} with the largest residuals, true minus predicted."
    caption += " Those of several targets are compared in standard deviations." if several else ""
    columns = [Column(name, max(map(decimals, spread.tolist()))) for name in names]
    return [Table(columns, rows, caption, title="Largest errors")]


def residuals(run: Run) -> NDArray[np.float64]:
    """``[items, targets]`` true minus predicted, NaN where the target is unknown."""
    return run.y - run.prediction


def channels(run: Run) -> dict[str, Channel]:
    """Residual, true value and prediction of each target."""
    found = {}
    for column, name in enumerate(run.class_names[:MOST_TARGETS]):
        of = "" if len(run.class_names) == 1 else f" {name}"
        values = {"residual": residuals(run)[:, column], "true value": run.y[:, column]}
        for term, numbers in (values | {"prediction": run.prediction[:, column]}).items():
            scale: Any = "diverging" if term == "residual" else "linear"
            choice = f"{term}{of}" if term == "residual" or len(run.class_names) == 1 else None
            found[f"{term}-{column}"] = Channel(f"{term}{of}", numbers.astype(np.float32), colour=choice, scale=scale)
    return found


def _scatter(run: Run, rows: NDArray[np.int64], column: int, of: str) -> Section:
    import plotly.graph_objects as go

    drawn = rows[np.linspace(0, rows.size - 1, min(rows.size, MOST_POINTS)).astype(int)]
    true, predicted = run.y[drawn, column], run.prediction[drawn, column]
    ends = [float(min(true.min(), predicted.min())), float(max(true.max(), predicted.max()))]
    figure = go.Figure()
    figure.add_scatter(
        x=ends, y=ends, mode="lines", line={"color": NEUTRAL[0], "width": 1.5, "dash": "dot"}, hoverinfo="skip"
    )
    figure.add_scatter(
        x=true,
        y=predicted,
        mode="markers",
        marker={"color": colour(0), "size": 7, "opacity": 0.7},
        hoverinfo="text",
        hovertext=[
            f"{plain(run.ids[i], 60)}<br>true {run.y[i, column]:.4g}<br>predicted {run.prediction[i, column]:.4g}"
            for i in drawn
        ],
    )
    figure.update_xaxes(title_text="true value")
    figure.update_yaxes(title_text="prediction")
    shown = f"{drawn.size:,} of {rows.size:,}" if drawn.size < rows.size else f"{rows.size:,}"
    caption = (
        f"{shown} test {run.kind}. Predictions on the dotted line are exact. If the points form a flatter line, "
        "the model predicts values too close to the mean."
    )
    numbers: list[list[Cell]] = [
        [run.ids[i], float(run.y[i, column]), float(run.prediction[i, column])] for i in drawn.tolist()
    ]
    columns = [Column(name, decimals(float(np.std(true)))) for name in (noun(run), "true value", "prediction")]
    alt = f"Predictions against true values of {shown} test {run.kind}{of}."
    title = f"Predicted against true{of}"
    return Figure(_square(figure, title), alt, caption, numbers=Table(columns, numbers), title=title, half=True)


def _square(figure: go.Figure, title: str) -> go.Figure:
    return finish(figure, title, height=440, showlegend=False)


def _residuals(run: Run, rows: NDArray[np.int64], column: int, of: str) -> Section:
    import plotly.graph_objects as go

    bins = size_bins(run.degree)
    place, size = bin_of(run.degree, bins)[rows], size_name(run)
    values = residuals(run)[rows, column]
    quartiles = [np.percentile(values[place == i], [25, 50, 75]) for i in range(len(bins)) if (place == i).any()]
    tested_bins = [i for i in range(len(bins)) if (place == i).any()]
    low, middle, high = np.array(quartiles).T
    counts = [int((place == i).sum()) for i in tested_bins]
    figure = go.Figure()
    figure.add_scatter(
        x=[-0.5, len(bins) - 0.5],
        y=[0, 0],
        mode="lines",
        line={"color": NEUTRAL[0], "width": 1.5, "dash": "dot"},
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=tested_bins,
        y=middle,
        mode="markers",
        marker={"color": colour(0), "size": 9},
        error_y={"type": "data", "array": high - middle, "arrayminus": middle - low, "thickness": 1.5, "width": 3},
        hoverinfo="text",
        hovertext=[
            f"{size} {bins[i].name}<br>{count:,} test {run.kind}<br>median residual {m:.4g}<br>"
            f"half of them from {a:.4g} to {b:.4g}"
            for i, count, a, m, b in zip(tested_bins, counts, low, middle, high, strict=True)
        ],
    )
    ticks = {"tickvals": list(range(len(bins))), "ticktext": [bin.name for bin in bins]}
    figure.update_xaxes(title_text=size, range=[-0.6, len(bins) - 0.4], showgrid=False, zeroline=False, **ticks)
    figure.update_yaxes(title_text="residual, true − predicted")
    caption = (
        f"The median residual of test {run.kind} at each {size}; bars show the middle half. Above the dotted "
        "line predictions are too low, below it too high."
    )
    table: list[list[Cell]] = [
        [bins[i].name, count, float(a), float(m), float(b), float(np.sqrt(np.mean(values[place == i] ** 2)))]
        for i, count, a, m, b in zip(tested_bins, counts, low, middle, high, strict=True)
    ]
    names = [size, f"test {run.kind}", "25 %", "median residual", "75 %", "RMSE"]
    title = f"Residuals by {size}{of}"
    alt = "; ".join(f"{size} {row[0]}: median residual {row[3]:.4g}" for row in table)
    numbers = Table([Column(name, decimals(float(np.std(values)))) for name in names], table)
    return Figure(_square(figure, title), alt, caption, numbers=numbers, title=title, half=True)
