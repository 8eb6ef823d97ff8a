"""What stands in the cells of a table: how it is shown, which one is best, and how it is copied."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Literal, TypeAlias

ABSENT = "–"
MOST_TEXT = 80
"""A longer text is cut where it is shown, not where it is copied."""


@dataclass(frozen=True)
class Estimate:
    """A mean over runs with its deviation, shown as mean ± deviation."""

    mean: float
    deviation: float


Cell: TypeAlias = str | float | Estimate | None
"""Text, a number, an estimate, or nothing."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        name: What stands at its head.
        digits: How many digits a fraction shows after the point.
        best: Which number to mark, the largest or the smallest; none where there is nothing to win.
    """

    name: str
    digits: int = 3
    best: Literal["max", "min"] | None = None


@dataclass(frozen=True)
class Shown:
    """A cell as the page shows it."""

    text: str
    deviation: str = ""
    whole: str = ""  # the text before it was cut
    number: bool = False
    best: bool = False


def number_of(cell: Cell) -> float | None:
    """The number by which a cell is compared; ``None`` where there is none."""
    value: object = cell.mean if isinstance(cell, Estimate) else cell
    return None if isinstance(value, bool) or not isinstance(value, Real) else float(value)


def show(cell: Cell, digits: int = 3) -> Shown:
    """A cell in words: whole numbers with separators, fractions rounded, a true minus sign.

    >>> show(Estimate(0.7543, 0.0612)).text, show(-12345).text, show(None).text
    ('0.754', '−12,345', '–')
    """
    if isinstance(cell, Estimate):
        return Shown(_digits(cell.mean, digits), _digits(cell.deviation, digits), number=True)
    if number_of(cell) is None:
        text = ABSENT if cell is None else str(cell)
        return Shown(text) if len(text) <= MOST_TEXT else Shown(f"{text[: MOST_TEXT - 1]}…", whole=text)
    return Shown(_digits(cell, digits), number=True)


def show_column(column: Column, cells: Sequence[Cell]) -> list[Shown]:
    """A whole column, its best cells marked: all those that read the same as the best one."""
    shown = [show(cell, column.digits) for cell in cells]
    numbers = [value for cell in cells if (value := number_of(cell)) is not None and not math.isnan(value)]
    if not numbers:
        return shown
    if column.best is not None:
        best = max(numbers) if column.best == "max" else min(numbers)
        winner = shown[[number_of(cell) for cell in cells].index(best)].text
        shown = [replace(cell, best=cell.number and cell.text == winner) for cell in shown]
    # An absent number stands where a number would.
    return [replace(cell, number=cell.number or cells[i] is None) for i, cell in enumerate(shown)]


def tsv(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> str:
    """The table for a spreadsheet: every digit of every number, and a deviation in a column of its own."""
    wide = [any(isinstance(row[i], Estimate) for row in rows) for i in range(len(columns))]
    lines = [[part for column, two in zip(columns, wide, strict=True) for part in _header(column, two)]]
    lines += [[part for cell, two in zip(row, wide, strict=True) for part in _fields(cell, two)] for row in rows]
    return "".join("\t".join(line) + "\n" for line in lines)


def _header(column: Column, two: bool) -> list[str]:
    name = _field(column.name)
    return [name, f"{name} ±"] if two else [name]


def _fields(cell: Cell, two: bool) -> list[str]:
    if isinstance(cell, Estimate):
        return [_field(cell.mean), _field(cell.deviation)]
    return [_field(cell), ""] if two else [_field(cell)]


def _field(cell: Cell) -> str:
    if cell is None:
        return ""
    if number_of(cell) is not None:
        return str(cell)
    text = " ".join(str(cell).split())
    # A spreadsheet runs text that starts like this as a formula.
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def _digits(value: object, digits: int) -> str:
    text = f"{value:,}" if isinstance(value, Integral) else f"{value:,.{digits}f}"
    return text.replace("-", "−")
