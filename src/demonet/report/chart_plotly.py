"""Draw a chart with plotly, for a page; on a narrow screen ``page.js`` stacks the panels.

Figures have no background, grid or fonts: ``page.js`` adds those for light or dark mode.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from demonet.report.chart import DASHES, Axis, Chart, Panel, Series, limits, spread
from demonet.report.palette import NEUTRAL, colour

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star")
"""When colours repeat, the symbols still differ."""
PANEL, BELOW, ALONE, NAME, BAR, GAP, ENTRY = 260, 180, 330, 22, 27, 64, 24
"""Heights in pixels: panel, panel above or below another, single panel, named line, named bar, gap between panels,
line of the legend."""
SHORT = 60
"""Letters of all names on the x axis up to which they stand upright."""
LABEL, LETTER = 15, 7.3
"""Least distance of labels at the ends of lines, and the approximate width of a letter."""

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


def draw(chart: Chart) -> Figure:
    """The figure. A series with the same name in several panels has one legend entry, which toggles all of them."""
    import plotly.graph_objects as go

    figure = go.Figure()
    columns = min(chart.columns, len(chart.panels))
    panel = ALONE if len(chart.panels) == 1 or chart.end_labels else BELOW if columns == 1 else PANEL
    if chart.y.names is not None:
        bars = any(series.mark == "bars" for each in chart.panels for series in each.series)
        panel = 24 + (BAR if bars else NAME) * len(chart.y.names)
    named: set[str] = set()
    for index, each in enumerate(chart.panels):
        number = str(index + 1) if index else ""
        _axes(figure, chart, each, number, first=index % columns == 0)
        figure.add_annotation(
            text=f"<b>{plain(each.title, 60)}</b>",
            showarrow=False,
            **{"xref": f"x{number} domain", "x": 0, "xanchor": "left"},
            **{"yref": f"y{number} domain", "y": 1, "yanchor": "bottom", "yshift": 5},
        )
        for series in each.series:
            _add(figure, series, chart, number, named)
        if chart.end_labels:
            _label_ends(figure, each, chart, number, panel)
    below = {"xref": "paper", "x": 0.5, "xanchor": "center", "yref": "paper", "y": 0, "yanchor": "top", "yshift": -26}
    figure.add_annotation(text=plain(chart.x.title), showarrow=False, **below)  # one title for all panels
    legend = chart.legend and not chart.end_labels
    lines = _legend_lines(named, 480 if len(chart.panels) == 1 else 960) if legend else 0
    phone = ENTRY * _legend_lines(named, 300) if legend else 0
    right = {"r": int(20 + LETTER * max(map(len, named)))} if chart.end_labels else {}
    # Without plotly's template: it is large, and the page has its own style.
    figure.update_layout(
        template=None,
        grid={
            **{"rows": chart.rows, "columns": columns, "pattern": "independent"},
            **{"xgap": 0.06 if chart.y.names else 0.17, "ygap": GAP / (panel + GAP)},
        },
        meta={"panels": len(chart.panels), "panel": panel, "gap": GAP, "around": 110 + phone, "below": 58 + phone},
        height=chart.rows * (panel + GAP) + 46 + ENTRY * lines,
        margin={"t": 50, "b": 58 + ENTRY * lines, **right},
        showlegend=legend,
        barmode="stack",
    )
    return figure


def _legend_lines(names: Iterable[str], width: float) -> int:
    """About how many lines of so many pixels a legend needs; on several, all entries are as wide as the widest."""
    widths = [45 + LETTER * min(len(name), 40) for name in names]
    return 1 if sum(widths) <= width else math.ceil(len(widths) / max(1, width // max(widths)))


def _axes(figure: Figure, chart: Chart, panel: Panel, number: str, *, first: bool) -> None:
    own = panel.y or chart.y
    across, up = _axis(chart.x), _axis(own)
    if chart.x.names is not None and sum(len(name) + 2 for name in chart.x.names.values()) <= SHORT:
        across["tickangle"] = 0  # slanted names would cover the title
    if (first or panel.y) and own.title:
        up["title"] = {"text": plain(own.title)}
    if chart.y.names is not None:
        last = max(chart.y.names)
        up |= {"range": [last + 0.6, -0.6], "showgrid": True, "showticklabels": first}
    if chart.origin is not None:
        across |= {"zeroline": chart.origin == 0, "zerolinecolor": NEUTRAL[0]}
    if chart.square:
        up["scaleanchor"] = f"x{number}"
    figure.layout[f"xaxis{number}"] = across
    figure.layout[f"yaxis{number}"] = up


def _add(figure: Figure, series: Series, chart: Chart, number: str, named: set[str]) -> None:
    if not len(series.x):
        return
    stroke = NEUTRAL[0] if series.colour is None else colour(series.colour)
    place = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
    shared: dict[str, Any] = {"legendgroup": series.name, "name": plain(series.name, 40), **place}
    if series.mark in ("line", "curve") and len(series.low):
        figure.add_scatter(
            x=[*series.x, *reversed(series.x)],
            y=[*series.high, *reversed(series.low)],
            fill="toself",
            fillcolor=stroke,
            opacity=0.14,
            line={"width": 0},
            mode="lines",
            hoverinfo="skip",
            showlegend=False,
            **shared,
        )
    if series.mark == "links":
        thin = {"color": stroke, "width": 1}
        segments = [
            [(*pair, None) for pair in zip(ends[::2], ends[1::2], strict=True)] for ends in (series.x, series.y)
        ]
        x, y = ([place for pair in pairs for place in pair] for pairs in segments)
        figure.add_scatter(x=x, y=y, mode="lines", line=thin, hoverinfo="skip", showlegend=False, **shared)
        return
    shared |= {"showlegend": series.name not in named, **_hover(series, chart), **_interval(series, stroke)}
    named.add(series.name)
    points = {"x": np.asarray(series.x), "y": np.asarray(series.y)}
    if series.mark in ("bars", "columns"):
        width, orientation = (0.62, "h") if series.mark == "bars" else (0.7, "v")
        figure.add_bar(**points, width=width, orientation=orientation, marker={"color": stroke}, **shared)
        return
    modes = {"line": "lines+markers", "curve": "lines"}
    figure.add_scatter(
        **points,
        mode=modes.get(series.mark, "markers"),
        line={
            "color": stroke,
            "width": 1.5 if series.colour is None or series.dash else 2.5,
            **({"dash": DASHES[series.dash % len(DASHES)]} if series.dash else {}),
        },
        marker={
            "color": stroke,
            "symbol": SYMBOLS[series.symbol % len(SYMBOLS)] + "-open" * series.hollow,
            "size": 7 if series.mark == "line" else 9,
            "opacity": 0.8 if series.mark == "points" else 1,
        },
        **shared,
    )


def _interval(series: Series, stroke: str) -> dict[str, Any]:
    """The intervals of single points and bars."""
    if not len(series.low) or series.mark in ("line", "curve"):
        return {}
    axis, centre = ("y", series.y) if series.mark in ("points", "columns") else ("x", series.x)
    bars = {
        "type": "data",
        "array": np.subtract(series.high, centre),
        "arrayminus": np.subtract(centre, series.low),
        "thickness": 1.5,
        "width": 0 if series.mark == "intervals" else 4,
    }
    return {f"error_{axis}": bars if series.mark in ("bars", "columns") else {**bars, "color": stroke}}


def _label_ends(figure: Figure, panel: Panel, chart: Chart, number: str, height: int) -> None:
    """Write the name of each line at its right end, in its colour; names are moved apart so that none covers another.

    The ranges of the axes are fixed: names do not widen them, and the distance of two names in pixels is known.
    """
    every = [series for series in panel.series if len(series.x)]
    across = limits(chart.x, [value for series in every for value in series.x])
    low, high = limits(chart.y, [value for series in every for value in series.y])
    figure.layout[f"xaxis{number}"].update(range=across)
    figure.layout[f"yaxis{number}"].update(range=[low, high])
    ends = {series.name: (_place(series.x[-1], chart.x), _place(series.y[-1], chart.y)) for series in every}
    down = {name: height * (high - y) / (high - low) for name, (_, y) in ends.items()}
    heights: dict[str, float] = {}
    for last in {x for x, _ in ends.values()}:
        heights |= spread({name: down[name] for name, (x, _) in ends.items() if x == last}, LABEL, height)
    for series in every:
        x, y = ends[series.name]
        figure.add_annotation(
            text=plain(series.name, 40),
            font={"color": NEUTRAL[0] if series.colour is None else colour(series.colour)},
            showarrow=False,
            **{"xref": f"x{number}", "x": x, "xanchor": "left", "xshift": 8},
            **{"yref": f"y{number}", "y": y, "yanchor": "middle", "yshift": down[series.name] - heights[series.name]},
        )


def _place(value: float, axis: Axis) -> float:
    """A value as annotations take it."""
    return math.log10(value) if axis.log else value


def _hover(series: Series, chart: Chart) -> dict[str, Any]:
    if len(series.hover):
        return {"hoverinfo": "text", "hovertext": [plain(text, 200) for text in series.hover]}
    kind = ".0%" if chart.x.share else ",.4~g"
    return {"hovertemplate": f"{plain(series.name, 60)}<br>%{{y:.4~g}} at %{{x:{kind}}}<extra></extra>"}


def _axis(axis: Axis) -> dict[str, Any]:
    settings: dict[str, Any] = {"zeroline": False}
    if axis.log:
        settings |= {"type": "log", "dtick": 1}
    if axis.share:
        settings |= {"tickformat": ".0%"}
    if axis.names is not None:
        settings |= {"tickvals": list(axis.names), "ticktext": [f"{plain(name, 34)}  " for name in axis.names.values()]}
    if axis.bare:
        settings |= {"showticklabels": False, "showgrid": False}
    if axis.ends is not None:
        settings |= {"range": list(axis.ends)}
    return settings
