"""Draw a chart as a small SVG file without scripts, with light and dark colours."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from demonet.escape import visible
from demonet.report.chart import DASHES, Axis, Chart, Panel, Series, limits, spread
from demonet.report.palette import CATEGORICAL, GROUND, NEUTRAL

_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #333a44; }
.title { font-weight: 600; font-size: 15px; }
.grid { stroke: #868e99; stroke-opacity: .28; }
.ground { fill: %(light)s; }
%(rules)s
@media (prefers-color-scheme: dark) {
  text { fill: #d5dae1; }
  .ground { fill: %(dark)s; }
%(dark_rules)s
}
"""
WIDTH, TOP, FOOT = 900, 44, 18
FRAME, ALONE, HEAD, BELOW, BESIDE = 230, 380, 26, 40, 46
"""Heights of a panel and of a single panel; space for its title above, and for its numbers below and beside it."""
NAME = 22
"""Height of a line of names on the y axis."""
LETTER, ENTRY = 7.3, 22
"""Approximate width of a letter, and height of a line of the legend."""
END_LABELS, LABEL = 150, 15
"""Width of the right margin for labels at the ends of lines, and their least distance."""
LONGEST = 34
STROKES = {"dash": "8 4", "dot": "2 3", "dashdot": "8 3 2 3"}
"""Lengths of strokes and gaps."""

CORNERS: dict[int, tuple[tuple[float, float], ...]] = {
    1: ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    2: ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    3: ((0, -1.2), (1.2, 1), (-1.2, 1)),
}
"""Corners of diamond, square and triangle, relative to the centre."""

