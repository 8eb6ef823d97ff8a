"""Packages import in one direction, importing is light, every module says what it is for."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import demonet

SOURCE = Path(demonet.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
PACKAGES = sorted({path.relative_to(SOURCE).parts[0] for path in FILES if path.parent != SOURCE})

# A module imports only from packages of a lower level.
LEVEL = {
    **{"errors": -2, "atomic": -1, "configfile": 0, "checks": 0, "tensorfile": 0, "sealed": 0, "arrayfolder": 1},
    **{"degree": 1, "data": 2, "ops": 3, "nn": 4, "kernels": 5, "train": 5, "transforms": 5},
    **{"baselines": 6, "distributed": 6, "ensemble": 7, "estimators": 8, "experiments": 8, "bench": 8},
    **{"runs": 9, "report": 10, "cli": 11},
}
# Exceptions: imports inside one level.
BESIDE = {("experiments", "estimators"), ("experiments", "bench")}


def package(path: Path) -> str:
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


def may_import(importer: str, imported: str) -> bool:
    same = importer == imported
    return same or LEVEL[imported] < LEVEL[importer] or (importer, imported) in BESIDE


def test_every_package_has_a_level():
    assert set(PACKAGES) <= set(LEVEL)
    assert {package(path) for path in FILES if path.parent == SOURCE} <= {"__init__", "__main__", *LEVEL}


@pytest.mark.parametrize("name", sorted(LEVEL))
def test_imports_go_one_way(name):
    wrong = []
    for path in FILES:
        if package(path) != name:
            continue
        for module in sorted(imports(path) - {"demonet"}):
            imported = module.split(".")[1]
            if imported in LEVEL and not may_import(name, imported):
                wrong.append(f"{path.relative_to(SOURCE)} imports {module}")
    assert wrong == []


def test_the_check_finds_an_import_from_a_higher_level(tmp_path):
    """Without this the test above could not fail."""
    path = tmp_path / "a.py"
    path.write_text("def f():\n    from demonet.train.loop import fit\n    from demonet import cli\n")
    assert imports(path) == {"demonet.train.loop", "demonet", "demonet.cli"}
    assert not may_import("data", "train")
    assert not may_import("baselines", "experiments")
    assert may_import("experiments", "baselines")
    assert may_import("train", "nn")


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
def test_every_module_has_a_docstring(path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
