"""Write a list of dataclass instances as a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Collection, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from demonet.atomic import replacing
from demonet.errors import DemonetError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def write_rows(rows: Sequence[DataclassInstance], path: Path, *, without: Collection[str] = ()) -> None:
    """Write a header of field names and one line per row; floats have six significant digits.

    Args:
        rows: Instances of one dataclass.
        path: The file; its folder is created if needed.
        without: Fields to leave out.
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


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else value
