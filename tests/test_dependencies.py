"""Every package that the source imports is declared in pyproject.toml."""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODULES = {"scikit-learn": "sklearn"}  # where the module has another name
OPTIONAL = {"excel", "metis", "paper", "ray", "onnx", "tensorboard", "test"}
# A peer in the benchmark, if it is installed; frames of a user who has it; types.
NOT_REQUIRED = {"dgl", "polars", "_typeshed"}


def declared(requirements: list[str]) -> set[str]:
    names = {re.match(r"[A-Za-z0-9_.-]+", requirement).group().lower() for requirement in requirements}
    return {MODULES.get(name, name.replace("-", "_")) for name in names}


@functools.cache
def imported() -> dict[str, str]:
    """The top-level package of every import, with a file that imports it."""
    found = {}
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found |= {name.split(".")[0]: path.name for name in names}
    return found


def test_every_import_is_declared():
    """threadpoolctl, markupsafe and requests were not."""
    known = declared(PROJECT["dependencies"]).union(
        *(declared(PROJECT["optional-dependencies"][name]) for name in OPTIONAL)
    )
    known |= {"demonet", "demonet_study", *sys.stdlib_module_names, *NOT_REQUIRED}
    assert {name: file for name, file in imported().items() if name not in known} == {}


def test_every_dependency_is_imported():
    assert declared(PROJECT["dependencies"]) - set(imported()) == set()
