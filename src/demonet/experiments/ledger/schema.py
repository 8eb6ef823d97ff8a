"""The file: one table, and the rules by which a file is one of ours."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from demonet.errors import DemonetError

VERSION = 1
_OURS = 0x44454D4F  # "DEMO", in the place that SQLite keeps for whose file it is
_WAIT = 60.0  # seconds that one process waits for another to finish writing

JOB = ("kind", "dataset", "method", "preset", "options", "split", "seed")
STAMP = ("code", "libraries", "device", "data")
OUTCOME = ("value", "seconds", "peak_memory_mb", "extra")
RUN = ("key", *JOB, *STAMP, *OUTCOME, "ended")  # a finished run, as files carry it from one ledger to another

_TABLE = """
CREATE TABLE runs (
    key TEXT PRIMARY KEY,     -- sha256 over job and stamp
    kind TEXT NOT NULL, dataset TEXT NOT NULL, method TEXT NOT NULL, preset TEXT NOT NULL,
    options TEXT NOT NULL, split TEXT NOT NULL, seed INTEGER NOT NULL,
    code TEXT NOT NULL, libraries TEXT NOT NULL, device TEXT NOT NULL, data TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'claimed', 'done', 'failed')),
    alone INTEGER NOT NULL DEFAULT 0,
    host TEXT, pid INTEGER, started REAL, heartbeat REAL,           -- who has claimed it
    value REAL, seconds REAL, peak_memory_mb REAL, extra TEXT,      -- what came of it; NULL stands for NaN
    error TEXT,               -- why it failed the last time
    claimed REAL, ended REAL  -- when, in seconds since 1970
) WITHOUT ROWID
"""
_INDEXES = (
    "CREATE INDEX by_cell ON runs (kind, dataset, method, preset, options, split, seed)",
    "CREATE INDEX by_state ON runs (state)",
)


def connect(path: Path) -> sqlite3.Connection:
    """A connection to a ledger, which is made where there is no file.

    Raises:
        DemonetError: When the file is damaged, something else, or of a version to come.
    """
    with plain_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=_WAIT, isolation_level=None)
        try:
            _check(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of the block or nothing; nobody else writes meanwhile."""
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
    """What SQLite and the disk have to say, as one line about the file."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise DemonetError(f"not a ledger that can be used: {error}", file=path, hint=_hint(error)) from error


def _hint(error: Exception) -> str | None:
    """Only a file that is no ledger is to be moved away; what is locked or has no room is as good as before."""
    if "locked" in str(error):
        return "another process writes to it; what is recorded is safe, start again"
    passing = not isinstance(error, sqlite3.DatabaseError) or isinstance(error, sqlite3.OperationalError)
    return None if passing else "move it away to begin a new one"


def _check(connection: sqlite3.Connection, path: Path) -> None:
    if _number(connection, "user_version") == _number(connection, "application_id") == 0:
        _make(connection, path)
    if _number(connection, "application_id") != _OURS:
        raise DemonetError("a database, but not a ledger of runs", file=path)
    version = _number(connection, "user_version")
    if version != VERSION:
        hint = "a newer demonet made it" if version > VERSION else None
        raise DemonetError(f"a ledger of version {version}, not {VERSION}", file=path, hint=hint)
    mode = _write_ahead(connection)
    if mode != "wal":
        raise DemonetError(f"no write-ahead log here, only {mode!r}", file=path, hint="put it on a local disk")
    connection.execute("PRAGMA synchronous = FULL")  # what is recorded survives a power cut, too
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise DemonetError(f"a damaged ledger: {found}", file=path, hint="move it away to begin a new one")


def _write_ahead(connection: sqlite3.Connection) -> str:
    """Turn the write-ahead log on. SQLite waits for others in every statement but this one: it says "locked" at once
    where another process has a new ledger in work, too.
    """
    until = time.monotonic() + _WAIT
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _make(connection: sqlite3.Connection, path: Path) -> None:
    with transaction(connection):
        if _number(connection, "application_id") == _OURS:  # another process was faster
            return
        if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() != (0,):
            raise DemonetError("a database, but not a ledger of runs", file=path)
        for statement in (_TABLE, *_INDEXES):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_OURS}")
        connection.execute(f"PRAGMA user_version = {VERSION}")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])
