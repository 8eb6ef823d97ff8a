"""Packages import in one direction, and importing is light."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import demonet
import demonet_study

SOURCE = Path(demonet.__file__).parent
STUDY = Path(demonet_study.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
STUDY_FILES = sorted(STUDY.rglob("*.py"))

# A module imports only from packages of a lower level.
LEVEL = {
    **{
        "errors": -3,
        "escape": -3,
        "options": -2,
        "atomic": -1,
        "configfile": 0,
        "checks": 0,
        "schema": 0,
        "sealed": 0,
        "workers": 0,
        "tensorfile": 0.5,
        "arrayfolder": 1,
    },
    **{"degree": 1, "data": 2, "features": 3, "ops": 3, "nn": 4, "kernels": 5, "train": 5, "transforms": 5},
    **{
        "closedform": 6,
        "distributed": 6,
        "methods": 7,
        "ensemble": 8,
        "progress": 8.5,
        "estimators": 9,
        "runs": 10,
        "report": 11,
        "cli": 12,
        "predictor": 12,
    },
}
# The same inside the study, which imports anything from the library.
STUDY_LEVEL = {"protocol": 0, "ledger": 0, "methods": 0, "bench": 1, "experiments": 2, "report": 3, "cli": 4}
PACKAGES = [("demonet", name) for name in sorted(LEVEL)] + [("demonet_study", name) for name in sorted(STUDY_LEVEL)]


def package(path: Path) -> tuple[str, str]:
    """The top-level package of a file, and the package or module of that which the file belongs to."""
    whole = STUDY if path.is_relative_to(STUDY) else SOURCE
    return whole.name, path.relative_to(whole).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Every module of the two packages that a file imports, at its top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found.add(node.module)
            whole = node.module in ("demonet", "demonet_study")
            found |= {f"{node.module}.{alias.name}" for alias in node.names if whole}
    return {name for name in found if name.split(".")[0] in ("demonet", "demonet_study")}


def may_import(importer: tuple[str, str], imported: tuple[str, str]) -> bool:
    """Whether a package may import another; both as :func:`package` gives them."""
    if importer[0] != imported[0]:
        return importer[0] == "demonet_study"
    level = LEVEL if importer[0] == "demonet" else STUDY_LEVEL
    return importer == imported or level[imported[1]] < level[importer[1]]


def test_every_package_has_a_level():
    assert {package(path) for path in [*FILES, *STUDY_FILES]} - set(PACKAGES) == {
        ("demonet", "__init__"),
        ("demonet", "__main__"),
        ("demonet_study", "__init__"),
    }


@pytest.mark.parametrize("name", PACKAGES, ids=".".join)
def test_imports_go_one_way(name):
    wrong = []
    for path in [*FILES, *STUDY_FILES]:
        if package(path) != name:
            continue
        for module in sorted(imports(path) - {"demonet"}):
            imported = (*module.split("."), "__init__")[:2]
            known = imported in PACKAGES or imported[0] != name[0]
            if known and not may_import(name, imported):
                wrong.append(f"{path} imports {module}")
    assert wrong == []


def test_the_library_names_the_study_in_two_places():
    """Where commands and methods are looked up: no other import by name goes round the rule above."""
    named = [path.relative_to(SOURCE).as_posix() for path in FILES if "demonet_study" in path.read_text("utf-8")]
    assert named == ["cli/__init__.py", "methods/__init__.py"]


def test_the_check_finds_an_import_from_a_higher_level(tmp_path):
    """Without this the test above could not fail."""
    path = tmp_path / "a.py"
    path.write_text(
        "def f():\n    from demonet.train.loop import fit\n    from demonet import cli\n    import demonet_study\n"
    )
    assert imports(path) == {"demonet.train.loop", "demonet", "demonet.cli", "demonet_study"}
    assert not may_import(("demonet", "data"), ("demonet", "train"))
    assert not may_import(("demonet", "cli"), ("demonet_study", "ledger"))
    assert not may_import(("demonet_study", "ledger"), ("demonet_study", "experiments"))
    assert may_import(("demonet_study", "ledger"), ("demonet", "cli"))
    assert may_import(("demonet", "train"), ("demonet", "nn"))


LIGHT = "demonet, demonet.data, demonet.degree, demonet.features, demonet.ops, demonet.nn, demonet.kernels"
LIGHT += ", demonet.closedform, demonet.train, demonet.transforms, demonet_study.bench"
HEAVY = ["typer", "rich", "plotly", "pooch", "pyarrow", "platformdirs", "filelock", "pandas", "playwright"]
# PyTorch Geometric cannot do without jinja2, so that one is watched: only what this package asks for counts.
ALONE = f"""
import builtins, sys
sys.modules.update(dict.fromkeys({HEAVY}))  # as if they were not installed
import demonet
assert "torch" not in sys.modules
from torch_geometric.nn.conv import message_passing
before = message_passing.module_from_template
original = builtins.__import__
def watched(name, globals=None, *rest, **named):
    if name.split(".")[0] == "jinja2" and (globals or {{}}).get("__name__", "").startswith("demonet"):
        raise ImportError(name)
    return original(name, globals, *rest, **named)
builtins.__import__ = watched
import {LIGHT}
print(demonet.DEMOConv)
demonet.DEMOConv(2, 4, demonet.DegreeTasks.log2(4))
assert message_passing.module_from_template is before
"""


def test_importing_asks_for_nothing_heavy_and_leaves_pyg_as_it_is_and_no_file(tmp_path):
    """In one process: each imports torch for seconds."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert (done.returncode, done.stdout) == (0, "<class 'demonet.nn.conv.DEMOConv'>\n"), done.stderr
    assert os.listdir(tmp_path) == []
