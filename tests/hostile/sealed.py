"""Files with a checksum: those of a finished and of an unfinished run, ledgers, cells of a comparison.

A change is found before the file is used: it is refused, or what is read has no changed value.
"""

from __future__ import annotations

import random
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.hostile.formats import outcome
from tests.runs.files import fit, write_problem

from demonet import DemonetError
from demonet.errors import DemonetWarning
from demonet.runs import RunProgress, Settings, compare, predict_run
from demonet.runs.compare import Comparing, compare_run
from demonet.runs.folder import warn_of_damage
from demonet.workers import InProcess
from demonet_study.ledger.job import Cell, Job, Outcome, Stamp
from demonet_study.ledger.parquet import read_parquet
from demonet_study.ledger.store import Ledger

READ = ("config.json", "manifest.json", "metrics.json", "model.safetensors", "run.safetensors")
Change = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True)
class Sealed:
    """A file, and what reads it.

    Attributes:
        name: Its name.
        path: Where it is.
        raw: Its content.
        read: Reads it; raises an AssertionError if a value is another one.
        strict: Whether a changed file must be refused; otherwise it may be read without a changed value.
    """

    name: str
    path: Path
    raw: bytes
    read: Callable[[], object]
    strict: bool = True


class Changes:
    """Changed files in turn, each given by its number.

    Args:
        files: The files.
        seed: Of all changes.
        change: What is done to the bytes.
    """

    def __init__(self, files: list[Sealed], seed: int, change: Change) -> None:
        self.files, self.seed, self.change = files, seed, change

    def __call__(self, index: int) -> tuple[str, str, int]:
        """The name of the file, how reading ended, and its size."""
        one, generator = self.files[index % len(self.files)], random.Random(f"{self.seed} {index}")
        content = self.change(one.raw, generator)
        if content == one.raw:
            return one.name, "as before", len(content)
        one.path.write_bytes(content)
        try:
            found = outcome(one.read)
        finally:
            one.path.write_bytes(one.raw)
        assert found == "refused" or not one.strict, f"a changed {one.name} was used"
        return one.name, "no changed value" if found == "read" else found, len(content)


def sealed_files(folder: Path) -> list[Sealed]:
    """Files of every kind, made in an empty folder, which is the folder at hand, as it is when they are read."""
    write_problem(folder, motifs=4)
    return [*_run(folder), *_unfinished(folder), *_ledgers(folder), *_comparison(folder)]


def _run(folder: Path) -> Iterator[Sealed]:
    fit(out=str(folder / "run"))

    def report(name: str) -> None:
        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("always", DemonetWarning)
            warn_of_damage(folder / "run")
        assert [one for one in shown if name in str(one.message)], f"a changed {name} is not named"
        raise DemonetError("named by report")

    for path in sorted((folder / "run").iterdir()):
        if path.name in READ:
            yield Sealed(path.name, path, path.read_bytes(), lambda: predict_run(folder / "run", "edges.csv"))
        elif path.name != ".lock":
            yield Sealed(path.name, path, path.read_bytes(), lambda name=path.name: report(name))


class Killed(BaseException):
    """Nobody catches it, as nobody catches kill -9."""


class Deadly(RunProgress):
    """A process that is killed in the last epoch of the second split."""

    def training(self, label: str, epochs: int) -> Any:
        return nullcontext(lambda epoch: self.tell(label, epoch.number))

    def tell(self, label: str, number: int) -> None:
        if label == "split 2 of 2" and number >= 30:
            raise Killed


def _unfinished(folder: Path) -> Iterator[Sealed]:
    settings = Settings(epochs=60, cv=2)
    with_out = {"out": str(folder / "half"), "settings": settings}
    with suppress(Killed):
        fit(**with_out, progress=Deadly())
    for name in ("asked.json", "split-000.json", "checkpoint-001.safetensors"):
        path = folder / "half" / "unfinished" / name
        yield Sealed(f"unfinished/{name}", path, path.read_bytes(), lambda: fit(**with_out, resume=True))


def _ledgers(folder: Path) -> Iterator[Sealed]:
    paths = folder / "ledger.sqlite", folder / "ledger.parquet"
    write_ledger(paths[0])
    expected = set(ledger_rows(paths[0]))
    assert set(ledger_rows(paths[1])) == expected

    def read(path: Path) -> None:
        assert set(ledger_rows(path)) <= expected, "a run has another value"

    for path in paths:
        yield Sealed(path.name, path, path.read_bytes(), lambda path=path: read(path), strict=False)


def write_ledger(path: Path) -> None:
    """A ledger of finished runs in one file, without a log beside it, and the same as Parquet."""
    cell, stamp = Cell("accuracy", "brazil", "gcn", split="thirds"), Stamp("c0de", "{}", "cpu", "da7a")
    with Ledger(path) as ledger:
        for seed in range(8):
            ledger.claim(Job(cell, seed), stamp)
            ledger.record(Job(cell, seed), stamp, Outcome(0.5 + seed / 100, 1.5, 2.0, {"epochs": seed}))
        ledger.export_runs(path.with_suffix(".parquet"))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()


def ledger_rows(path: Path) -> list[tuple[Any, ...]]:
    """All finished runs of a ledger, or of a Parquet file of them."""
    if path.suffix == ".parquet":
        return read_parquet(path)
    for beside in ("-wal", "-shm"):
        path.with_name(path.name + beside).unlink(missing_ok=True)
    with Ledger(path) as ledger:
        return ledger._finished()


def compared(out: Path) -> dict[int, float]:
    """The values of a comparison in this process, of which finished cells are read."""
    engine = InProcess(compare.perform)
    options = {"out": out, "comparing": Comparing(methods=("majority",), splits=2), "engine": lambda jobs: engine}
    return compare_run("edges.csv", "labels.csv", **options).rows[0].values


def _comparison(folder: Path) -> Iterator[Sealed]:
    out = folder / "board"
    expected = compared(out)

    def check() -> None:
        assert compared(out) == expected, "a cell has another value"

    for path in (out / "compare.json", out / "cells" / "majority-000.json"):
        yield Sealed(path.name, path, path.read_bytes(), check, strict=False)
