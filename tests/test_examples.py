"""Every example and notebook runs as it stands, and so do the README's lines of Python."""

import contextlib
import json
import re
import runpy

import pytest
from tests.pages import DATA, ROOT, blocks

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, few_candidates):
    """An empty folder to work in."""
    monkeypatch.setenv("DEMONET_DATA", str(DATA))
    with contextlib.chdir(tmp_path):
        yield


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example, capsys):
    runpy.run_path(str(example), run_name="__main__")
    assert re.search(r"\d\.\d{3}", capsys.readouterr().out)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(notebook, capsys):
    """Its cells, one after another, as Jupyter runs them; outputs are not kept in the file."""
    cells = [cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    if "load(" in str(cells) and not DATA.is_dir():
        pytest.skip("the notebook loads a data set of the paper, and they are not here")
    assert not any(cell["outputs"] for cell in cells)
    exec("\n\n".join("".join(cell["source"]) for cell in cells), {"__name__": "__main__"})
    assert re.search(r"\d\.\d{3}", capsys.readouterr().out)


def test_readme_python_runs():
    python = [block.text for block in blocks(ROOT / "README.md") if block.language == "python"]
    assert python
    for block in python:
        if "load(" not in block or DATA.is_dir():
            exec(block, {"__name__": "__main__"})