Place = Callable[[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Frame:
    """The position of a panel."""

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
    margin = 30 + names  # for the title of the y axis, or its names
    right_margin = END_LABELS if chart.end_labels else 16
    wide = (WIDTH - margin - right_margin) / columns
    beside = 14 if named else 22 if chart.y.bare else BESIDE
    whole = HEAD + frame_height + BELOW
    parts = [_text(16, 28, chart.title, kind="title")]
    for index, panel in enumerate(chart.panels):
        left, top = margin + index % columns * wide + beside, TOP + HEAD + index // columns * whole
        frame = Frame(left, top, wide - beside, frame_height)
        parts += _panel(chart, panel, frame, first=index % columns == 0)
    bottom = TOP + chart.rows * whole
    parts.append(_text(margin + (WIDTH - margin) / 2, bottom + 6, chart.x.title, anchor="middle"))
    if chart.y.title:
        middle = (TOP + bottom) / 2
        parts.append(_text(20, middle, chart.y.title, anchor="middle", more=f'transform="rotate(-90 20 {middle:g})"'))
    height = bottom + FOOT
    if chart.legend and not chart.end_labels:
        legend, height = _legend(chart, height)
        parts += legend
    return _document(WIDTH, height + 6, alt=chart.alt, rules=_rules(chart), parts=parts)


def _panel(chart: Chart, panel: Panel, frame: Frame, *, first: bool) -> list[str]:
    everything = list(panel.series)
    upright = [series for series in everything if series.mark == "line"]
    lying = [series for series in everything if series.mark == "intervals"]
    x_low, x_high = limits(chart.x, _values(everything, "x", lying, chart.origin))
    y_low, y_high = limits(chart.y, _values(everything, "y", upright, None))
    if chart.square:
        unit = max((x_high - x_low) / frame.width, (y_high - y_low) / frame.height)
        x_low, x_high = _around((x_low + x_high) / 2, unit * frame.width)
        y_low, y_high = _around((y_low + y_high) / 2, unit * frame.height)

    def place(x: float, y: float) -> tuple[float, float]:
        across = ((math.log10(x) if chart.x.log else x) - x_low) / (x_high - x_low)
        up = ((math.log10(y) if chart.y.log else y) - y_low) / (y_high - y_low)
        up = 1 - up if chart.y.names is not None else up  # a list starts at the top
        return frame.left + across * frame.width, frame.top + (1 - up) * frame.height

    right, bottom = frame.left + frame.width, frame.top + frame.height
    parts = [_text(frame.left, frame.top - 10, panel.title, kind="panel")]
    for value, words in _marks(chart.x, x_low, x_high, 6 if frame.width > 200 else 3):
        x, _ = place(value, 10**y_low if chart.y.log else y_low)
        parts += [_line(x, frame.top, x, bottom), _text(x, bottom + 18, words, anchor="middle")]
    for value, words in _marks(chart.y, y_low, y_high):
        _, y = place(10**x_low if chart.x.log else x_low, value)
        parts.append(_line(frame.left, y, right, y))
        if first or chart.y.names is None:
            parts.append(_text(frame.left - 8, y + 4, words, anchor="end"))
    if chart.origin is not None:
        x, _ = place(chart.origin, y_low)
        parts.append(_line(x, frame.top, x, bottom, "origin"))
    for series in sorted(everything, key=lambda series: series.colour is not None):
        parts += _series(series, place)
    if chart.end_labels:
        parts += _end_labels([series for series in everything if series.x], place, right, bottom)
    return parts


def _end_labels(every: Sequence[Series], place: Place, right: float, bottom: float) -> list[str]:
    """The name of each line at its right end; names are moved apart so that none covers another."""
    ends = {series.name: place(series.x[-1], series.y[-1]) for series in every}
    heights = spread({name: y for name, (_, y) in ends.items()}, LABEL, bottom)
    parts = []
    for series in every:
        (x, y), height = ends[series.name], heights[series.name]
        parts.append(_line(x + 4, y, right + 8, height))
        parts.append(_text(right + 12, height + 4, series.name, kind="" if series.colour is None else _kind(series)))
    return parts


def _series(series: Series, place: Place) -> list[str]:
    kind = _kind(series)
    points = [place(x, y) for x, y in zip(series.x, series.y, strict=True)]
    parts = []
    if series.mark == "links":
        return [_line(*one, *other, "link") for one, other in zip(points[::2], points[1::2], strict=True)]
    if series.mark == "line":
        if series.low:
            ends = [*zip(series.x, series.high, strict=True), *reversed([*zip(series.x, series.low, strict=True)])]
            parts.append(f'<polygon class="{kind}" points="{_path([place(x, y) for x, y in ends])}"/>')
        pattern = DASHES[series.dash % len(DASHES)]
        dashed = f' style="stroke-dasharray: {STROKES[pattern]}; stroke-width: 1.6"' if series.dash else ""
        parts.append(f'<polyline class="{kind}" points="{_path(points)}"{dashed}/>')
    elif series.mark == "intervals" and series.low:
        for y, low, high in zip(series.y, series.low, series.high, strict=True):
            parts.append(_line(*place(low, y), *place(high, y), f"bar {kind}"))
    size = {"line": 3.2, "points": 5.0, "intervals": 4.5}[series.mark]
    return parts + [symbol(series.symbol, x, y, size, kind) for x, y in points]


def symbol(which: int, x: float, y: float, size: float, kind: str) -> str:
    """A marker: circle, diamond, square or triangle, then these again."""
    if which % 4 == 0:
        return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{size:g}"/>'
    path = " ".join(f"{x + size * across:.1f},{y + size * down:.1f}" for across, down in CORNERS[which % 4])
    return f'<polygon class="dot {kind}" points="{path}"/>'


def _marks(axis: Axis, low: float, high: float, most: int = 6) -> list[tuple[float, str]]:
    """Positions and labels of the grid lines."""
    if axis.names is not None:
        return [(place, _cut(name)) for place, name in axis.names.items()]
    if axis.log:
        return [(10.0**power, power_of_ten(power)) for power in range(math.ceil(low), math.floor(high) + 1)]
    if axis.bare:
        return []
    words = "{:.0%}" if axis.share else "{:g}"
    return [(value, words.format(value).replace("-", "−")) for value in ticks(low, high, most)]


def _legend(chart: Chart, top: float) -> tuple[list[str], float]:
    """The legend, with as many entries on a line as fit, and its lower end."""
    parts, x, y = [], 30.0, top + 14
    every = {series.name: series for panel in chart.panels for series in panel.series if series.mark != "links"}
    for name, series in every.items():
        words = _cut(name)
        width = 34 + LETTER * len(words)
        if x + width > WIDTH - 16 and x > 30:
            x, y = 30.0, y + ENTRY
        parts += [symbol(series.symbol, x, y - 4, 4.5, _kind(series)), _text(x + 11, y, words)]
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


def _rules(chart: Chart) -> dict[str, tuple[str, ...]]:
    used = {_kind(series): series for panel in chart.panels for series in panel.series}
    rules: dict[str, tuple[str, ...]] = {
        "panel": (".panel { font-weight: 600; } .origin, .link { stroke: #868e99; stroke-width: 1.2; }", "")
    }
    for kind, series in sorted(used.items()):
        pair = NEUTRAL if series.colour is None else CATEGORICAL[series.colour % len(CATEGORICAL)]
        rules[kind] = (_rule(kind, pair[0]), _rule(kind, pair[1]))
        if chart.end_labels and series.colour is not None:
            rules[f"text {kind}"] = tuple(f"text.{kind} {{ fill: {colour}; }}" for colour in pair)
    return rules


def _rule(kind: str, colour: str) -> str:
    width = 1.4 if kind == "other" else 2.4
    return (
        f"polyline.{kind} {{ stroke: {colour}; stroke-width: {width}; fill: none; }} "
        f"polygon.{kind} {{ fill: {colour}; fill-opacity: .14; }} polygon.dot.{kind} {{ fill-opacity: 1; }} "
        f"circle.{kind} {{ fill: {colour}; }} .bar.{kind} {{ stroke: {colour}; stroke-width: 2.2; }}"
    )


def _document(width: float, height: float, *, alt: str, rules: Mapping[str, tuple[str, ...]], parts: list[str]) -> str:
    """The text of an SVG file; ``rules`` are CSS rules for light and dark mode, ``parts`` the elements in order."""
    light, dark = ("\n".join(rule[theme] for rule in rules.values()) for theme in (0, 1))
    style = _STYLE % {"light": GROUND[0], "dark": GROUND[1], "rules": light, "dark_rules": dark}
    described = escape(visible(alt), quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{described}">\n<style>{style}</style>\n'
        + "\n".join([f'<rect class="ground" width="{width:g}" height="{height:g}"/>', *parts])
        + "\n</svg>\n"
    )


def _line(x1: float, y1: float, x2: float, y2: float, kind: str = "grid") -> str:
    return f'<path class="{kind}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def _text(x: float, y: float, words: str, *, anchor: str = "start", kind: str = "", more: str = "") -> str:
    extra = f' class="{kind}"' if kind else ""
    extra += f" {more}" if more else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{escape(visible(words))}</text>'


def power_of_ten(power: int) -> str:
    """A power of ten as a tick label.

    >>> power_of_ten(2), power_of_ten(6)
    ('100', '10⁶')
    """
    raised = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{10**power:,}" if 0 <= power <= 3 else f"{10.0**power:g}" if -3 <= power < 0 else f"10{raised}"


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers between two limits, in steps of 1, 2 or 5 times a power of ten.

    >>> ticks(0.13, 0.87, 5)
    [0.2, 0.4, 0.6, 0.8]
    """
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(power * times for times in (1, 2, 5, 10, 20) if (high - low) / (power * times) <= most)
    first = math.ceil(low / step - 1e-9)
    return [round(place * step, 12) for place in range(first, math.floor(high / step + 1e-9) + 1)]
