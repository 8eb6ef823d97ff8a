"""A chart of lines on logarithmic axes as one small SVG, for documents that show images: no script, light and dark."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from demonet.errors import DemonetError
from demonet.report.palette import CATEGORICAL, NEUTRAL
from demonet.report.svg import document, line, power_of_ten, text

WIDTH, HEIGHT = 820, 500
LEFT, RIGHT, TOP, BOTTOM = 74, 150, 46, 56  # names of lines stand in the right margin
LINE = 15  # least distance of two names


def log_chart(
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    title: str,
    axes: tuple[str, str],
    highlight: Collection[str] = (),
) -> str:
    """The text of an SVG file.

    Args:
        series: For each line its points, all positive; a line without points is left out.
        title: What stands above.
        axes: What is measured, across and up.
        highlight: Lines drawn in colour and wide; the others are thin and grey, to compare with.
    """
    lines = {name: sorted(points) for name, points in series.items() if points}
    points = [point for walk in lines.values() for point in walk]
    if not points or min(min(point) for point in points) <= 0:
        raise DemonetError("a logarithmic chart needs points, all of them positive")
    x_low, x_high = _decades([x for x, _ in points])
    y_low, y_high = _decades([y for _, y in points])

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - x_low) / (x_high - x_low)
        up = (math.log10(y) - y_low) / (y_high - y_low)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    parts = [text(LEFT, 26, title, kind="title")]
    for power in range(x_low, x_high + 1):
        x, bottom = place(10**power, 10**y_low)
        parts += [line(x, bottom, x, TOP), text(x, bottom + 19, power_of_ten(power), anchor="middle")]
    for power in range(y_low, y_high + 1):
        x, y = place(10**x_low, 10**power)
        parts += [line(x, y, WIDTH - RIGHT, y), text(x - 8, y + 4, power_of_ten(power), anchor="end")]
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, axes[0], anchor="middle"))
    turned = f'transform="rotate(-90 18 {HEIGHT / 2:g})"'
    parts.append(text(18, HEIGHT / 2, axes[1], anchor="middle", more=turned))

    heights = _spread({name: place(*walk[-1])[1] for name, walk in lines.items()})
    coloured = [name for name in lines if name in highlight]
    for name, walk in lines.items():
        kind = f"c{coloured.index(name)}" if name in coloured else "other"
        placed = [place(*point) for point in walk]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline class="{kind}" points="{path}"/>')
        parts += [f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in placed]
        end_x, end_y = placed[-1]
        parts.append(f'<path class="grid" d="M{end_x + 4:.1f} {end_y:.1f}L{WIDTH - RIGHT + 8} {heights[name]:.1f}"/>')
        parts.append(text(WIDTH - RIGHT + 12, heights[name] + 4, name, kind=kind if name in coloured else ""))
    alt = f"{title}: {', '.join(lines)}; {axes[1]} against {axes[0]}."
    return document(WIDTH, HEIGHT, alt=alt, rules=_rules(len(coloured)), parts=parts)


def _rules(colours: int) -> dict[str, tuple[str, str]]:
    pairs = {f"c{index}": (*CATEGORICAL[index % len(CATEGORICAL)], 3.0) for index in range(colours)}
    pairs["other"] = (*NEUTRAL, 1.4)
    return {kind: (_rule(kind, light, width), _rule(kind, dark, width)) for kind, (light, dark, width) in pairs.items()}


def _rule(kind: str, colour: str, width: float) -> str:
    return (
        f"polyline.{kind} {{ stroke: {colour}; stroke-width: {width}; fill: none; }}\n"
        f"circle.{kind}, text.{kind} {{ fill: {colour}; }}"
    )


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around the values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _spread(heights: Mapping[str, float]) -> dict[str, float]:
    """Names moved apart just so far that none covers another."""
    placed: dict[str, float] = {}
    for name, height in sorted(heights.items(), key=lambda item: item[1]):
        placed[name] = max(height, max(placed.values(), default=-math.inf) + LINE)
    over = max(placed.values()) - (HEIGHT - BOTTOM)
    return {name: height - max(0.0, over) for name, height in placed.items()}
