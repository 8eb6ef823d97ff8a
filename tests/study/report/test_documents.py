"""What README and docs show is what the committed files say."""

import csv
import re
from itertools import product
from pathlib import Path

import pytest

from demonet_study.report.parts.changes import AS_PUBLISHED
from demonet_study.report.parts.tables import EVERY_METHOD as METHODS
from demonet_study.report.parts.tables import SIDE_BY_SIDE as SETS
from demonet_study.report.reasons import REASONS

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "baselines.md"


def comparison_table(path):
    """The table of all methods on docs/baselines.md, from the committed file."""
    cells = {(line["dataset"], named(line["method"], line.get("preset", ""))): line for line in _read(path)}
    found = ["| method | " + " | ".join(f"{name} | s | MB" for name in SETS) + " |", "|---" + "|---|--:|--:" * 2 + "|"]
    for method in (named(*method) for method in METHODS):
        lines = [cells.get((name, method)) for name in SETS]
        if any(lines):
            found.append(f"| `{method}` | " + " | ".join(_cost(line) if line else "| |" for line in lines) + " |")
    return "\n".join(found)


def named(method, preset):
    return f"{method}-authors" if preset == "authors" else method


def _read(path):
    with path.open(newline="", encoding="utf-8") as file:
        return [line for line in csv.DictReader(file) if int(line["runs"])]


def _shown(line):
    return f"{float(line['mean']):.3f} ± {float(line['std']):.3f}"


def _cost(line):
    return f"{_shown(line)} | {float(line['seconds']):.2g} | {float(line['peak_memory_mb']):.0f}"


@pytest.mark.parametrize(
    ("table", "page"), [("readme", "README.md"), ("account", "docs/reproducing.md"), ("total", "docs/reproducing.md")]
)
def test_pages_show_the_committed_tables(table, page):
    shown = (ROOT / "results" / "tables" / f"{table}.md").read_text(encoding="utf-8")
    assert shown in (ROOT / page).read_text(encoding="utf-8")


def test_the_reasons_for_misses_say_what_was_measured():
    with (ROOT / "results" / "reasons.csv").open(newline="", encoding="utf-8") as file:
        changed = [line for line in csv.DictReader(file) if line["variant"] != AS_PUBLISHED]
    assert changed
    for line in changed:
        (text,) = {reason.text for reason in REASONS if (line["dataset"], line["method"]) in covered(reason)}
        assert f"{float(line['mean']):.3f}" in text, line


def covered(reason):
    return set(product(reason.datasets, reason.methods))


def test_the_page_shows_the_committed_numbers():
    assert comparison_table(ROOT / "results" / "comparison.csv") in PAGE.read_text(encoding="utf-8")


def test_the_page_speaks_of_every_method():
    described = set(re.findall(r"^\| `([a-z0-9-]+)`", PAGE.read_text(encoding="utf-8").split("## The table")[0], re.M))
    assert described == {named(*method) for method in METHODS}
