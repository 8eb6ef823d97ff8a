"""The ledger's SQLite file: its table, how a run is written as a row and read back, and checks of the file."""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple
from functools import cache
from pathlib import Path
from typing import Any

from demonet.errors import DemonetError
from demonet.sealed import canonical
from demonet_study.ledger.job import Cell, Job, Outcome, Result, Stamp

VERSION = 3
_APPLICATION_ID = 0x44454D4F  # "DEMO"; SQLite reserves a header field for it
_TIMEOUT = 60.0  # seconds to wait for another process to finish writing
_NEW = "move the file away to start a new ledger"

JOB = ("kind", "dataset", "method", "preset", "options", "split", "seed")
STAMP = ("code", "libraries", "device", "data")
OUTCOME = ("value", "seconds", "peak_memory_mb", "extra")
RUN = ("key", *JOB, *STAMP, *OUTCOME, "ended")  # a finished run, as exported
SEALED = (*RUN, "digest")
_COST = (int, float, type(None))  # NULL stands for NaN
_TYPES: dict[str, Any] = {"seed": int, "value": (int, float), "ended": (int, float)}
_TYPES |= {"seconds": _COST, "peak_memory_mb": _COST}
_SEED, _STAMPED = len(JOB) - 1, len(JOB) + len(STAMP)

_TABLE = """
CREATE TABLE runs (
    key TEXT PRIMARY KEY,     -- sha256 over job and stamp
    kind TEXT NOT NULL, dataset TEXT NOT NULL, method TEXT NOT NULL, preset TEXT NOT NULL,
    options TEXT NOT NULL, split TEXT NOT NULL, seed INTEGER NOT NULL,
    code TEXT NOT NULL, libraries TEXT NOT NULL, device TEXT NOT NULL, data TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'done', 'failed')),
    value REAL, seconds REAL, peak_memory_mb REAL, extra TEXT,      -- the outcome; NULL stands for NaN
    error TEXT,               -- why it failed the last time
    digest TEXT,              -- of a finished run: sha256 over its columns RUN
    ended REAL                -- time, in seconds since 1970
) WITHOUT ROWID
"""
_INDEXES = (
    "CREATE INDEX by_cell ON runs (kind, dataset, method, preset, options, split, seed)",
    "CREATE INDEX by_state ON runs (state)",
)


def key(job: Job, stamp: Stamp) -> str:
    """The identifier of a run: a hash over every field of its job and its stamp.

    >>> job, made = Job(Cell("accuracy", "brazil", "gcn"), 0), Stamp("a", "{}", "cpu")
    >>> key(job, made) == key(job, made), key(job, made) == key(Job(job.cell, 1), made)
    (True, False)
    """
    return hashlib.sha256(canonical({"cell": vars(job.cell), "seed": job.seed, **vars(stamp)}).encode()).hexdigest()


def digest_of(run: Sequence[Any]) -> str:
    """The digest of a finished run, given as the columns ``RUN``: one changed value changes it."""
    return hashlib.sha256(repr(tuple(run)).encode("utf-8", "backslashreplace")).hexdigest()


def is_whole(row: Sequence[Any]) -> bool:
    """Whether a finished run, given as the columns ``SEALED``, is as it was recorded, and can have been recorded."""
    return row[-1] == digest_of(row[:-1]) and not problem_of(row[:-1])


def problem_of(run: Sequence[Any]) -> str:
    """What is wrong with the types of a finished run, given as the columns ``RUN``; empty if nothing is.

    SQLite keeps a value of any type in any column, and a digest is no secret.
    """
    for name, value in zip(RUN, run, strict=True):
        if value is None and name not in ("seconds", "peak_memory_mb"):
            return f"has no {name}"
        if not isinstance(value, _TYPES.get(name, str)) or (isinstance(value, float) and not math.isfinite(value)):
            return f"has {name}={str(value)[:40]}"
    extra = run[RUN.index("extra")]
    try:
        found = json.loads(extra)
    except (ValueError, RecursionError):
        found = None
    return "" if isinstance(found, dict) else f"has extra={extra[:40]!r}, which is not a JSON object"


def job_row(job: Job) -> tuple[Any, ...]:
    """The columns ``JOB``."""
    return (*astuple(job.cell), job.seed)


