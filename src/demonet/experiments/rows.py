"""Tables as rows of plain values: a list of one dataclass, written as CSV."""

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
    """Write the rows under a line of their field names; numbers keep six figures.

    Args:
        rows: One dataclass.
        path: The file, whose folder is made where it is not there.
        without: Fields that are left out.
    """
    if not rows:
        raise DemonetError("there are no rows to write", file=path)
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
