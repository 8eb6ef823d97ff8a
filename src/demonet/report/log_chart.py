"""A chart of lines on logarithmic axes as one small SVG, for documents that show images: no script, light and dark."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from html import escape

from demonet.errors import DemonetError
from demonet.report.palette import CATEGORICAL, GROUND, NEUTRAL

WIDTH, HEIGHT = 820, 500
LEFT, RIGHT, TOP, BOTTOM = 74, 150, 46, 56  # names of lines stand in the right margin
LINE = 15  # least distance of two names

_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #333a44; }
.title { font-weight: 600; font-size: 15px; }
.grid { stroke: #868e99; stroke-opacity: .28; }
.ground { fill: %(light)s; }
%(lines)s
@media (prefers-color-scheme: dark) {
  text { fill: #d5dae1; }
  .ground { fill: %(dark)s; }
%(dark_lines)s
}
"""


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
    points = [point for line in lines.values() for point in line]
    if not points or min(min(point) for point in points) <= 0:
        raise DemonetError("a logarithmic chart needs points, all of them positive")
    x_low, x_high = _decades([x for x, _ in points])
    y_low, y_high = _decades([y for _, y in points])

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - x_low) / (x_high - x_low)
        up = (math.log10(y) - y_low) / (y_high - y_low)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    parts = [f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>', _text(LEFT, 26, title, kind="title")]
    for power in range(x_low, x_high + 1):
        x, bottom = place(10**power, 10**y_low)
        parts += [_line(x, bottom, x, TOP), _text(x, bottom + 19, _tick(power), anchor="middle")]
    for power in range(y_low, y_high + 1):
        x, y = place(10**x_low, 10**power)
        parts += [_line(x, y, WIDTH - RIGHT, y), _text(x - 8, y + 4, _tick(power), anchor="end")]
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, axes[0], anchor="middle"))
    turned = f'transform="rotate(-90 18 {HEIGHT / 2:g})"'
    parts.append(_text(18, HEIGHT / 2, axes[1], anchor="middle", more=turned))

    heights = _spread({name: place(*line[-1])[1] for name, line in lines.items()})
    coloured = [name for name in lines if name in highlight]
    for name, line in lines.items():
        kind = f"c{coloured.index(name)}" if name in coloured else "other"
        placed = [place(*point) for point in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline class="{kind}" points="{path}"/>')
        parts += [f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in placed]
        end_x, end_y = placed[-1]
        parts.append(f'<path class="grid" d="M{end_x + 4:.1f} {end_y:.1f}L{WIDTH - RIGHT + 8} {heights[name]:.1f}"/>')
        parts.append(_text(WIDTH - RIGHT + 12, heights[name] + 4, name, kind=kind if name in coloured else ""))
    alt = escape(f"{title}: {', '.join(lines)}; {axes[1]} against {axes[0]}.", quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{alt}">\n'
        f"<style>{_style(len(coloured))}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _style(colours: int) -> str:
    pairs = {f"c{index}": (*CATEGORICAL[index % len(CATEGORICAL)], 3.0) for index in range(colours)}
    pairs["other"] = (*NEUTRAL, 1.4)
    rules = [
        "\n".join(
            f"polyline.{kind} {{ stroke: {pair[theme]}; stroke-width: {pair[2]}; fill: none; }}\n"
            f"circle.{kind}, text.{kind} {{ fill: {pair[theme]}; }}"
            for kind, pair in pairs.items()
        )
        for theme in (0, 1)
    ]
    return _STYLE % {"light": GROUND[0], "dark": GROUND[1], "lines": rules[0], "dark_lines": rules[1]}


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


def _tick(power: int) -> str:
    return f"{10**power:,}" if 0 <= power <= 3 else f"{10.0**power:g}" if -3 <= power < 0 else f"10{_raised(power)}"


def _raised(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path class="grid" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", kind: str = "", more: str = "") -> str:
    extra = f' class="{kind}"' if kind else ""
    extra += f" {more}" if more else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{escape(text)}</text>'