def outcome_row(outcome: Outcome) -> tuple[Any, ...]:
    """The columns ``OUTCOME``; NULL stands for NaN.

    Raises:
        DemonetError: If the value is not finite, so that no mean can be taken.
    """
    if not math.isfinite(outcome.value):
        raise DemonetError(f"the run returned {outcome.value}", hint="a run must return a finite number")
    extra = json.dumps(outcome.extra, sort_keys=True, separators=(",", ":"))
    costs = (None if math.isnan(cost) else float(cost) for cost in (outcome.seconds, outcome.peak_memory_mb))
    return float(outcome.value), *costs, extra


def job_of(row: Sequence[Any]) -> Job:
    """The job of a row that starts with the columns ``JOB``."""
    return Job(Cell(*row[:_SEED]), row[_SEED])


def stamp_of(row: Sequence[Any]) -> Stamp:
    """The stamp of a row that starts with the columns ``JOB`` and ``STAMP``."""
    return Stamp(*row[_SEED + 1 : _STAMPED])


def result_of(row: Sequence[Any]) -> Result:
    """The result of a row that starts with the columns ``JOB``, ``STAMP`` and ``OUTCOME``."""
    *numbers, extra = row[_STAMPED : _STAMPED + 4]
    value, seconds, peak = (math.nan if number is None else number for number in numbers)
    return Result(job_of(row), stamp_of(row), Outcome(value, seconds, peak, json.loads(extra)))


def connect(path: Path) -> sqlite3.Connection:
    """Open a ledger; create it if the file does not exist.

    Raises:
        DemonetError: If the file is damaged, is not a ledger, or was written by a newer version.
    """
    with plain_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=_TIMEOUT, isolation_level=None)
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")  # a damaged text is no error yet
        try:
            _check(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit the whole block or nothing; no other process writes meanwhile."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """Raise errors of SQLite and of the disk as a :class:`DemonetError` that names the file."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise DemonetError(f"cannot use the ledger: {error}", file=path, hint=_hint(error)) from error
    except UnicodeDecodeError as error:  # SQLite names a part of its table in the message, damaged as it is
        raise DemonetError("damaged ledger: its table is not text", file=path, hint=_NEW) from error


def _hint(error: Exception) -> str | None:
    """Suggest moving a file away only if it is not a ledger: one that is locked, or on a full disk, is intact."""
    if "locked" in str(error):
        return "another process is writing to it; recorded runs are safe, start again"
    passing = not isinstance(error, sqlite3.DatabaseError) or isinstance(error, sqlite3.OperationalError)
    return None if passing else _NEW


def _check(connection: sqlite3.Connection, path: Path) -> None:
    if _pragma(connection, "user_version") == _pragma(connection, "application_id") == 0:
        _create(connection, path)
    if _pragma(connection, "application_id") != _APPLICATION_ID:
        raise DemonetError("an SQLite database, but not a ledger", file=path)
    version = _pragma(connection, "user_version")
    if version != VERSION:
        hint = "written by a newer demonet" if version > VERSION else None
        raise DemonetError(f"ledger version {version}, expected {VERSION}", file=path, hint=hint)
    mode = _enable_wal(connection)
    if mode != "wal":
        raise DemonetError(f"write-ahead logging is not available (mode {mode!r})", file=path, hint="use a local disk")
    connection.execute("PRAGMA synchronous = FULL")  # recorded runs survive a power failure
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise DemonetError(f"damaged ledger: {found}", file=path, hint=_NEW)
    if _columns(connection) != _expected_columns():  # a damaged name or comment would shift the values of all rows
        raise DemonetError("damaged ledger: its table has other columns", file=path, hint=_NEW)


def _enable_wal(connection: sqlite3.Connection) -> str:
    """Turn on write-ahead logging.

    This is the only statement for which SQLite does not wait: it fails at once with "locked" while another process
    creates the ledger. So the retry is here.
    """
    until = time.monotonic() + _TIMEOUT
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _create(connection: sqlite3.Connection, path: Path) -> None:
    with transaction(connection):
        if _pragma(connection, "application_id") == _APPLICATION_ID:  # another process was faster
            return
        if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() != (0,):
            raise DemonetError("an SQLite database, but not a ledger", file=path)
        for statement in (_TABLE, *_INDEXES):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")


def _columns(connection: sqlite3.Connection) -> set[tuple[Any, ...]]:
    """Name, type, whether it may be NULL and default of each column."""
    query = "SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info('runs')"
    return set(connection.execute(query).fetchall())


@cache
def _expected_columns() -> set[tuple[Any, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(_TABLE)
        return _columns(connection)


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
