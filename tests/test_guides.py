"""docs/extending: the steps of every guide work on a copy of the package, and touch as few files as promised."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pages import DATA, ROOT, blocks

PAGES = sorted((ROOT / "docs" / "extending").glob("*.md"))
FILES = {"format": 2, "method": 2, "metric": 1, "scheme": 2}  # files of the package that a guide writes or changes
# Workers are forked, because a spawned one imports torch again.
RUN = """
import multiprocessing
from pathlib import Path
import demonet
from demonet import workers
from tests.pages import run_page
workers.CONTEXT = multiprocessing.get_context("fork")
assert Path(demonet.__file__).is_relative_to(Path.cwd()), demonet.__file__
run_page(Path("steps.md"), Path.cwd())
"""


def apply_diff(path: Path, diff: str) -> None:
    """Insert the lines of a diff that begin with + after the line before them, which must be in the file once."""
    text, context = path.read_text(encoding="utf-8"), ""
    for line in diff.splitlines():
        if line.startswith("+"):
            assert text.count(f"\n{context}\n") == 1, f"{context!r} in {path.name}"
            text = text.replace(f"\n{context}\n", f"\n{context}\n{line[1:]}\n")
        context = line[1:]
    path.write_text(text, encoding="utf-8")


def test_every_guide_is_known():
    assert {page.stem for page in PAGES} == set(FILES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_steps_work(page, tmp_path):
    """Files first; then all that is run, in one process."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    changed, steps = set(), []
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
        elif block.language in ("python", "console"):
            steps.append(f"```{block.language}\n{block.text}```\n")
    if "$ demonet" in "".join(steps) and not DATA.is_dir():
        pytest.skip("the paper's data sets are not here")
    (tmp_path / "steps.md").write_text("\n".join(steps), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path / 'src'}{os.pathsep}{ROOT}", "DEMONET_DATA": str(DATA)}
    command = [sys.executable, "-c", RUN]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(changed) == FILES[page.stem]
    assert steps
