"""docs/architecture.md names files that exist, its walks are traced, and its picture shows every package."""

import re
import runpy
import sys
from itertools import pairwise

import pytest
from tests.pages import DATA, ROOT
from tests.test_architecture import LEVEL, SOURCE, STUDY_LEVEL

SITE = ROOT / "docs" / "site"
ARCHITECTURE = runpy.run_path(str(SITE / "architecture.py"))
PAGE = ARCHITECTURE["PAGE"].read_text(encoding="utf-8")


def rows(text):
    """By package, or by file, what a table of a walk names; without order and counts."""
    cells = [line.split("|") for line in text.splitlines() if re.match(r"\| \d", line)]
    return {cell[2].strip(): set(re.findall(r"`[\w/]+\.py`", cell[3])) for cell in cells}


def test_files_that_are_named_exist():
    text = ARCHITECTURE["WALK"].sub("", PAGE)
    named = {name for name in re.findall(r"`([\w/]+\.py|[\w/]+/\w+)`", text) if not name.startswith("tests")}
    assert [name for name in named if not any((folder / name).exists() for folder in (SOURCE, SOURCE.parent))] == []


@pytest.mark.parametrize("name", ["layer", "fit", "reproduce"])
def test_the_walks_are_as_traced(name, monkeypatch):
    """The same files; their order and the counts may depend on the machine."""
    if name == "reproduce" and not DATA.is_dir():
        pytest.skip("the walk loads a data set of the paper, and they are not here")
    monkeypatch.setenv("DEMONET_DATA", str(DATA))
    monkeypatch.setattr(sys, "path", [str(SITE), *sys.path])
    (shown,) = [found[0] for found in ARCHITECTURE["WALK"].finditer(PAGE) if found[2] == name]
    now = runpy.run_path(str(SITE / "walks.py"))["section"](name)
    assert rows(shown) == rows(now), "run python docs/site/architecture.py"


def test_the_picture_has_every_package_at_its_level():
    assert ARCHITECTURE["IMAGE"].read_text(encoding="utf-8") == ARCHITECTURE["draw"]()
    for drawn, level in (("ROWS", LEVEL), ("STUDY", STUDY_LEVEL)):
        rows = [[name for names, _ in row for name in names.split(", ")] for row in ARCHITECTURE[drawn]]
        assert sorted(name for row in rows for name in row) == sorted(level)
        levels = [[level[name] for name in row] for row in rows]
        assert all(max(low) <= min(high) for low, high in pairwise(levels))
