"""Plotly figures of the demo and run pages, from plain numbers and names.

Figures have no background, grid or fonts: ``page.js`` adds those for light or dark mode.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from demonet.errors import DemonetError
from demonet.report.palette import CATEGORICAL, NEUTRAL, colour

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from plotly.graph_objects import Figure

SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star")
"""When colours repeat, the symbols still differ."""

_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;", "%": "&#37;", "\r": None, "\n": "<br>"})


def plain(text: object, limit: int | None = None) -> str:
    """Escape text for plotly.

    Plotly interprets a subset of HTML, ``$...$`` as mathematics and ``%{...}`` as a template, and decodes entities
    once. Line breaks are kept. Text longer than ``limit`` is cut and ends in an ellipsis.

    >>> plain("<b>R&D</b>")
    '&lt;b&gt;R&amp;D&lt;/b&gt;'
    """
    written = str(text)
    if limit is not None and len(written) > limit:
        written = written[: limit - 1] + "…"
    return written.translate(_MARKUP)


def learning_curves(
    runs: Mapping[str, Mapping[str, Sequence[float]]],
    *,
    kept: Mapping[str, int] | None = None,
    metric: str = "accuracy",
    title: str | None = None,
) -> Figure:
    """Loss above, a validation metric below; a colour per run, a dot at the selected epoch.

    Args:
        runs: For each run the lists ``train_loss``, ``val_loss`` and ``val_{metric}``, with one value per epoch.
        kept: The index of the selected epoch; by default that of the highest metric, ties by loss.
        metric: The name of the metric.
        title: The title; None for the names of the curves.
    """
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.07, row_heights=[0.5, 0.5])
    losses: list[np.ndarray[Any, np.dtype[np.float64]]] = []
    for index, (name, history) in enumerate(runs.items()):
        train_loss, val_loss, val_metric = (
            _curve(name, history, key) for key in ("train_loss", "val_loss", f"val_{metric}")
        )
        if not len(train_loss) == len(val_loss) == len(val_metric):
            raise DemonetError(
                f"run {name!r} has {len(train_loss)} training losses, {len(val_loss)} validation losses and "
                f"{len(val_metric)} values of the {metric}",
                hint="give one value of each for every epoch",
            )
        losses += [train_loss, val_loss]
        epochs = np.arange(1, len(val_loss) + 1)
        best = kept[name] if kept else int(np.lexsort((val_loss, -val_metric))[0])
        line = {"color": colour(index), "width": 2}
        shared = {"name": plain(name, 40), "legendgroup": str(index), "mode": "lines", "x": epochs}
        dotted = {**line, "width": 1.5, "dash": "dot"}
        figure.add_scatter(
            y=train_loss, line=dotted, showlegend=False, row=1, col=1, **_hover(name, "training loss"), **shared
        )
        figure.add_scatter(y=val_loss, line=line, row=1, col=1, **_hover(name, "validation loss"), **shared)
        figure.add_scatter(
            y=val_metric, line=line, showlegend=False, row=2, col=1, **_hover(name, f"validation {metric}"), **shared
        )
        for row, curve in ((1, val_loss), (2, val_metric)):
            figure.add_scatter(
                x=epochs[best : best + 1],
                y=curve[best : best + 1],
                mode="markers",
                marker={"color": colour(index), "size": 9, "symbol": "circle"},
                hoverinfo="skip",
                legendgroup=str(index),
                showlegend=False,
                row=row,
                col=1,
            )
    figure.update_xaxes(title_text="epoch", row=2, col=1)
    figure.update_yaxes(title_text="loss (dotted: training)", row=1, col=1, type=_scale(losses))
    figure.update_yaxes(title_text=plain(f"validation {metric}"), row=2, col=1)
    return finish(figure, title or f"Loss and {metric} by epoch", height=520, showlegend=len(runs) > 1)


def embedding_scatter(
    xy: ArrayLike,
    labels: Sequence[object],
    hover: Sequence[str],
    *,
    pairs: Sequence[tuple[int, int]] = (),
    symbols: Sequence[str] | None = None,
    title: str = "Embedding in two dimensions",
    axes: tuple[str, str] = ("dimension 1", "dimension 2"),
) -> Figure:
    """A point per node, coloured by label, with a line between the nodes of each pair.

    Args:
        xy: Coordinates, ``[n, 2]``.
        labels: The label of each node; each distinct label has a colour and a legend entry.
        hover: The tooltip of each node; may have several lines.
        pairs: Indices of nodes to join.
        symbols: A plotly marker symbol per node; by default they differ only when colours repeat.
        title: The title.
        axes: Names of the two axes.
    """
    import plotly.graph_objects as go

    points = np.asarray(xy, dtype=np.float32)
    if points.ndim != 2 or points.shape[1] != 2:
        raise DemonetError(f"an embedding scatter takes coordinates [n, 2], got {list(points.shape)}")
    for what, given in (("labels", labels), ("hover texts", hover), ("symbols", symbols)):
        if given is not None and len(given) != len(points):
            raise DemonetError(f"{len(points)} points but {len(given)} {what}", hint="give one for each point")
    ends = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    if ends.size and not (ends.min() >= 0 and ends.max() < len(points)):
        raise DemonetError(f"a pair points at a node outside 0..{len(points) - 1}")

    figure = go.Figure()
    if ends.size:
        # One trace for all lines: NaN after each pair interrupts it.
        gap = np.full((len(ends), 1, 2), np.nan, dtype=np.float32)
        walk = np.concatenate([points[ends], gap], axis=1).reshape(-1, 2)
        thin = {"color": NEUTRAL[0], "width": 1}
        figure.add_scatter(
            x=walk[:, 0], y=walk[:, 1], mode="lines", line=thin, opacity=0.8, hoverinfo="skip", name="pairs"
        )
    nodes_of: dict[object, list[int]] = {}
    for node, label in enumerate(labels):
        nodes_of.setdefault(label, []).append(node)
    for index, label in enumerate(sorted(nodes_of, key=_natural)):
        members = nodes_of[label]
        shape: Any = (
            SYMBOLS[index // len(CATEGORICAL) % len(SYMBOLS)] if symbols is None else [symbols[i] for i in members]
        )
        figure.add_scatter(
            x=points[members, 0],
            y=points[members, 1],
            mode="markers",
            marker={"color": colour(index), "size": 9, "opacity": 0.9, "symbol": shape},
            hoverinfo="text",
            hovertext=[plain(hover[i]) for i in members],
            name=plain(label, 40),
        )
    figure.update_xaxes(title_text=plain(axes[0]), showticklabels=False, zeroline=False)
    # Distances have a meaning, so both axes have the same scale.
    figure.update_yaxes(title_text=plain(axes[1]), showticklabels=False, zeroline=False, scaleanchor="x")
    return finish(figure, title, height=480)


def accuracy_bars(
    rows: Mapping[str, tuple[float, float]],
    *,
    highlight: Collection[str] = (),
    title: str = "Accuracy with 95 % interval",
    axis: str = "accuracy",
    line: tuple[str, float] | None = None,
) -> Figure:
    """A horizontal bar with an interval for each method, in the given order.

    Args:
        rows: For each method the mean and half the width of its confidence interval (NaN if it has none).
        highlight: Methods in colour; the others are grey.
        title: The title.
        axis: The title of the axis.
        line: Name and place of a vertical line through all bars, such as the best that is possible.
    """
    texts = [_interval(mean, half) for mean, half in rows.values()]
    ends = {name: (mean, mean - half, mean + half) for name, (mean, half) in rows.items()}
    figure = _bars(ends, texts, highlight, title, axis)
    if line is not None:
        name, place = line
        figure.add_scatter(
            x=[place, place],
            y=[-0.8, len(rows) - 0.5],
            mode="lines+text",
            line={"color": NEUTRAL[0], "width": 1.5, "dash": "dot"},
            text=[f"{plain(name, 24)} {place:.3g} ", ""],
            textposition="middle left",
            hoverinfo="skip",
            showlegend=False,
        )
    return figure


def interval_bars(
    rows: Mapping[str, tuple[float, float, float]],
    *,
    highlight: Collection[str] = (),
    title: str = "Accuracy with 95 % interval",
    axis: str = "accuracy",
) -> Figure:
    """Like :func:`accuracy_bars`, for asymmetric intervals.

    Args:
        rows: For each method its value and the two ends of its interval (NaN if it has none).
        highlight, title, axis: As in :func:`accuracy_bars`.
    """
    texts = [
        f"{value:.3f}" + ("" if np.isnan(low) else f" ({low:.3f} to {high:.3f})") for value, low, high in rows.values()
    ]
    return _bars(rows, texts, highlight, title, axis)


def _bars(
    rows: Mapping[str, tuple[float, float, float]],
    texts: Sequence[str],
    highlight: Collection[str],
    title: str,
    axis: str,
) -> Figure:
    import plotly.graph_objects as go

    names = list(rows)
    means, low, high = np.array([rows[name] for name in names], dtype=np.float64).reshape(-1, 3).T
    figure = go.Figure()
    for chosen, fill in ((True, colour(0)), (False, NEUTRAL[0])):
        members = [i for i, name in enumerate(names) if (name in highlight) is chosen]
        if not members:
            continue
        above, below = (high - means)[members], (means - low)[members]
        figure.add_bar(
            y=members,
            x=means[members],
            error_x={"type": "data", "array": above, "arrayminus": below, "thickness": 1.5, "width": 4},
            orientation="h",
            width=0.62,
            marker={"color": fill},
            hoverinfo="text",
            hovertext=[f"{plain(names[i], 80)}<br>{texts[i]}" for i in members],
            showlegend=False,
        )
    ticks = [f"{plain(name, 24)}  " for name in names]
    figure.update_yaxes(
        tickvals=list(range(len(names))), ticktext=ticks, autorange="reversed", showgrid=False, zeroline=False
    )
    figure.update_xaxes(title_text=plain(axis), range=[0, float(np.nanmax([1.0, *high]))])
    return finish(figure, title, height=130 + 34 * len(names))


def finish(figure: Figure, title: str, **layout: Any) -> Figure:
    """Set title and size, without plotly's template: it is large, and the page has its own style."""
    figure.update_layout(title_text=plain(title), template=None, **layout)
    return figure


