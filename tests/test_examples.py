"""Every example and notebook runs as it stands, and so do the README's lines of Python."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pages import DATA, ROOT, blocks

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


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


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(notebook, tmp_path):
    """Its cells, one after another, as Jupyter runs them; outputs are not kept in the file."""
    cells = [cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    if "load(" in str(cells) and not DATA.is_dir():
        pytest.skip("the notebook loads a data set of the paper, and they are not here")
    assert not any(cell["outputs"] for cell in cells)
    out = run(["-c", "\n\n".join("".join(cell["source"]) for cell in cells)], tmp_path)
    assert re.search(r"\d\.\d{3}", out), out


def test_readme_python_runs(tmp_path):
    python = [block.text for block in blocks(ROOT / "README.md") if block.language == "python"]
    assert python
    for block in python:
        if "load(" not in block or DATA.is_dir():
            run(["-c", block], tmp_path)
