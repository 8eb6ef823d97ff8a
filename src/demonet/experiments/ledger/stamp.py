"""With what a run is made: the source that its numbers depend on, the libraries, the device, the data.

Comments, docstrings and layout are no part of the code here: to explain a line better makes no run worth less.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path

import demonet
from demonet.data.catalog import CATALOG
from demonet.errors import DemonetError
from demonet.experiments import perform
from demonet.experiments.ledger.job import Stamp, canonical
from demonet.experiments.perform import KINDS

LIBRARIES = ("torch", "torch_geometric", "numpy", "scipy", "scikit-learn", "networkx", "gensim")
SOURCE = Path(demonet.__file__).parent
# What every number depends on. Methods are imported by their names there, so these rooms count whole.
ROOMS = ("data", "degree", "ops", "nn", "kernels", "train", "baselines")
# Beside these counts the file where a kind of run is done, with what it imports and what that imports, but for what
# runs are kept in and shown with.
_APART = ("experiments/ledger/", "experiments/parts/")


def stamp(kind: str, dataset: str, device: str = "cpu") -> Stamp:
    """The stamp of a run of that kind on a set that is done now, on a device (``"cpu"``, ``"cuda"``, ``"cuda:1"``)."""
    return Stamp(code(kind), libraries(), device_name(device), data_hash(dataset))


def code(kind: str) -> str:
    """A hash over the source for one kind of run; read again only where a file has changed."""
    if kind not in KINDS:
        raise DemonetError(f"no runs of kind {kind!r}", hint=f"there are {', '.join(KINDS)}")
    rooms = [path for room in ROOMS for path in (SOURCE / room).rglob("*.py")]
    doors = reached(perform.__name__) | reached(KINDS[kind][0])
    files = {path.relative_to(SOURCE).as_posix() for path in rooms} | doors
    return _hash(tuple((name, *_version(SOURCE / name)) for name in sorted(files)))


def reached(module: str) -> set[str]:
    """The files of the package that a module of it is made of: its own, those that it imports, and so on."""
    seen: set[str] = set()
    waiting = _places(module)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += _imports(name, *_version(SOURCE / name))
    return seen


def meaning(source: str) -> str:
    """What a file says to Python: its syntax tree without docstrings.

    >>> meaning("def f():\\n    'Why.'\\n    return 1  # how") == meaning("def f(): return 1")
    True
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and _is_text(node.body):
            node.body = node.body[1:]
    return ast.dump(tree)


def libraries() -> str:
    """Versions of Python and of what is installed of :data:`LIBRARIES`."""
    found = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return canonical(found)


def device_name(device: str) -> str:
    """``"cpu"``, or what the GPU calls itself."""
    import torch

    if device == "cpu":
        return device
    if not torch.cuda.is_available():
        raise DemonetError(f"no device {device!r} here", hint="--device cpu")
    return torch.cuda.get_device_name(device)


def data_hash(dataset: str) -> str:
    """A hash over the checksums to which the catalogue holds the files of a set; empty for other names."""
    if dataset not in CATALOG:
        return ""
    return _sha256(f"{file.name} {file.sha256}" for file in CATALOG[dataset].files)


def _version(path: Path) -> tuple[int, int]:
    """When a file was written and how long it is: as long as that stays, so does what it says."""
    found = path.stat()
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=8)
def _hash(files: tuple[tuple[str, int, int], ...]) -> str:
    return _sha256(f"{name}\n{_meaning(name, *version)}" for name, *version in files)


@cache
def _meaning(name: str, *version: int) -> str:
    with _legible(SOURCE / name) as source:
        return meaning(source)


@cache
def _imports(name: str, *version: int) -> list[str]:
    """The files that one imports, at its top or inside a function."""
    modules: set[str] = set()
    with _legible(SOURCE / name) as source:
        tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return [place for module in sorted(modules) for place in _places(module)]


@contextmanager
def _legible(path: Path) -> Iterator[str]:
    """The text of a file, which somebody may be changing at this moment."""
    try:
        yield path.read_text(encoding="utf-8")
    except SyntaxError as error:
        raise DemonetError(f"the source cannot be read now: {error.msg}", file=path, line=error.lineno) from error
    except UnicodeDecodeError as error:
        raise DemonetError(f"the source cannot be read now: {error}", file=path) from error


def _places(module: str) -> list[str]:
    """The file of a module of this package; none for another, or for a name inside one."""
    path = Path(*module.split(".")[1:])
    found = (path.with_suffix(".py"), path / "__init__.py") if module.startswith("demonet.") else ()
    names = [place.as_posix() for place in found if (SOURCE / place).is_file()]
    return [name for name in names if not name.startswith(_APART)]


def _is_text(body: list[ast.stmt]) -> bool:
    first = body[0] if body else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)


def _sha256(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
