"""The house: arrows between rooms go one way, importing is light, files are short."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import demonet

SOURCE = Path(demonet.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
ROOMS = sorted({path.relative_to(SOURCE).parts[0] for path in FILES if path.parent != SOURCE})

# data -> degree -> ops -> (nn, kernels) -> train
#      -> (baselines, estimators, experiments, bench) -> runs -> report -> cli
FLOOR = {
    **{"errors": 0, "atomic": 0, "data": 1, "degree": 2, "ops": 3, "nn": 4, "kernels": 4, "train": 5},
    **{"baselines": 6, "estimators": 6, "experiments": 6, "bench": 6, "runs": 7, "report": 8, "cli": 9},
}
# On one floor, and the door is open.
BESIDE = {("experiments", "baselines"), ("experiments", "estimators"), ("experiments", "bench")}


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Every module of the package that a file imports, at its top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names if node.module == "demonet"}
    return {name for name in found if name.split(".")[0] == "demonet"}


def may(importer: str, imported: str) -> bool:
    same = importer == imported
    return same or FLOOR[imported] < FLOOR[importer] or (importer, imported) in BESIDE


def test_every_room_has_its_floor():
    assert set(ROOMS) <= set(FLOOR)
    assert {room(path) for path in FILES if path.parent == SOURCE} <= {"__init__", "errors", "atomic", "__main__"}


@pytest.mark.parametrize("name", sorted({*ROOMS, "errors", "atomic"}))
def test_arrows_go_one_way(name):
    wrong = []
    for path in FILES:
        if room(path) != name:
            continue
        for module in sorted(imports(path) - {"demonet"}):
            imported = module.split(".")[1]
            if imported in FLOOR and not may(name, imported):
                wrong.append(f"{path.relative_to(SOURCE)} imports {module}")
    assert wrong == []


def test_the_check_sees_an_arrow_that_goes_back(tmp_path):
    """Without this the test above could not fail."""
    path = tmp_path / "a.py"
    path.write_text("def f():\n    from demonet.train.loop import fit\n    from demonet import cli\n")
    assert imports(path) == {"demonet.train.loop", "demonet", "demonet.cli"}
    assert not may("data", "train")
    assert not may("baselines", "experiments")
    assert may("experiments", "baselines")
    assert may("train", "nn")


LIGHT = "demonet, demonet.data, demonet.degree, demonet.ops, demonet.nn, demonet.kernels, demonet.train, demonet.bench"
HEAVY = ["typer", "rich", "plotly", "pooch", "pyarrow", "platformdirs", "filelock", "pandas", "playwright"]
# PyTorch Geometric cannot do without jinja2, so that one is watched: only what this package asks for counts.
ALONE = f"""
import builtins, sys
sys.modules.update(dict.fromkeys({HEAVY}))  # as if they were not installed
original = builtins.__import__
def watched(name, globals=None, *rest, **named):
    if name.split(".")[0] == "jinja2" and (globals or {{}}).get("__name__", "").startswith("demonet"):
        raise ImportError(name)
    return original(name, globals, *rest, **named)
builtins.__import__ = watched
import {LIGHT}
print("imported")
"""


def test_importing_asks_for_nothing_heavy():
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "imported\n", done.stderr


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_are_short_and_say_what_they_are(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 300
    assert ast.get_docstring(ast.parse(text)), "what is this file about?"
