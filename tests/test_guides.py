"""docs/extending: the steps of every guide work on a copy of the package, and touch as few files as promised."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pages import DATA, ROOT, blocks, commands

PAGES = sorted((ROOT / "docs" / "extending").glob("*.md"))
FILES = {"format": 2, "method": 2, "metric": 1, "scheme": 2}  # files of the package that a guide writes or changes


def apply_diff(path: Path, diff: str) -> None:
    """Insert the lines of a diff that begin with + after the line before them, which must be in the file once."""
    text, context = path.read_text(encoding="utf-8"), ""
    for line in diff.splitlines():
        if line.startswith("+"):
            assert text.count(f"\n{context}\n") == 1, f"{context!r} in {path.name}"
            text = text.replace(f"\n{context}\n", f"\n{context}\n{line[1:]}\n")
        context = line[1:]
    path.write_text(text, encoding="utf-8")


def run(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "DEMONET_DATA": str(DATA)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_guide_is_known():
    assert {page.stem for page in PAGES} == set(FILES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_steps_work(page, tmp_path):
    shutil.copytree(ROOT / "src", tmp_path / "src")
    changed, ran = set(), 0
    for block in blocks(page):
        if block.title:
            path = tmp_path / block.title
            if block.title.startswith("src/"):
                changed.add(block.title)
                assert path.exists() == (block.language == "diff")
            if block.language == "diff":
                apply_diff(path, block.text)
            else:
                path.write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            printed = run(tmp_path, "-c", f"{block.text}\nimport demonet\nprint(demonet.__file__)")
            assert Path(printed.split()[-1]).is_relative_to(tmp_path)
            ran += 1
        elif block.language == "console":
            if not DATA.is_dir():
                pytest.skip("the paper's data sets are not here")
            for command, shown in commands(block.text):
                assert command.startswith("demonet ")
                printed = run(tmp_path, "-c", "from demonet.cli import main; main()", *command.split()[1:])
                for part in re.split(r"\.\.\.", shown):
                    assert part.strip() in printed
                ran += 1
    assert len(changed) == FILES[page.stem]
    assert ran
