"""A list of dataclass instances as a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Collection, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from demonet.atomic import replacing
from demonet.errors import DemonetError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

R = TypeVar("R", bound="DataclassInstance")


def write_rows(rows: Sequence[DataclassInstance], path: Path, *, without: Collection[str] = ()) -> None:
    """Write a header of field names and one line per row, ``without`` some fields; floats have six significant digits.

    All rows are instances of one dataclass. The folder is created if needed.
    """
    if not rows:
        raise DemonetError("no rows to write", file=path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        names = [field.name for field in fields(rows[0]) if field.name not in without]
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: _cell(getattr(row, name)) for name in names})


def read_rows(kind: type[R], path: Path) -> list[R]:
    """Read the rows of a file that :func:`write_rows` has written, as instances of the dataclass ``kind``."""
    read = {"int": int, "float": float, "str": str}
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.DictReader(file)
        expected = [field.name for field in fields(kind)]
        if lines.fieldnames != expected:
            raise DemonetError(f"the columns are {lines.fieldnames}, expected {expected}", file=path, line=1)
        return [kind(**{one.name: read[str(one.type)](line[one.name]) for one in fields(kind)}) for line in lines]


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else value
