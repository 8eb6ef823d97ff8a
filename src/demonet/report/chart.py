"""Charts as data: panels of series over two axes. ``chart_plotly`` draws them on a page, the study as SVG files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from demonet.errors import DemonetError

DASHES = ("solid", "dash", "dot", "dashdot")
"""Dash patterns of lines, by the names that plotly has for them."""


@dataclass(frozen=True)
class Axis:
    """An axis.

    Args:
        title: What is measured.
        log: Whether it is logarithmic.
        names: Labels at these positions instead of numbers, as for a list of methods.
        share: Whether numbers are shown as percentages.
        bare: Whether it has no numbers, as for coordinates without a meaning of their own.
        ends: The limits; by default those of the points.
    """

    title: str
    log: bool = False
    names: Mapping[float, str] | None = None
    share: bool = False
    bare: bool = False
    ends: tuple[float, float] | None = None


@dataclass(frozen=True)
class Series:
    """A line, or a set of points.

    Args:
        name: The entry in the legend.
        x, y: Coordinates.
        low, high: The ends of each point's interval, NaN for none; may be empty.
        mark: ``"line"`` (with intervals as a band), ``"curve"`` (a line without points), ``"points"`` (intervals are
            vertical), ``"intervals"`` (horizontal, one below another), ``"bars"`` (horizontal), ``"columns"``
            (vertical, those of several series stacked), or ``"links"``: a thin line between the first two points, the
            next two, and so on.
        colour: Index of a categorical colour; ``None`` for grey.
        symbol: Index of a marker symbol: a second way to tell series apart.
        dash: Index of a dash pattern in ``DASHES``: a third way, for lines; 0 is solid, and thicker than the others.
        hollow: Whether points are outlines, so that those below them are seen.
        hover: The tooltip of each point; by default its coordinates.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    mark: Literal["line", "curve", "points", "intervals", "bars", "columns", "links"] = "line"
    colour: int | None = None
    symbol: int = 0
    dash: int = 0
    hollow: bool = False
    hover: Sequence[str] = ()

    def __post_init__(self) -> None:
        parts = (self.x, self.y, *(part for part in (self.low, self.high, self.hover) if len(part)))
        counts = {len(part) for part in parts}
        if len(counts) > 1:
            raise DemonetError(f"series {self.name!r} has lists of {sorted(counts)} items", hint="one for each point")
        if not all(map(math.isfinite, (*self.x, *self.y))):
            raise DemonetError(f"series {self.name!r} has a point that is not a number", hint="leave it out")


@dataclass(frozen=True)
class Panel:
    """One set of axes; ``y`` is its own vertical axis, if it differs from that of the chart."""

    title: str
    series: Sequence[Series]
    y: Axis | None = None


@dataclass(frozen=True)
class Chart:
    """Panels that share the meaning of their axes.

    Args:
        title: The heading.
        panels: The panels, in reading order.
        x, y: The axes of every panel.
        columns: Panels side by side on a wide screen.
        origin: Where to draw a vertical line, such as at "no difference"; none by default.
        square: Whether both axes have the same scale.
        legend: Whether there is a legend below the chart.
        end_labels: Whether lines are named at their right ends instead.
        note: The caption on the page.
    """

    title: str
    panels: Sequence[Panel]
    x: Axis
    y: Axis
    columns: int = 3
    origin: float | None = None
    square: bool = False
    legend: bool = True
    end_labels: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        if not any(len(series.x) for panel in self.panels for series in panel.series):
            raise DemonetError(f"chart {self.title!r} has no points")
        for panel in self.panels:
            for axis, name in ((self.x, "x"), (panel.y or self.y, "y")):
                values = (value for series in panel.series for value in getattr(series, name))
                if axis.log and min(values, default=1) <= 0:
                    raise DemonetError(
                        f"chart {self.title!r} has a point that is not positive on its logarithmic {name} axis"
                    )

    @property
    def rows(self) -> int:
        """Number of rows of panels."""
        return -(-len(self.panels) // self.columns)

    @property
    def alt(self) -> str:
        """A text alternative: the last value of every line, the length of every bar, the range of other series."""
        told = (f"{panel.title}: " * bool(panel.title) + f"{self._said(panel.series)}." for panel in self.panels)
        return f"{self.title}. " + " ".join(told)

    def _said(self, series: Sequence[Series]) -> str:
        if any(one.mark == "points" and not len(one.low) for one in series):
            return f"{sum(len(one.x) for one in series if one.mark == 'points')} points"
        names = self.y.names or self.x.names or {}
        parts: list[str] = []
        for one in (one for one in series if len(one.x)):
            if one.mark == "bars":
                parts += [f"{names[y]} {x:.3g}" for x, y in zip(one.x, one.y, strict=True)]
            elif one.mark in ("points", "columns"):
                parts += [f"{one.name} {y:.3g} at {names.get(x, x)}" for x, y in zip(one.x, one.y, strict=True)]
            elif one.mark == "intervals":
                parts.append(f"{one.name} {min(one.x):.3g} to {max(one.x):.3g}")
            else:
                parts.append(f"{one.name} {one.y[-1]:.3g}")
        return "; ".join(parts)


def limits(axis: Axis, values: Iterable[float]) -> tuple[float, float]:
    """The limits of an axis: the range of the values with a margin; for log axes, as exponents of ten."""
    known = [value for value in values if math.isfinite(value)]
    if axis.log:
        known = [math.log10(value) for value in known if value > 0]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if axis.names is not None:
        return min(axis.names) - 0.6, max(axis.names) + 0.6
    together = high - low <= 1e-9 * max(abs(low), abs(high))
    extra = 0.5 * (abs(high) or 1) if together else 0.04 * (high - low)
    return low - extra, high + extra


def spread(places: Mapping[str, float], least: float, lowest: float) -> dict[str, float]:
    """Heights of labels near the given places, at least ``least`` apart and none below ``lowest``; y grows downwards.

    >>> spread({"a": 10.0, "b": 12.0, "c": 50.0}, 15.0, 60.0)
    {'a': 10.0, 'b': 25.0, 'c': 50.0}
    """
    heights: dict[str, float] = {}
    below = -math.inf
    for name, place in sorted(places.items(), key=lambda item: item[1]):
        heights[name] = below = max(place, below + least)
    limit = lowest
    for name in reversed(heights):  # what was pushed too far down is pushed up again
        heights[name] = min(heights[name], limit)
        limit = heights[name] - least
    return heights
