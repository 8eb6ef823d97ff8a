"""Figures of a run: confusion matrix, accuracy by size, degrees and their tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from demonet.report.accuracy import Bin, Share
from demonet.report.figures import SYMBOLS, finish, plain
from demonet.report.palette import CATEGORICAL, NEUTRAL, colour

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_WRITTEN = 12
"""A confusion matrix with more classes shows numbers only in tooltips."""


def confusion(counts: NDArray[np.int64], names: Sequence[str], *, title: str) -> Figure:
    """True classes in rows, predicted classes in columns; the colour is the share of a row.

    Args:
        counts: ``[classes, classes]``, rows are true classes.
        names: The name of each class.
        title: The title of the figure.
    """
    import plotly.graph_objects as go

    totals = counts.sum(1, keepdims=True)
    share = np.divide(counts, totals, out=np.full(counts.shape, np.nan), where=totals > 0)
    size = len(names)
    written = size <= MOST_WRITTEN
    texts = [[f"{counts[i, j]:,}<br>{share[i, j]:.0%}" if totals[i] else "" for j in range(size)] for i in range(size)]
    hover = [
        [
            f"true {plain(names[i], 80)}<br>predicted {plain(names[j], 80)}<br>{counts[i, j]:,} of {totals[i, 0]:,}"
            + (f", {share[i, j]:.1%}" if totals[i] else "")
            for j in range(size)
        ]
        for i in range(size)
    ]
    figure = go.Figure()
    figure.add_heatmap(
        z=share,
        zmin=0,
        zmax=1,
        autocolorscale=True,
        showscale=False,
        xgap=2 if written else 0.5,
        ygap=2 if written else 0.5,
        hoverinfo="text",
        hovertext=hover,
        hoverongaps=False,
        **({"text": texts, "texttemplate": "%{text}"} if written else {}),
    )
    shared: dict[str, Any] = {
        "tickvals": list(range(size)),
        "ticktext": [plain(name, 14) for name in names],
        "showgrid": False,
        "zeroline": False,
    }
    if not written:
        shared["tickfont"] = {"size": 9}
    figure.update_xaxes(title_text="predicted", **shared)
    figure.update_yaxes(title_text="true", autorange="reversed", **shared)
    return finish(figure, title, height=min(900, max(380, 140 + (44 if written else 12) * size)))


def accuracy_by_size(
    bins: Sequence[Bin],
    shares: Sequence[Share],
    counts: Sequence[int],
    tests: Sequence[int],
    *,
    overall: float,
    size: str,
    noun: str,
) -> Figure:
    """Test accuracy of every bin with its interval (above) and its number of items (below).

    Args:
        bins: The bins, ascending.
        shares: The share of correct test items, or of correct labels of test items, of each bin.
        counts: The number of items of each bin.
        tests: The number of test items of each bin.
        overall: Test accuracy of all items, drawn as a line.
        size: The quantity that is binned: degree, or number of nodes.
        noun: The name of the items, in the plural.
    """
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.06, row_heights=[0.64, 0.36])
    place = np.arange(len(bins))
    tested = np.array(tests)
    drawn = place[[share.total > 0 for share in shares]]
    value = np.array([shares[i].value for i in drawn])
    ends = np.array([shares[i].interval for i in drawn]).reshape(-1, 2)
    figure.add_scatter(
        x=[-0.5, len(bins) - 0.5],
        y=[overall, overall],
        mode="lines",
        line={"color": NEUTRAL[0], "width": 1.5, "dash": "dot"},
        hoverinfo="skip",
        row=1,
        col=1,
    )
    figure.add_scatter(
        x=drawn,
        y=value,
        mode="markers",
        marker={"color": colour(0), "size": 9},
        error_y={
            "type": "data",
            "array": ends[:, 1] - value,
            "arrayminus": value - ends[:, 0],
            "color": colour(0),
            "thickness": 1.5,
            "width": 3,
        },
        hoverinfo="text",
        hovertext=[
            f"{size} {bins[i].name}<br>{shares[i].right:,} of {shares[i].total:,} right: "
            f"{shares[i].value:.3f}<br>95 % interval {low:.3f} to {high:.3f}"
            for i, (low, high) in zip(drawn, ends, strict=True)
        ],
        row=1,
        col=1,
    )
    total = np.asarray(counts)
    for name, height, fill in (("test", tested, colour(0)), ("all others", total - tested, NEUTRAL[0])):
        figure.add_bar(
            x=place,
            y=height,
            name=name,
            marker={"color": fill},
            width=0.7,
            hoverinfo="text",
            hovertext=[
                f"{size} {bin.name}<br>{count:,} {noun}, {test:,} of them tested"
                for bin, count, test in zip(bins, counts, tested, strict=True)
            ],
            row=2,
            col=1,
        )
    figure.update_xaxes(range=[-0.6, len(bins) - 0.4], showgrid=False, zeroline=False)
    figure.update_xaxes(
        title_text=size, tickvals=place, ticktext=[bin.name for bin in bins], showticklabels=True, row=2, col=1
    )
    figure.update_yaxes(title_text="test accuracy", range=[-0.03, 1.03], row=1, col=1)
    figure.update_yaxes(title_text=noun, row=2, col=1)
    title = f"Test accuracy by {size}, 95 % intervals"
    return finish(figure, title, height=480, barmode="stack", showlegend=False)


def degree_tasks(degrees: NDArray[np.int64], counts: NDArray[np.int64], tasks: NDArray[np.int64]) -> Figure:
    """The number of nodes by degree on logarithmic axes; degrees that share a task have the same colour and shape."""
    import plotly.graph_objects as go

    figure = go.Figure()
    # Degree 0 has no logarithm and is drawn at 0.5.
    place = np.maximum(degrees.astype(np.float64), 0.5)
    distinct = np.unique(tasks)
    shared = {int(task): int((tasks == task).sum()) for task in distinct}
    alone = np.array([shared[int(task)] == 1 for task in tasks], dtype=bool)
    # In order of degree, so that neighbouring tasks differ; a degree alone in its task needs no colour.
    turns: dict[int, int] = {}
    for task in tasks[~alone].tolist():
        turns.setdefault(task, len(turns))
    look = np.array([-1 if lone else turns[task] % 48 for task, lone in zip(tasks.tolist(), alone, strict=True)])
    for turn in np.unique(look):
        members = np.flatnonzero(look == turn)
        own = len(turns) == 0
        figure.add_scatter(
            x=place[members],
            y=counts[members],
            mode="markers",
            marker={
                "color": colour(int(turn)) if turn >= 0 else (colour(0) if own else NEUTRAL[0]),
                "size": 8,
                "symbol": SYMBOLS[int(turn) // len(CATEGORICAL) % len(SYMBOLS)] if turn >= 0 else "circle",
            },
            hoverinfo="text",
            hovertext=[
                f"degree {degrees[i]:,}<br>{counts[i]:,} {'node' if counts[i] == 1 else 'nodes'}<br>task {tasks[i]}"
                + ("" if alone[i] else f", with {_others(shared[int(tasks[i])] - 1)}")
                for i in members
            ],
        )
    ticks = [0.5] if degrees.size and degrees[0] == 0 else []
    largest = int(degrees[-1]) if degrees.size else 1
    ticks += [
        base * 10**power for power in range(len(str(largest))) for base in (1, 2, 5) if base * 10**power <= largest
    ]
    ticks = ticks if len(ticks) <= 10 else [tick for tick in ticks if str(tick)[0] in "01"]
    figure.update_xaxes(
        title_text="degree", type="log", tickvals=ticks, ticktext=[f"{int(tick):,}" for tick in ticks], zeroline=False
    )
    figure.update_yaxes(title_text="nodes", type="log", dtick=1, zeroline=False)
    return finish(figure, "Degree distribution", height=420, showlegend=False)


def _others(count: int) -> str:
    return "1 other degree" if count == 1 else f"{count:,} other degrees"
