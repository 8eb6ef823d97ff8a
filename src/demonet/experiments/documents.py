"""The table of all methods that the page on baselines shows, in Markdown, from the committed file."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from demonet.experiments.parts.comparison import METHODS, SETS

Line = dict[str, str]


def comparison_table(path: Path) -> str:
    """All methods: a line for each, three columns for each set."""
    cells = {(line["dataset"], named(line["method"], line.get("preset", ""))): line for line in _read(path)}
    found = ["| method | " + " | ".join(f"{name} | s | MB" for name in SETS) + " |", "|---" + "|---|--:|--:" * 2 + "|"]
    for method in (named(*method) for method in METHODS):
        lines = [cells.get((name, method)) for name in SETS]
        if any(lines):
            found.append(f"| `{method}` | " + " | ".join(_cost(line) if line else "| |" for line in lines) + " |")
    return "\n".join(found)


def named(method: str, preset: str) -> str:
    """A method in a table without a column for presets.

    >>> named("demonet-hash", "authors"), named("demonet-hash", "paper")
    ('demonet-hash-authors', 'demonet-hash')
    """
    return f"{method}-authors" if preset == "authors" else method


def _read(path: Path) -> Iterable[Line]:
    """The lines with at least one run."""
    with path.open(newline="", encoding="utf-8") as file:
        return [line for line in csv.DictReader(file) if int(line["runs"])]


def _shown(line: Line) -> str:
    return f"{float(line['mean']):.3f} ± {float(line['std']):.3f}"


def _cost(line: Line) -> str:
    return f"{_shown(line)} | {float(line['seconds']):.2g} | {float(line['peak_memory_mb']):.0f}"
