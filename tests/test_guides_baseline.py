"""docs/extending/baseline.md: its steps, applied to a copy of the package, add a baseline that is listed and trains."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pages import DATA, ROOT, blocks, commands

PAGE = ROOT / "docs" / "extending" / "baseline.md"


def apply_diff(path: Path, diff: str) -> None:
    """Insert the lines of a diff that begin with + after the line before them, which must be in the file once."""
    text, context = path.read_text(encoding="utf-8"), ""
    for line in diff.splitlines():
        if line.startswith("+"):
            assert text.count(f"\n{context}\n") == 1
            text = text.replace(f"\n{context}\n", f"\n{context}\n{line[1:]}\n")
        context = line[1:]
    path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the package in which the files of the page have been written."""
    folder = tmp_path_factory.mktemp("guide")
    shutil.copytree(ROOT / "src", folder / "src")
    for block in blocks(PAGE):
        if block.title and block.language == "diff":
            apply_diff(folder / block.title, block.text)
        elif block.title:
            assert not (folder / block.title).exists()
            (folder / block.title).write_text(block.text, encoding="utf-8")
    return folder


def run(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "DEMONET_DATA": str(DATA)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_listed_and_trains(copy):
    (code,) = [block.text for block in blocks(PAGE) if block.language == "python" and not block.title]
    report = """
import demonet
print(demonet.__file__)
print(baselines.names().index("neighbour-degree"), baselines.get("neighbour-degree").defaults.log)
print(method.score(split.test, data.y) > baselines.get("majority")().fit(data, split).score(split.test, data.y))
"""
    file, listed, better = run(copy, "-c", code + report).splitlines()
    assert Path(file).is_relative_to(copy)
    assert listed == "3 True"
    assert better == "True"


@pytest.mark.skipif(not DATA.is_dir(), reason="the paper's data sets are not here")
def test_it_is_in_the_comparison(copy):
    (block,) = [block for block in blocks(PAGE) if block.language == "console"]
    ((command, _),) = commands(block.text)
    assert command.startswith("demonet reproduce ")
    run(copy, "-c", "from demonet.cli import main; main()", *command.split()[1:])
    with (copy / "trial" / "comparison.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == "neighbour-degree"]
    assert [(row["dataset"], row["runs"]) for row in rows] == [("brazil", "1")]
