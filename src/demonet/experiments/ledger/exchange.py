"""Runs that travel: from one ledger to another, and through Parquet files."""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import warnings
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demonet.atomic import replacing
from demonet.errors import DemonetError, DemonetWarning
from demonet.experiments.ledger.record import job_of, key, stamp_of
from demonet.experiments.ledger.schema import RUN, VERSION, connect, plain_errors

if TYPE_CHECKING:
    import pyarrow

Row = tuple[Any, ...]  # the columns of RUN

_MARK, _DIGEST = b"demonet.ledger", b"demonet.runs"
_NUMBERS = {"seed": "int64", "value": "float64", "seconds": "float64", "peak_memory_mb": "float64", "ended": "float64"}


def read_ledger(path: Path) -> list[Row]:
    """Every finished run in another ledger."""
    if not path.exists():
        raise DemonetError("there is no such ledger", file=path)
    with closing(connect(path)) as connection, plain_errors(path):
        return connection.execute(f"SELECT {', '.join(RUN)} FROM runs WHERE state = 'done'").fetchall()


def read_parquet(path: Path) -> list[Row]:
    """Every run in a file that :func:`write_parquet` wrote."""
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
        rows = _rows(table)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise DemonetError(f"not a Parquet file that can be read: {error}", file=path) from error
    marks = table.schema.metadata or {}
    if not marks.get(_MARK, b"").isdigit() or not table.schema.equals(_schema()):
        raise DemonetError("a Parquet file, but not of runs", file=path)
    if (version := int(marks[_MARK])) != VERSION:
        hint = "a newer demonet made it" if version > VERSION else None
        raise DemonetError(f"runs of version {version}, not {VERSION}", file=path, hint=hint)
    for number, row in enumerate(rows, start=1):
        if why := _wrong(row):
            raise DemonetError(f"run {number} of {len(rows)} {why}", file=path)
    if len({row[0] for row in rows}) < len(rows):
        raise DemonetError("a run is here twice", file=path)
    if marks.get(_DIGEST) not in (None, _digest(rows)):  # files of old have none
        raise DemonetError("the runs are not those that were written: the file is damaged", file=path)
    return rows


def _wrong(row: Row) -> str:
    """What is wrong with a run; nothing, where nothing is."""
    found = dict(zip(RUN, row, strict=True))
    for name, value in found.items():
        if value is None and name != "peak_memory_mb":
            return f"has no {name}"
        if isinstance(value, float) and not math.isfinite(value):
            return f"has {value} for its {name}"
    try:
        extra = json.loads(found["extra"])
    except ValueError:
        extra = None
    if not isinstance(extra, dict):
        return f"has {found['extra'][:40]!r} for what stands beside its value"
    if found["key"] != key(job_of(row[1:]), stamp_of(row[1:])):
        return "does not have the key of its job and stamp"
    return ""


def _rows(table: pyarrow.Table) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _digest(rows: Sequence[Row]) -> bytes:
    return hashlib.sha256(repr(rows).encode()).hexdigest().encode()


def write_parquet(rows: Sequence[Row], path: Path) -> None:
    """Write runs; the same runs in the same order give the same bytes."""
    import pyarrow.parquet

    columns = list(zip(*rows, strict=True)) or [()] * len(RUN)
    schema = _schema()
    table = pyarrow.table([pyarrow.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    table = table.replace_schema_metadata({_MARK: str(VERSION), _DIGEST: _digest(_rows(table))})
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        pyarrow.parquet.write_table(table, temporary, compression="zstd")


def _schema() -> pyarrow.Schema:
    import pyarrow

    return pyarrow.schema([(name, getattr(pyarrow, _NUMBERS.get(name, "string"))()) for name in RUN])


def add(connection: sqlite3.Connection, rows: Sequence[Row], source: str | Path) -> int:
    """Put in what is not done here yet; how many runs that were. One that is done here stays as it is."""
    there = dict(connection.execute("SELECT key, value FROM runs WHERE state = 'done'").fetchall())
    value = RUN.index("value")
    other = sum(row[0] in there and there[row[0]] != row[value] for row in rows)
    if other:
        text = f"{other} runs are in {source} with other numbers; those that were here stay"
        warnings.warn(text, DemonetWarning, stacklevel=4)
    new = [row for row in rows if row[0] not in there]
    connection.executemany(
        f"INSERT OR REPLACE INTO runs ({', '.join(RUN)}, state) VALUES ({', '.join('?' * len(RUN))}, 'done')", new
    )
    return len(new)
