"""A chart as a plotly figure, for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from demonet.report.chart import Axis, Chart, Series
from demonet.report.figures import SYMBOLS, finish, plain
from demonet.report.palette import NEUTRAL, colour

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

PANEL, ENTRY = 300, 21
"""Height of a row of panels and of a line of the legend, in pixels."""


def draw(chart: Chart, *, panel_height: int = PANEL) -> Figure:
    """The figure. A name that occurs in several panels is one entry of the legend, and is hidden in all of them."""
    from plotly.subplots import make_subplots

    columns = min(chart.columns, len(chart.panels))
    height = panel_height * chart.rows + 140
    figure = make_subplots(
        rows=chart.rows,
        cols=columns,
        subplot_titles=[plain(panel.title, 60) for panel in chart.panels],
        horizontal_spacing=0.1 / columns,
        vertical_spacing=70 / height if chart.rows > 1 else 0.0,
        shared_yaxes=chart.y.names is not None,
    )
    told: set[str] = set()
    for index, panel in enumerate(chart.panels):
        place = {"row": index // columns + 1, "col": index % columns + 1}
        if chart.origin is not None:
            figure.add_vline(x=chart.origin, line={"color": NEUTRAL[0], "width": 1}, **place)
        for series in panel.series:
            _add(figure, series, chart, place, told)
    figure.update_xaxes(**_axis(chart.x))
    figure.update_yaxes(**_axis(chart.y))
    figure.update_yaxes(title_text=plain(chart.y.title), col=1)
    figure.update_xaxes(title_text=plain(chart.x.title), row=chart.rows)
    if chart.y.names is not None:
        figure.update_yaxes(autorange="reversed", showgrid=False)
    if chart.square:
        for index in range(len(chart.panels)):
            figure.layout[f"yaxis{index + 1 if index else ''}"].scaleanchor = f"x{index + 1 if index else ''}"
    figure.update_annotations(font_size=13)
    lines = -(-len(told) // 5) if chart.legend else 0
    return finish(figure, "", height=height + ENTRY * lines, showlegend=chart.legend, margin_t=44)


def _add(figure: Figure, series: Series, chart: Chart, place: dict[str, int], told: set[str]) -> None:
    if not series.x:
        return
    stroke = NEUTRAL[0] if series.colour is None else colour(series.colour)
    shared: dict[str, Any] = {"legendgroup": series.name, "name": plain(series.name, 40), **place}
    if series.mark == "line" and series.low:
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
    bars = {}
    if series.mark == "intervals" and series.low:
        above = [high - x for x, high in zip(series.x, series.high, strict=True)]
        below = [x - low for x, low in zip(series.x, series.low, strict=True)]
        bars["error_x"] = {"type": "data", "array": above, "arrayminus": below, "color": stroke, "width": 0}
    figure.add_scatter(
        x=list(series.x),
        y=list(series.y),
        mode="lines+markers" if series.mark == "line" else "markers",
        line={"color": stroke, "width": 1.5 if series.colour is None else 2.5},
        marker={
            "color": stroke,
            "symbol": SYMBOLS[series.symbol % len(SYMBOLS)],
            "size": 7 if series.mark == "line" else 10,
            "opacity": 0.8 if series.mark == "points" else 1,
        },
        showlegend=series.name not in told,
        **_hover(series, chart),
        **bars,
        **shared,
    )
    told.add(series.name)


def _hover(series: Series, chart: Chart) -> dict[str, Any]:
    if series.hover:
        return {"hoverinfo": "text", "hovertext": [plain(text, 200) for text in series.hover]}
    kind = ".0%" if chart.x.share else ".4~g"
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
        settings |= {"showticklabels": False}
    return settings
