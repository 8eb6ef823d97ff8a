"""Three walks through the packages, traced: which files a call enters, in which order and how often.

``python docs/site/architecture.py`` writes them into ``docs/architecture.md``.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import torch

import demonet
from demonet import DEMOConv
from demonet.cli import main
from demonet.data.synthetic import role_graph
from demonet.workers import InProcess

SOURCE = Path(demonet.__file__).parents[1]
_FOLDERS = tuple(f"{SOURCE / name}{os.sep}" for name in ("demonet", "demonet_study"))
FIT = "fit edges.csv --labels labels.csv --effort quick --jobs 1 --out run"
REPRODUCE = "reproduce nodes --quick --runs 1 --sets brazil --methods degree-knn --out out"


def trace(call: Callable[[], Any]) -> dict[str, int]:
    """For each file that a call enters, in the order of the first entry: how often another file calls into it.

    What importing a file runs does not count.
    """
    found: dict[str, int] = {}
    files, importing = [""], 0  # the file of each frame, or that of the frame above if it is not one of ours

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal importing
        if frame.f_code.co_name == "<module>":
            importing += {"call": 1, "return": -1}.get(event, 0)
        elif importing:
            return
        elif event == "call":
            path = frame.f_code.co_filename
            ours = path.startswith(_FOLDERS) and path.endswith(".py")
            if ours and path != files[-1]:
                found[path] = found.get(path, 0) + 1
            files.append(path if ours else files[-1])
        elif event == "return" and len(files) > 1:
            files.pop()

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return {Path(path).relative_to(SOURCE).as_posix(): times for path, times in found.items()}


def layer_walk() -> dict[str, int]:
    """The third call of a layer with the same edges, on the CPU: what earlier calls have kept is used."""
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(200, (2, 800), generator=generator)
    x = torch.randn(200, 64, generator=generator)
    conv = DEMOConv(64, 64)
    for _ in range(2):
        conv(x, edge_index)
    return trace(lambda: conv(x, edge_index))


def fit_walk() -> dict[str, int]:
    """``demonet fit`` on a small graph."""
    data = role_graph(0, motifs=4)
    edges = [f"{u},{v}\n" for u, v in data.edge_index.T.tolist() if u < v]
    labels = [f"{node},class {label % 3}\n" for node, label in enumerate(data.y.tolist())]
    with _folder():
        Path("edges.csv").write_text("source,target\n" + "".join(edges), encoding="utf-8")
        Path("labels.csv").write_text("node,label\n" + "".join(labels), encoding="utf-8")
        return trace(lambda: _run(FIT))


def reproduce_walk() -> dict[str, int]:
    """``demonet reproduce`` of one cell, with its run in this process."""
    with _folder(), patch("demonet_study.ledger.work.LocalEngine", lambda perform, jobs: InProcess(perform)):
        return trace(lambda: _run(REPRODUCE))


@contextlib.contextmanager
def _folder() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield


def _run(command: str) -> None:
    printed = io.StringIO()
    with (
        patch.object(sys, "argv", ["demonet", *command.split()]),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        try:
            main()
        except SystemExit as stop:
            if stop.code:
                raise RuntimeError(printed.getvalue()) from stop


def by_file(walk: dict[str, int]) -> str:
    """A table with a row for each file."""
    rows = [
        f"| {step} | `{shown(name)}` | {times} | {first_line(name)} |"
        for step, (name, times) in enumerate(walk.items(), 1)
    ]
    return "\n".join(["| step | file | entered | what it has |", "|--:|---|--:|---|", *rows])


def by_package(walk: dict[str, int]) -> str:
    """A table with a row for each package, with its files in order."""
    packages: dict[str, list[str]] = {}
    for name in walk:
        packages.setdefault(package_of(name), []).append(name)
    rows = []
    for step, (package, names) in enumerate(packages.items(), 1):
        files = ", ".join(f"`{name.removeprefix(package).strip('/')}`" for name in names)
        rows.append(f"| {step} | `{shown(package) or 'demonet'}` | {files} |")
    return "\n".join(["| step | package | files, in the order in which they are entered |", "|--:|---|---|", *rows])


def shown(name: str) -> str:
    """The name of a file or package on the page: that of the library is not repeated."""
    return name if name.startswith("demonet_study") else name.removeprefix("demonet").removeprefix("/")


def package_of(name: str) -> str:
    """``demonet/nn`` for a file below it; ``demonet`` for a module of its own."""
    parts = name.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def first_line(name: str) -> str:
    """The first line of a module's docstring."""
    text = ast.get_docstring(ast.parse((SOURCE / name).read_text(encoding="utf-8"))) or ""
    return re.sub(r":\w+:(?=`)", "", text.split("\n")[0]).strip().rstrip(".").replace("``", "`")


WALKS = {"fit": (fit_walk, by_package), "layer": (layer_walk, by_file), "reproduce": (reproduce_walk, by_package)}


def section(name: str) -> str:
    """The traced walk as it stands on the page: the number of files, and the table."""
    make, table = WALKS[name]
    walk = make()
    counted = f", entered {sum(walk.values())} times" if table is by_file else ""
    return f"{len(walk)} files{counted}.\n\n{table(walk)}"
