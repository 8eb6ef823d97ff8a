"""Every example runs as it stands, and so do the README's lines of Python."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pages import DATA, ROOT, blocks

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def run(code: list[str], tmp_path: Path) -> str:
    environment = os.environ | {"DEMONET_DATA": str(DATA)}
    result = subprocess.run(
        [sys.executable, *code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example, tmp_path):
    out = run([str(example)], tmp_path)
    assert re.search(r"\d\.\d{3}", out), out


def test_readme_python_runs(tmp_path):
    python = [block.text for block in blocks(ROOT / "README.md") if block.language == "python"]
    assert python
    for block in python:
        if "load(" not in block or DATA.is_dir():
            run(["-c", block], tmp_path)
