"""What a run is: a cell of a table and a seed; its outcome; and the stamp of the code, libraries, device and data.

Comments, docstrings and formatting are not part of the code hash: documenting a line does not change a stamp.

The field names of :class:`Job`, :class:`Cell` and :class:`Stamp`, and the names of kinds, methods and data sets, are
part of the key of every recorded run (see :func:`~demonet_study.ledger.schema.key`). They are data: renaming a
module or a function does not change them, and they must not be renamed along with one.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import demonet
from demonet.data.catalog import CATALOG
from demonet.errors import DemonetError
from demonet.sealed import canonical


@dataclass(frozen=True)
class Cell:
    """A method on a data set under a protocol; one number of a table is the mean over the runs of a cell."""

    kind: str  # what is computed, a key of KINDS
    dataset: str  # a data set of the catalog, or the name of a generated graph
    method: str  # a baseline's name, or one of ours (demonet-weight, demonet-m-hash, ...)
    preset: str = ""  # "paper", "authors" or "default"; empty for baselines
    options: str = "{}"  # changes to the method's settings, as written by canonical
    # "thirds", "10/20/70", "train:0.3", "nested:10"; "fresh:thirds" for a graph that is generated anew for every run;
    # empty if nothing is split.
    split: str = ""


@dataclass(frozen=True)
class Wanted:
    """How many runs of a cell are wanted (seeds 0, 1, ...); with ``alone``, nothing else may run meanwhile."""

    cell: Cell
    runs: int
    alone: bool = False


@dataclass(frozen=True)
class Job:
    """One run of a cell. Run ``i`` of every method uses split (or fold) ``i`` and seed ``i``, so runs are paired."""

    cell: Cell
    seed: int


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run."""

    value: float  # the number that is averaged over the runs: test accuracy, milliseconds per epoch, a distance
    seconds: float  # processor time of the run
    peak_memory_mb: float  # peak resident memory of its process, libraries included, in 10^6 bytes
    # Whatever else tables and figures show, as JSON: validation accuracy, epochs, coordinates.
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stamp:
    """What a run was made with. Only runs with equal stamps are averaged."""

    code: str  # hash of the source that numbers may depend on
    libraries: str  # versions of Python and of the libraries, as written by canonical
    device: str  # "cpu", or the name of the GPU
    data: str = ""  # hash of the files of the data set; empty for generated graphs


@dataclass(frozen=True)
class Result:
    """A finished run."""

    job: Job
    stamp: Stamp
    outcome: Outcome


# The function ``(job, device) -> Outcome`` of each kind. Workers import only what their jobs need.
KINDS: dict[str, tuple[str, str]] = {
    "accuracy": ("demonet_study.experiments.accuracy", "accuracy"),
    "speed": ("demonet_study.experiments.timing", "speed"),
    "identity": ("demonet_study.experiments.twins", "measure_twins"),
    "properties": ("demonet_study.experiments.properties", "properties"),
    "default": ("demonet_study.experiments.accuracy", "both_rules"),
    "published": ("demonet_study.experiments.published.results", "measure"),
}


def perform(job: Job, device: str = "cpu") -> Outcome:
    """Do one run on a device (``"cpu"``, ``"cuda"``); kinds that cannot use a GPU ignore it."""
    module, function = _find_kind(job.cell.kind)
    outcome: Outcome = getattr(import_module(module), function)(job, device)
    return outcome


def _find_kind(kind: str) -> tuple[str, str]:
    if kind not in KINDS:
        raise DemonetError(f"unknown kind of run {kind!r}", hint=f"expected one of {', '.join(KINDS)}")
    return KINDS[kind]


LIBRARIES = ("torch", "torch_geometric", "numpy", "scipy", "scikit-learn", "networkx", "gensim")
SOURCE = Path(demonet.__file__).parents[1]  # the folder of both packages
PROJECT = ("demonet", "demonet_study")
# Folders that show or store numbers, or read users' own files: no number of a run depends on them.
_NOT_COUNTED = (
    *(f"demonet/{name}/" for name in ("cli", "distributed", "estimators", "report", "runs")),
    *(f"demonet_study/{name}/" for name in ("cli", "ledger", "report")),
)


def stamp(kind: str, dataset: str, device: str = "cpu") -> Stamp:
    """The stamp of a run made now: its kind, its data set, and its device (``"cpu"``, ``"cuda"``, ``"cuda:1"``)."""
    _find_kind(kind)
    return Stamp(code(), libraries(), device_name(device), data_hash(dataset))


def code() -> str:
    """Hash of the source. Files are read again only when they have changed."""
    files = (path.relative_to(SOURCE).as_posix() for name in PROJECT for path in (SOURCE / name).rglob("*.py"))
    return _hash(tuple((name, *_version(name)) for name in sorted(files) if not name.startswith(_NOT_COUNTED)))


def normalized(source: str) -> str:
    """The syntax tree of a source file without its docstrings, as text.

    >>> normalized("def f():\\n    'Why.'\\n    return 1  # how") == normalized("def f(): return 1")
    True
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and _is_text(node.body):
            node.body = node.body[1:]
    return ast.dump(tree)


def libraries() -> str:
    """Versions of Python and of the installed :data:`LIBRARIES`, as JSON."""
    found = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return canonical(found)


def device_name(device: str) -> str:
    """``"cpu"``, or the name of the GPU."""
    import torch

    if device == "cpu":
        return device
    if not torch.cuda.is_available():
        raise DemonetError(f"device {device!r} is not available", hint="use --device cpu")
    return torch.cuda.get_device_name(device)


def data_hash(dataset: str) -> str:
    """Hash of the catalog's checksums of a data set's files; empty for names that are not in the catalog."""
    if dataset not in CATALOG:
        return ""
    return _sha256(f"{file.name} {file.sha256}" for file in CATALOG[dataset].files)


def _version(name: str) -> tuple[int, int]:
    """Modification time and size of a file: while these stay the same, its content is taken to be the same."""
    found = (SOURCE / name).stat()
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=8)
def _hash(files: tuple[tuple[str, int, int], ...]) -> str:
    return _sha256(f"{name}\n{_normalized(name, *version)}" for name, *version in files)


@cache
def _normalized(name: str, *version: int) -> str:
    path = SOURCE / name
    try:
        return normalized(path.read_text(encoding="utf-8"))
    except SyntaxError as error:  # the file may be changing at this moment
        raise DemonetError(f"cannot parse the source: {error.msg}", file=path, line=error.lineno) from error
    except UnicodeDecodeError as error:
        raise DemonetError(f"cannot read the source: {error}", file=path) from error


def _is_text(body: list[ast.stmt]) -> bool:
    first = body[0] if body else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)


def _sha256(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
