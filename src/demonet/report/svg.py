"""The words of SVG that the charts are written in: no script, light and dark."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from demonet.report.escape import visible
from demonet.report.palette import GROUND

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


def document(width: float, height: float, *, alt: str, rules: Mapping[str, tuple[str, str]], parts: list[str]) -> str:
    """A whole file.

    Args:
        width, height: Of the drawing.
        alt: What it shows, in words.
        rules: For each class its style in the light and in the dark, as the text of CSS rules.
        parts: What is drawn on the ground, in order.
    """
    light, dark = ("\n".join(rule[theme] for rule in rules.values()) for theme in (0, 1))
    style = _STYLE % {"light": GROUND[0], "dark": GROUND[1], "rules": light, "dark_rules": dark}
    described = escape(visible(alt), quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{described}">\n<style>{style}</style>\n'
        + "\n".join([f'<rect class="ground" width="{width:g}" height="{height:g}"/>', *parts])
        + "\n</svg>\n"
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "grid") -> str:
    """A straight line."""
    return f'<path class="{kind}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def text(x: float, y: float, words: str, *, anchor: str = "start", kind: str = "", more: str = "") -> str:
    """A line of text."""
    extra = f' class="{kind}"' if kind else ""
    extra += f" {more}" if more else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{escape(visible(words))}</text>'


def power_of_ten(power: int) -> str:
    """As an axis shows it.

    >>> power_of_ten(2), power_of_ten(6)
    ('100', '10⁶')
    """
    raised = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{10**power:,}" if 0 <= power <= 3 else f"{10.0**power:g}" if -3 <= power < 0 else f"10{raised}"
