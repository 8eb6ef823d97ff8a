"""Charts that several pages have, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from demonet.errors import DemonetError
from demonet.nn import DEMOConv
from demonet.nn.weights import ScaledWeights
from demonet.report.chart import Axis, Chart, Panel, Series
from demonet.report.chart_plotly import plain

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_WRITTEN = 12
"""A confusion matrix with more classes shows numbers only in tooltips."""


def learning_curves(
    runs: Mapping[str, Mapping[str, Sequence[float]]],
    *,
    kept: Mapping[str, int] | None = None,
    metric: str = "accuracy",
) -> Chart:
    """Loss above, a validation metric below; a colour per run, a dot at the selected epoch.

    Args:
        runs: For each run the lists ``train_loss``, ``val_loss`` and ``val_{metric}``, with one value per epoch; values
            that are not finite are left out.
        kept: The index of the selected epoch; by default that of the highest metric, ties by loss.
        metric: The name of the metric.
    """
    losses: list[Series] = []
    metrics: list[Series] = []
    every: list[float] = []
    for index, (name, history) in enumerate(runs.items()):
        curves = {key: _curve(name, history, key) for key in ("train_loss", "val_loss", f"val_{metric}")}
        train, val, score = curves.values()
        if len({len(curve) for curve in curves.values()}) > 1:
            counts = ", ".join(f"{len(curve)} of {key}" for key, curve in curves.items())
            raise DemonetError(f"run {name!r} has {counts}", hint="give one value of each for every epoch")
        best = kept[name] if kept else int(np.lexsort((val, -score))[0])
        every += [*train, *val]
        for panel, curve, dash in ((losses, val, 0), (losses, train, 2), (metrics, score, 0)):
            epochs = np.flatnonzero(np.isfinite(curve))
            panel.append(
                Series(name, (epochs + 1).tolist(), curve[epochs].tolist(), mark="curve", dash=dash, colour=index)
            )
            if not dash and np.isfinite(curve[best]):
                panel.append(Series(name, [best + 1], [curve[best]], mark="points", colour=index))
    known = [value for value in every if 0 < value < np.inf]
    # Logarithmic if a few large losses would hide all others.
    log = bool(known) and len(known) == len(every) and max(known) > 20 * float(np.median(known))
    return Chart(
        f"Loss and {metric} by epoch",
        [
            Panel("Loss (dotted: training)", losses, Axis("loss", log=log)),
            Panel(f"Validation {metric}", metrics, Axis(metric)),
        ],
        Axis("epoch"),
        Axis(""),
        columns=1,
        legend=len(runs) > 1,
    )


def degree_effect(conv: DEMOConv) -> Chart:
    """What a layer of scheme ``scale`` has learnt of the degree: its factors and its bias, up to the largest degree.

    Lines are medians over the output columns; four of five columns are within the bands.
    """
    if not isinstance(conv.weights, ScaledWeights) or conv.tasks.by == "pair":
        problem = f"scheme={conv.scheme!r} by {conv.tasks.by!r} degree has no curve for each column"
        raise DemonetError(problem, hint="scheme='scale' by one degree has")
    if conv.tasks.is_open:
        raise DemonetError("the degree tasks are still open", hint="call the layer once before")
    degree = np.unique(np.geomspace(1, max(conv.tasks.max_degree, 1), 100).round().astype(np.int64))
    with torch.no_grad():
        given = torch.from_numpy(degree).to(conv.weights.shared.device)
        curves = 1 + conv.weights.scale(given), conv.weights.offset(given)
    panels = []
    for place, (title, curve) in enumerate(zip(("Factor 1 + γ(d)", "Bias β(d)"), curves, strict=True)):
        low, middle, high = np.quantile(curve.double().cpu().numpy(), (0.1, 0.5, 0.9), axis=1).tolist()
        panels.append(Panel(title, [Series(title, degree.tolist(), middle, low, high, colour=place)], Axis(title)))
    return Chart("What the degree changes", panels, Axis("degree", log=True), Axis(""), columns=1, legend=False)


def interval_bars(
    rows: Mapping[str, tuple[float, float, float]],
    *,
    title: str,
    highlight: Collection[str] = (),
    axis: str = "accuracy",
    line: float | None = None,
    share: bool = True,
) -> Chart:
    """A horizontal bar with an interval for each method, in the given order.

    Args:
        rows: For each method its value and the two ends of its interval (NaN if it has none).
        title: The title.
        highlight: Methods in colour; the others are grey.
        axis: The title of the axis.
        line: The place of a dotted vertical line through all bars, such as the best that is possible.
        share: Whether the axis reaches from 0 to 1 at least.
    """
    names = list(rows)
    series = []
    for chosen, colour in ((True, 0), (False, None)):
        members = [i for i, name in enumerate(names) if (name in highlight) is chosen]
        values, low, high = ([rows[names[i]][part] for i in members] for part in range(3))
        hover = [
            f"{names[i]}\n{value:.4g}" + ("" if np.isnan(a) else f" ({a:.4g} to {b:.4g})")
            for i, value, a, b in zip(members, values, low, high, strict=True)
        ]
        name = "in colour" if chosen else "in grey"
        series.append(Series(name, values, members, low, high, mark="bars", colour=colour, hover=hover))
    if line is not None:
        series.append(
            Series("line", [line, line], [-0.5, len(names) - 0.5], mark="curve", dash=2, hover=[f"{line:.4g}"] * 2)
        )
    every = [*rows.values()]
    least, most = min(0.0, float(np.nanmin(every))), max(0.0, float(np.nanmax(every)))
    across = Axis(axis, ends=(1.05 * least, max(1.0, most) if share else 1.05 * most))
    up = Axis("", names={float(i): name for i, name in enumerate(names)})
    return Chart(title, [Panel("", series)], across, up, legend=False)


def confusion(counts: NDArray[np.int64], names: Sequence[str]) -> Figure:
    """True classes in rows of ``counts``, predicted classes in columns; the colour is the share of a row."""
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
    height = min(900, max(380, 140 + (44 if written else 12) * size))
    return figure.update_layout(template=None, height=height)


def _curve(name: str, history: Mapping[str, Sequence[float]], key: str) -> NDArray[np.float64]:
    curve = np.asarray(history.get(key, ()), dtype=np.float64)
    if curve.ndim != 1 or not curve.size:
        raise DemonetError(f"run {name!r} has no values for {key!r}", hint="give one value for every epoch")
    return curve
