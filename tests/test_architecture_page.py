"""docs/architecture.md names files that exist, no file twice in a path, and its picture shows every package."""

from __future__ import annotations

import re
import runpy
from itertools import pairwise

from tests.pages import ROOT
from tests.test_architecture import LEVEL, SOURCE, STUDY_LEVEL

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PATHS = [section for section in re.split(r"^## ", PAGE, flags=re.M) if "| step | file |" in section]
STEPS = [re.findall(r"^\| \d+ \| `([^`]+)` \|", section, re.M) for section in PATHS]


def test_there_are_three_paths_of_existing_files_none_twice():
    assert [len(steps) > 5 for steps in STEPS] == [True] * 3
    for steps in STEPS:
        assert len(set(steps)) == len(steps)
    named = {name for name in re.findall(r"`([\w/]+\.py|[\w/]+/\w+)`", PAGE) if not name.startswith("tests")}
    assert [name for name in named if not any((folder / name).exists() for folder in (SOURCE, SOURCE.parent))] == []


def test_the_picture_has_every_package_at_its_level():
    picture = runpy.run_path(str(ROOT / "docs" / "site" / "architecture.py"))
    assert picture["IMAGE"].read_text(encoding="utf-8") == picture["draw"]()
    for drawn, level in (("ROWS", LEVEL), ("STUDY", STUDY_LEVEL)):
        rows = [[name for names, _ in row for name in names.split(", ")] for row in picture[drawn]]
        assert sorted(name for row in rows for name in row) == sorted(level)
        levels = [[level[name] for name in row] for row in rows]
        assert all(max(low) <= min(high) for low, high in pairwise(levels))
