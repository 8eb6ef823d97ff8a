"""Finished runs as a Parquet file: how results are committed, and how they move from one ledger to another."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demonet.atomic import replacing
from demonet.errors import DemonetError
from demonet_study.ledger.schema import RUN, job_of, key, problem_of, stamp_of

if TYPE_CHECKING:
    import pyarrow

RunRow = tuple[Any, ...]  # the columns RUN

VERSION = 1  # of these files; the table in SQLite has its own
_VERSION, _DIGEST = b"demonet.ledger", b"demonet.runs"
_NUMBERS = {"seed": "int64", "value": "float64", "seconds": "float64", "peak_memory_mb": "float64", "ended": "float64"}


def read_parquet(path: Path) -> list[RunRow]:
    """Read and check every run of a file written by :func:`write_parquet`."""
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
        rows = _rows(table)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise DemonetError(f"not a readable Parquet file: {error}", file=path) from error
    metadata = table.schema.metadata or {}
    if not metadata.get(_VERSION, b"").isdigit() or not table.schema.equals(_schema()):
        raise DemonetError("a Parquet file, but not of runs", file=path)
    if (version := int(metadata[_VERSION])) != VERSION:
        hint = "written by a newer demonet" if version > VERSION else None
        raise DemonetError(f"runs of version {version}, expected {VERSION}", file=path, hint=hint)
    check_runs(rows, path)
    if len({row[0] for row in rows}) < len(rows):
        raise DemonetError("contains the same run twice", file=path)
    if metadata.get(_DIGEST) != _digest(rows):
        raise DemonetError("checksum mismatch: the file is damaged", file=path)
    return rows


def check_runs(rows: list[RunRow], path: Path) -> list[RunRow]:
    """The runs, if nothing is wrong with any of them."""
    for number, row in enumerate(rows, start=1):
        problem = problem_of(row)
        if not problem and row[0] != key(job_of(row[1:]), stamp_of(row[1:])):
            problem = "does not have the key of its job and stamp"
        if problem:
            raise DemonetError(f"run {number} of {len(rows)} {problem}", file=path)
    return rows


def _rows(table: pyarrow.Table) -> list[RunRow]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _digest(rows: Sequence[RunRow]) -> bytes:
    return hashlib.sha256(repr(rows).encode()).hexdigest().encode()


def write_parquet(rows: Sequence[RunRow], path: Path) -> None:
    """Write runs; the same runs in the same order give the same bytes."""
    import pyarrow.parquet

    columns = list(zip(*rows, strict=True)) or [()] * len(RUN)
    schema = _schema()
    table = pyarrow.table([pyarrow.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    table = table.replace_schema_metadata({_VERSION: str(VERSION), _DIGEST: _digest(_rows(table))})
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        pyarrow.parquet.write_table(table, temporary, compression="zstd")


def _schema() -> pyarrow.Schema:
    import pyarrow

    return pyarrow.schema([(name, getattr(pyarrow, _NUMBERS.get(name, "string"))()) for name in RUN])
