"""Runs that travel: from one ledger to another, and through Parquet files."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from demonet.atomic import replacing
from demonet.errors import DemonetError, DemonetWarning
from demonet.experiments.ledger.record import job_of, key, stamp_of
from demonet.experiments.ledger.schema import RUN, VERSION, connect, plain_errors

Row = tuple[Any, ...]  # the columns of RUN

_MARK = b"demonet.ledger"
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
    except (pyarrow.ArrowException, OSError) as error:
        raise DemonetError(f"not a Parquet file that can be read: {error}", file=path) from error
    mark = (table.schema.metadata or {}).get(_MARK)
    if mark is None or tuple(table.column_names) != RUN:
        raise DemonetError("a Parquet file, but not of runs", file=path)
    if int(mark) != VERSION:
        raise DemonetError(f"runs of version {int(mark)}, not {VERSION}", file=path, hint="a newer demonet made it")
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    if any(row[0] != key(job_of(row[1:]), stamp_of(row[1:])) for row in rows):
        raise DemonetError("a run here does not have the key of its job and stamp", file=path)
    return rows


def write_parquet(rows: Sequence[Row], path: Path) -> None:
    """Write runs; the same runs in the same order give the same bytes."""
    import pyarrow.parquet

    columns = list(zip(*rows, strict=True)) or [()] * len(RUN)
    schema = pyarrow.schema(
        [(name, getattr(pyarrow, _NUMBERS.get(name, "string"))()) for name in RUN],
        metadata={_MARK: str(VERSION)},
    )
    table = pyarrow.table([pyarrow.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        pyarrow.parquet.write_table(table, temporary, compression="zstd")


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
