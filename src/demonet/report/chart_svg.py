"""A chart as one small SVG file, for documents that show images."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from demonet.report.chart import Axis, Chart, Panel, Series, reach, ticks
from demonet.report.palette import CATEGORICAL, NEUTRAL
from demonet.report.svg import document, line, power_of_ten, text

WIDTH, TOP, FOOT = 900, 44, 18
FRAME, ALONE, HEAD, BELOW, BESIDE = 230, 380, 26, 40, 46
"""Height of a panel's frame, and of a single one; room for its title above, for its numbers below and beside it."""
NAME = 22
"""Height of a line of names on the upright axis."""
LETTER, ENTRY = 7.3, 22
"""Width of a letter, nearly, and height of a line of the legend."""
LONGEST = 34

CORNERS: dict[int, tuple[tuple[float, float], ...]] = {
    1: ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    2: ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    3: ((0, -1.2), (1.2, 1), (-1.2, 1)),
}
"""Of diamond, square and triangle, around their middle."""

Place = Callable[[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Frame:
    """Where a panel is on the sheet."""

    left: float
    top: float
    width: float
    height: float


def draw(chart: Chart) -> str:
    """The text of an SVG file."""
    frame_height: float = ALONE if len(chart.panels) == 1 else FRAME
    if chart.y.names is not None:
        frame_height = 20 + NAME * len(chart.y.names)
    columns = min(chart.columns, len(chart.panels))
    named = chart.y.names is not None
    names = 12 + LETTER * max(len(_cut(name)) for name in chart.y.names.values()) if chart.y.names else 0.0
    margin = 30 + names  # the title of the upright axis, or the names that stand there
    wide = (WIDTH - margin - 16) / columns
    beside = 14 if named else 22 if chart.y.bare else BESIDE
    whole = HEAD + frame_height + BELOW
    parts = [text(16, 28, chart.title, kind="title")]
    for index, panel in enumerate(chart.panels):
        left, top = margin + index % columns * wide + beside, TOP + HEAD + index // columns * whole
        frame = Frame(left, top, wide - beside, frame_height)
        parts += _panel(chart, panel, frame, first=index % columns == 0)
    bottom = TOP + chart.rows * whole
    parts.append(text(margin + (WIDTH - margin) / 2, bottom + 6, chart.x.title, anchor="middle"))
    if chart.y.title:
        middle = (TOP + bottom) / 2
        parts.append(text(20, middle, chart.y.title, anchor="middle", more=f'transform="rotate(-90 20 {middle:g})"'))
    height = bottom + FOOT
    if chart.legend:
        legend, height = _legend(chart, height)
        parts += legend
    return document(WIDTH, height + 6, alt=chart.alt, rules=_rules(chart), parts=parts)


def _panel(chart: Chart, panel: Panel, frame: Frame, *, first: bool) -> list[str]:
    everything = list(panel.series)
    upright = [series for series in everything if series.mark == "line"]
    lying = [series for series in everything if series.mark == "intervals"]
    x_low, x_high = reach(chart.x, _values(everything, "x", lying, chart.origin))
    y_low, y_high = reach(chart.y, _values(everything, "y", upright, None))
    if chart.square:
        unit = max((x_high - x_low) / frame.width, (y_high - y_low) / frame.height)
        x_low, x_high = _around((x_low + x_high) / 2, unit * frame.width)
        y_low, y_high = _around((y_low + y_high) / 2, unit * frame.height)

    def place(x: float, y: float) -> tuple[float, float]:
        across = ((math.log10(x) if chart.x.log else x) - x_low) / (x_high - x_low)
        up = ((math.log10(y) if chart.y.log else y) - y_low) / (y_high - y_low)
        up = 1 - up if chart.y.names is not None else up  # a list is read from above
        return frame.left + across * frame.width, frame.top + (1 - up) * frame.height

    right, bottom = frame.left + frame.width, frame.top + frame.height
    parts = [text(frame.left, frame.top - 10, panel.title, kind="panel")]
    for value, words in _marks(chart.x, x_low, x_high, 6 if frame.width > 200 else 3):
        x, _ = place(value, 10**y_low if chart.y.log else y_low)
        parts += [line(x, frame.top, x, bottom), text(x, bottom + 18, words, anchor="middle")]
    for value, words in _marks(chart.y, y_low, y_high):
        _, y = place(10**x_low if chart.x.log else x_low, value)
        parts.append(line(frame.left, y, right, y))
        if first or chart.y.names is None:
            parts.append(text(frame.left - 8, y + 4, words, anchor="end"))
    if chart.origin is not None:
        x, _ = place(chart.origin, y_low)
        parts.append(line(x, frame.top, x, bottom, "origin"))
    for series in sorted(everything, key=lambda series: series.colour is not None):
        parts += _series(series, place)
    return parts


def _series(series: Series, place: Place) -> list[str]:
    kind = _kind(series)
    points = [place(x, y) for x, y in zip(series.x, series.y, strict=True)]
    parts = []
    if series.mark == "links":
        return [line(*one, *other, "link") for one, other in zip(points[::2], points[1::2], strict=True)]
    if series.mark == "line":
        if series.low:
            ends = [*zip(series.x, series.high, strict=True), *reversed([*zip(series.x, series.low, strict=True)])]
            parts.append(f'<polygon class="{kind}" points="{_path([place(x, y) for x, y in ends])}"/>')
        parts.append(f'<polyline class="{kind}" points="{_path(points)}"/>')
    elif series.mark == "intervals" and series.low:
        for y, low, high in zip(series.y, series.low, series.high, strict=True):
            parts.append(line(*place(low, y), *place(high, y), f"bar {kind}"))
    size = {"line": 3.2, "points": 5.0, "intervals": 4.5}[series.mark]
    return parts + [symbol(series.symbol, x, y, size, kind) for x, y in points]


def symbol(which: int, x: float, y: float, size: float, kind: str) -> str:
    """A point: circle, diamond, square or triangle, then these again."""
    if which % 4 == 0:
        return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{size:g}"/>'
    path = " ".join(f"{x + size * across:.1f},{y + size * down:.1f}" for across, down in CORNERS[which % 4])
    return f'<polygon class="dot {kind}" points="{path}"/>'


def _marks(axis: Axis, low: float, high: float, most: int = 6) -> list[tuple[float, str]]:
    """Where an axis has lines, and what stands there."""
    if axis.names is not None:
        return [(place, _cut(name)) for place, name in axis.names.items()]
    if axis.log:
        return [(10.0**power, power_of_ten(power)) for power in range(math.ceil(low), math.floor(high) + 1)]
    if axis.bare:
        return []
    words = "{:.0%}" if axis.share else "{:g}"
    return [(value, words.format(value).replace("-", "−")) for value in ticks(low, high, most)]


def _legend(chart: Chart, top: float) -> tuple[list[str], float]:
    """The names of all series, as many on a line as there is room for, and where it ends."""
    parts, x, y = [], 30.0, top + 14
    every = {series.name: series for panel in chart.panels for series in panel.series if series.mark != "links"}
    for name, series in every.items():
        words = _cut(name)
        width = 34 + LETTER * len(words)
        if x + width > WIDTH - 16 and x > 30:
            x, y = 30.0, y + ENTRY
        parts += [symbol(series.symbol, x, y - 4, 4.5, _kind(series)), text(x + 11, y, words)]
        x += width
    return parts, y + 8


def _values(every: Sequence[Series], axis: str, with_ends: Sequence[Series], origin: float | None) -> list[float]:
    values = [value for series in every for value in getattr(series, axis)]
    values += [value for series in with_ends for value in (*series.low, *series.high)]
    return values if origin is None else [*values, origin]


def _around(middle: float, length: float) -> tuple[float, float]:
    return middle - length / 2, middle + length / 2


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def _path(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _kind(series: Series) -> str:
    return "other" if series.colour is None else f"c{series.colour % len(CATEGORICAL)}"


def _rules(chart: Chart) -> dict[str, tuple[str, str]]:
    used = {_kind(series): series for panel in chart.panels for series in panel.series}
    rules = {"panel": (".panel { font-weight: 600; } .origin, .link { stroke: #868e99; stroke-width: 1.2; }", "")}
    for kind, series in sorted(used.items()):
        pair = NEUTRAL if series.colour is None else CATEGORICAL[series.colour % len(CATEGORICAL)]
        rules[kind] = (_rule(kind, pair[0]), _rule(kind, pair[1]))
    return rules


def _rule(kind: str, colour: str) -> str:
    width = 1.4 if kind == "other" else 2.4
    return (
        f"polyline.{kind} {{ stroke: {colour}; stroke-width: {width}; fill: none; }} "
        f"polygon.{kind} {{ fill: {colour}; fill-opacity: .14; }} polygon.dot.{kind} {{ fill-opacity: 1; }} "
        f"circle.{kind} {{ fill: {colour}; }} .bar.{kind} {{ stroke: {colour}; stroke-width: 2.2; }}"
    )
