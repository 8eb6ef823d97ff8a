"""Draws the picture of the packages and writes the traced walks of the page: ``python docs/site/architecture.py``."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

PAGE = Path(__file__).parent.parent / "architecture.md"
WALK = re.compile(r"(<!-- walk: (\w+) -->\n).*?(\n<!-- end -->)", re.S)
IMAGE = Path(__file__).parent.parent / "images" / "architecture.svg"
# Rows of the picture, from the lowest level up: a package imports only from packages below it.
ROWS = [
    [("errors, escape, options, atomic", "errors, options, writes"), ("checks, schema, workers", "rules, processes")],
    [("configfile, sealed, tensorfile, arrayfolder", "safe files")],
    [("degree", "layout, tasks, counting")],
    [("data", "readers, columns, splits")],
    [("features", "a graph as numbers"), ("ops", "kernels and their choice")],
    [("nn", "layer, schemes, models")],
    [("train", "objective, loop, presets"), ("kernels", "Weisfeiler-Lehman"), ("transforms", "for PyG loaders")],
    [("closedform", "kernel machine"), ("distributed", "parts, processes")],
    [("methods", "a method on a split: ours and others")],
    [("ensemble", "candidates, selection, refit"), ("progress", "bars")],
    [("estimators", "scikit-learn classes")],
    [("runs", "files to run folder")],
    [("report", "pages")],
    [("cli", "commands"), ("predictor", "the same in Python")],
]
# The same of the study, above all of the library.
STUDY = [
    [("protocol", "splits by name"), ("ledger", "finished runs, workers"), ("methods", "compared systems")],
    [("bench", "timing")],
    [("experiments", "one run of each kind, statistics")],
    [("report", "tables, figures, claims")],
    [("cli", "reproduce, bench")],
]
WIDTH, HEIGHT, GAP = 720, 44, 10


def draw() -> str:
    """The picture as SVG."""
    total = HEIGHT + (len(ROWS) + len(STUDY)) * (HEIGHT + GAP) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" role="img" '
        'aria-label="Packages of demonet and, above it, of demonet_study; each imports only from those below it">',
        "<style>rect{fill:#eef2fb;stroke:#3f51b5;stroke-width:1.2}text{font-family:system-ui,sans-serif;fill:#1f2a44}"
        ".name{font-weight:600;font-size:15px}.what{font-size:12px;fill:#4a5570}"
        "@media(prefers-color-scheme:dark){rect{fill:#1e2438;stroke:#8c9eff}text{fill:#e8ebf7}.what{fill:#b3bad3}}"
        "</style>",
    ]
    places = [("demonet_study", row) for row in reversed(STUDY)] + [("demonet", row) for row in reversed(ROWS)]
    y, above = -HEIGHT, ""
    for whole, row in places:
        y += HEIGHT + GAP
        if whole != above:
            y, above = y + HEIGHT // 2, whole
            parts.append(f'<text class="name" x="{GAP}" y="{y - 6}">{whole}</text>')
        width = (WIDTH - GAP * (len(row) + 1)) / len(row)
        for place, (name, what) in enumerate(row):
            x = GAP + place * (width + GAP)
            parts += [
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{HEIGHT}" rx="6"/>',
                f'<text class="name" x="{x + width / 2:.1f}" y="{y + 19}" text-anchor="middle">{escape(name)}</text>',
                f'<text class="what" x="{x + width / 2:.1f}" y="{y + 35}" text-anchor="middle">{escape(what)}</text>',
            ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def traced(page: str) -> str:
    """The page with every walk traced anew."""
    from walks import section

    return WALK.sub(lambda found: f"{found[1]}{section(found[2])}{found[3]}", page)


if __name__ == "__main__":
    IMAGE.write_text(draw(), encoding="utf-8")
    PAGE.write_text(traced(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
