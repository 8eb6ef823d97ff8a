"""The tables that README and docs show, in Markdown, from the committed files in ``results``."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from demonet.experiments.parts.comparison import METHODS, SETS
from demonet.experiments.printed import printed

Line = dict[str, str]
# The README's columns; one that no set has a number in is left out.
COLUMNS = (
    ("default", "demonet-default", "default"),
    ("paper preset, hash", "demonet-hash", "paper"),
    ("paper preset, weight", "demonet-weight", "paper"),
    ("authors preset, hash", "demonet-hash", "authors"),
    ("authors preset, weight", "demonet-weight", "authors"),
    ("GCN", "gcn", ""),
    ("GIN", "gin", ""),
    ("degree only", "degree-knn", ""),
    ("majority", "majority", ""),
)


def presets_table(*paths: Path) -> str:
    """The presets beside their floors: a line for each set, the printed numbers in the last column."""
    lines = [line for path in paths for line in _read(path) if not line.get("split", "").startswith("nested")]
    cells = {(line["dataset"], line["method"], line["preset"]): _shown(line) for line in lines}
    sets = list(dict.fromkeys(dataset for dataset, *_ in cells))
    columns = [column for column in COLUMNS if any(cells.get((name, *column[1:])) for name in sets)]
    found = [_row("set", *(column[0] for column in columns), "printed in the paper, hash / weight")]
    found.append("|---" * (len(columns) + 2) + "|")
    for name in sets:
        shown = [cells.get((name, method, preset), "") for _, method, preset in columns]
        both = (f"{printed(name, method)[0]:.3f}" for method in ("demonet-hash", "demonet-weight"))
        found.append(_row(name, *shown, " / ".join(both)))
    return "\n".join(found)


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


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _shown(line: Line) -> str:
    return f"{float(line['mean']):.3f} ± {float(line['std']):.3f}"


def _cost(line: Line) -> str:
    return f"{_shown(line)} | {float(line['seconds']):.2g} | {float(line['peak_memory_mb']):.0f}"