def _hover(name: str, quantity: str) -> dict[str, str]:
    return {"hovertemplate": f"{plain(name, 80)}<br>{plain(quantity)} %{{y:.4f}}, epoch %{{x}}<extra></extra>"}


def _interval(mean: float, half: float) -> str:
    return f"{mean:.3f}" if np.isnan(half) else f"{mean:.3f} ± {half:.3f}"


def _scale(losses: Sequence[np.ndarray[Any, np.dtype[np.float64]]]) -> str:
    """Logarithmic if a few large losses would hide all others."""
    every = np.concatenate([np.ravel(loss) for loss in losses]) if losses else np.zeros(0)
    every = every[np.isfinite(every) & (every > 0)]
    return "log" if every.size and every.max() > 20 * np.median(every) else "linear"


def _curve(name: str, history: Mapping[str, Sequence[float]], key: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    curve = np.asarray(history.get(key, ()), dtype=np.float64)
    if curve.ndim != 1 or not curve.size:
        raise DemonetError(f"run {name!r} has no values for {key!r}", hint="give one value for every epoch")
    return curve


def _natural(label: object) -> tuple[bool, float, str]:
    """Sort key: numbers by size, then text alphabetically."""
    number = isinstance(label, int | float | np.number)
    return not number, float(label) if number else 0.0, str(label)  # type: ignore[arg-type]
