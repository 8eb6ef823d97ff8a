"""Cells of tables: their values, how they are formatted, which one is best, and how they are copied."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Literal, TypeAlias

from demonet.escape import visible

ABSENT = "–"
MOST_TEXT = 80
"""Longer texts are cut on the page, but not when copied."""


@dataclass(frozen=True)
class Estimate:
    """A mean over runs with its standard deviation."""

    mean: float
    deviation: float


Verdict = Literal["same", "near", "above", "below"]
MARKS: dict[Verdict, str] = {"same": "●", "near": "○", "above": "▲", "below": "▼"}
"""A shape for each verdict, for readers who cannot tell the colours apart."""


@dataclass(frozen=True)
class Beside(Estimate):
    """An estimate, NaN if there is none yet, and the number that the paper prints.

    Args:
        printed, printed_deviation: The printed numbers; NaN if there are none.
        verdict: How the two compare; ``None`` if one is missing.
        note: A remark, such as that the cell has too few runs or why it is empty.
    """

    printed: float = math.nan
    printed_deviation: float = math.nan
    verdict: Verdict | None = None
    note: str = ""


Cell: TypeAlias = str | float | Estimate | None
"""Text, a number, an estimate, perhaps with a printed number, or nothing."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        name: The heading.
        digits: Digits after the decimal point.
        best: Whether the largest or the smallest number is marked; by default none.
        signed: Whether positive numbers have a plus sign.
        words: Texts that replace some numbers, such as "yes" for 1.
    """

    name: str
    digits: int = 3
    best: Literal["max", "min"] | None = None
    signed: bool = False
    words: Mapping[float, str] | None = None


@dataclass(frozen=True)
class Shown:
    """A formatted cell."""

    text: str
    deviation: str = ""
    whole: str = ""  # the full text, if it was cut
    number: bool = False
    best: bool = False
    printed: str = ""
    verdict: Verdict | None = None
    note: str = ""
    order: str = ""  # the number to sort by

    @property
    def mark(self) -> str:
        """The shape of the verdict."""
        return MARKS[self.verdict] if self.verdict else ""


def number_of(cell: Cell) -> float | None:
    """The number to compare a cell by; ``None`` if it has none."""
    value: object = cell.mean if isinstance(cell, Estimate) else cell
    return None if isinstance(value, bool) or not isinstance(value, Real) else float(value)


def show(cell: Cell, digits: int = 3) -> Shown:
    """Format a cell: integers with separators, fractions rounded, a true minus sign.

    >>> show(Estimate(0.7543, 0.0612)).text, show(-12345).text, show(None).text
    ('0.754', '−12,345', '–')
    """
    value = number_of(cell)
    if value is None:
        text = ABSENT if cell is None else visible(cell)
        return Shown(text) if len(text) <= MOST_TEXT else Shown(f"{text[: MOST_TEXT - 1]}…", whole=text)
    order = "" if math.isnan(value) else repr(value)
    if isinstance(cell, Beside):
        return Shown(
            _known(cell.mean, digits) or ABSENT,
            _known(cell.deviation, digits),
            number=True,
            printed=_spread(cell.printed, cell.printed_deviation, digits),
            verdict=cell.verdict,
            note=cell.note,
            order=order,
        )
    if isinstance(cell, Estimate):
        return Shown(_digits(cell.mean, digits), _digits(cell.deviation, digits), number=True, order=order)
    return Shown(_digits(cell, digits), number=True, order=order)


def show_column(column: Column, cells: Sequence[Cell]) -> list[Shown]:
    """Format a column and mark its best cells: all whose text equals that of the best one.

    Cells with a note, such as that runs are missing, are never marked.
    """
    shown = [_formatted(show(cell, column.digits), cell, column) for cell in cells]
    numbers = [number_of(cell) for cell in cells]
    if not any(value is not None and not math.isnan(value) for value in numbers):
        return shown
    competing = {i: v for i, v in enumerate(numbers) if v is not None and not math.isnan(v) and not shown[i].note}
    if column.best is not None and competing:
        best = (max if column.best == "max" else min)(competing, key=competing.__getitem__)
        shown = [replace(cell, best=i in competing and cell.text == shown[best].text) for i, cell in enumerate(shown)]
    # A missing number is aligned as a number.
    return [replace(cell, number=cell.number or cells[i] is None) for i, cell in enumerate(shown)]


def _formatted(shown: Shown, cell: Cell, column: Column) -> Shown:
    """Apply the sign or the words of a column."""
    if column.signed and (number_of(cell) or 0) > 0:
        shown = replace(shown, text=f"+{shown.text}")
    if column.words and isinstance(cell, Beside):
        words = column.words
        shown = replace(shown, text=words.get(cell.mean, shown.text), printed=words.get(cell.printed, shown.printed))
    return shown


def tsv(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> str:
    """The table as tab-separated values: all digits, with deviations and printed numbers in separate columns."""
    wide = [max((len(_fields(row[i])) for row in rows), default=1) for i in range(len(columns))]
    lines = [[part for column, width in zip(columns, wide, strict=True) for part in _header(column, width)]]
    for row in rows:
        fields = [_fields(cell) for cell in row]
        lines.append(
            [part for own, width in zip(fields, wide, strict=True) for part in (*own, *[""] * (width - len(own)))]
        )
    return "".join("\t".join(line) + "\n" for line in lines)


def _header(column: Column, width: int) -> list[str]:
    name = _field(column.name)
    return [name, f"{name} ±", f"{name} printed", f"{name} printed ±"][:width]


def _fields(cell: Cell) -> list[str]:
    if isinstance(cell, Beside):
        numbers = (cell.mean, cell.deviation, cell.printed, cell.printed_deviation)
        return ["" if math.isnan(number) else _field(number) for number in numbers]
    if isinstance(cell, Estimate):
        return [_field(cell.mean), _field(cell.deviation)]
    return [_field(cell)]


def _field(cell: Cell) -> str:
    if cell is None:
        return ""
    if number_of(cell) is not None:
        return str(cell)
    text = " ".join(str(cell).split())
    # A spreadsheet would take such text for a formula.
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def _digits(value: object, digits: int) -> str:
    text = f"{value:,}" if isinstance(value, Integral) else f"{value:,.{digits}f}"
    return text.replace("-", "−")


def _known(value: float, digits: int) -> str:
    return "" if math.isnan(value) else _digits(value, digits)


def _spread(mean: float, deviation: float, digits: int) -> str:
    """A printed number with its deviation, if it has one."""
    return " ± ".join(filter(None, (_known(mean, digits), _known(deviation, digits))))
