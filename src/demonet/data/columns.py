"""Tables of attributes as numbers.

A table is encoded once, when it is read: numbers stay, missing ones become the median of the training table with a
column of 0 and 1 beside them, categories become columns of 0 and 1. What was learned is a :class:`Columns`, which is
stored with the model, so that another table is encoded in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from demonet.data.readers.tables import Table, check_width, is_text
from demonet.data.values import (
    as_number,
    calendar,
    day_comes_first,
    decimal_mark,
    is_missing,
    looks_like_time,
    read_dates,
    read_numbers,
    tell_marks,
)
from demonet.errors import DemonetError, DemonetWarning, Hint, warn
from demonet.options import Decimal
from demonet.schema import from_json

ValueKind = Literal["count", "number", "indicator"]
MAX_CATEGORIES = 50  # of one column
MAX_NAMES = 10  # so many texts may all be different and still be categories, not names
_SHOWN = 8  # columns named in a message
_SAMPLE = 1000  # values of another column that say which decimal mark a table has
_ENOUGH = 10  # numbers whose quartiles are compared with those of training
_UNITS = (
    10.0  # times as large or as small: drift seldom goes so far, and cents, minutes, metres, shares and thousands do
)
_FAR = 3652.0  # days: dates that are later or earlier by less are those of another year
_DATE_PARTS = ("days", "month", "weekday")


@dataclass(frozen=True)
class ColumnEncoding:
    """What was learned about one column of a table.

    Attributes:
        name: Its name.
        kind: ``"count"``, ``"number"`` or ``"indicator"`` (0 and 1) for numbers; ``"category"``; ``"date"``; or
            ``"unused"``.
        median: What replaces a missing number or date.
        missing: Whether values were missing, so that a column of 0 and 1 says where.
        categories: The categories, sorted; each is a column of 0 and 1.
        day_first: Whether dates are written day, month, year; None if all were written year first.
        limits: The smallest and the largest number or date.
        sizes: The quartiles of the numbers other than 0, without their signs.
    """

    name: str
    kind: Literal["count", "number", "indicator", "category", "date", "unused"]
    median: float = 0.0
    missing: bool = False
    categories: tuple[str, ...] = ()
    day_first: bool | None = True
    limits: tuple[float, float] | None = None
    sizes: tuple[float, float, float] | None = None

    @classmethod
    def learn(cls, name: str, kind: ValueKind | Literal["date"], values: NDArray[np.float64], **found: Any) -> Self:
        """A column of numbers, or of dates as days; NaN for missing ones."""
        known = values[~np.isnan(values)]
        limits = (float(known.min()), float(known.max()))
        return cls(
            name, kind, float(np.median(known)), known.size < values.size, limits=limits, sizes=_sizes(known), **found
        )

    @property
    def encoded(self) -> list[tuple[str, ValueKind]]:
        """The name and kind of each column of ``x`` that it becomes."""
        found: list[tuple[str, ValueKind]]
        if self.kind == "unused":
            return []
        if self.kind == "category":
            found = [(f"{self.name}={value}", "indicator") for value in self.categories]
        elif self.kind == "date":
            found = [(f"{self.name} {part}", "number") for part in _DATE_PARTS]
        else:
            found = [(self.name, self.kind)]
        return found + ([(f"{self.name} missing", "indicator")] if self.missing else [])

    def numbers(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """``[rows, columns]`` numbers, or dates as days, with the median for missing ones."""
        values = np.where(np.isnan(values), self.median, values)
        return calendar(values) if self.kind == "date" else values[:, None]

    def difference(self, values: NDArray[np.float64]) -> str | None:
        """In words, how numbers or dates differ from those of training; None if that may be drift.

        Numbers do if more than a quarter of them are outside the range of training, or if all three quartiles of their
        sizes are more than ten times as large or as small: other units move all of them by one factor, while other
        shares of small, large and zero values move some. Dates do if their median is further from those of training
        than these are from one another, and than ten years. An empty column does.
        """
        known = values[~np.isnan(values)]
        if self.limits is None or not self._differs(known, values.size, *self.limits):
            return None
        now = self._shown(np.median(known), known.min(), known.max()) if known.size else "no value"
        return f"{self.name!r} ({now}; in training {self._shown(self.median, *self.limits)})"

    def _differs(self, known: NDArray[np.float64], rows: int, low: float, high: float) -> bool:
        if not known.size:
            return self.missing and rows >= _ENOUGH  # otherwise it is told that values are missing
        if self.kind == "date":
            far = max(high - low, _FAR)
            return not low - far <= np.median(known) <= high + far
        if 4 * np.count_nonzero((known < low) | (known > high)) > known.size:
            return True
        if self.sizes is None or known.size < _ENOUGH:
            return False
        if (sizes := _sizes(known)) is None:
            return self.median != 0 and not known.any()
        pairs = list(zip(sizes, self.sizes, strict=True))
        return all(now > _UNITS * then for now, then in pairs) or all(now * _UNITS < then for now, then in pairs)

    def _shown(self, *numbers: float) -> str:
        dates = self.kind == "date"
        days = np.clip(numbers if dates else (), -1e8, 1e8).astype("datetime64[D]")  # a year has at most six digits
        middle, low, high = map(str, days) if dates else (f"{number:g}" for number in numbers)
        return f"median {middle}, {low} to {high}"


@dataclass(frozen=True)
class Columns:
    """The columns of a table of attributes, as learned from the training table.

    Attributes:
        columns: The columns in their order.
        named: Whether they have names; otherwise they are matched by position.
    """

    columns: tuple[ColumnEncoding, ...]
    named: bool

    @cached_property
    def encoded(self) -> list[tuple[str, ValueKind]]:
        """The name and kind of each column of ``x``."""
        return [pair for column in self.columns for pair in column.encoded]

    @property
    def names(self) -> list[str]:
        """The name of each column of ``x``."""
        return [name for name, _ in self.encoded]

    @property
    def kinds(self) -> list[ValueKind]:
        """The kind of each column of ``x``."""
        return [kind for _, kind in self.encoded]

    @property
    def sources(self) -> list[str]:
        """The names of the columns of the table that are used."""
        return [column.name for column in self.columns if column.kind != "unused"]

    @classmethod
    def learn(cls, table: Attributes) -> Self:
        """Recognise the columns of a table."""
        found = tuple(_learn(place, table) for place in range(len(table.names)))
        if not any(column.kind != "unused" for column in found):
            raise DemonetError(f"no column can be used as a feature: {listed(table.names)}", file=table.file)
        said = {
            "missing values in {}: medians replace numbers, and a column says where": lambda c: c.missing,
            "dates in {}: read as days, month and weekday": lambda c: c.kind == "date",
        }
        for message, applies in said.items():
            if names := [column.name for column in found if applies(column)]:
                warn(DemonetWarning(message.format(listed(names)), file=table.file))
        table.tell_marks()
        check_width(sum(len(column.encoded) for column in found), "columns, counting each category", file=table.file)
        return cls(found, table.named)

    def encode(self, table: Attributes) -> NDArray[np.float32]:
        """``[rows, columns]`` the table as numbers."""
        result = np.zeros((table.rows, len(self.encoded)), dtype=np.float32)
        at, unseen, others, missing = 0, list[str](), list[str | None](), list[str]()
        for column, place in zip(self.columns, self._places(table), strict=True):
            if place is None:
                continue
            width = len(column.encoded)
            block = result[:, at : at + width]
            at += width
            if column.kind == "category":
                texts = table.texts(place)
                number = {value: i for i, value in enumerate(column.categories)}
                codes = np.array([-1 if text is None else number.get(text, -2) for text in texts], dtype=np.int64)
                block[codes >= 0, codes[codes >= 0]] = 1
                gone = codes == -1
                if (codes == -2).any():
                    rows = np.flatnonzero(codes == -2)
                    unseen.append(f"{texts[rows[0]]!r} in {column.name!r} ({rows.size} in total)")
            else:
                values = table.numbers(place) if column.kind != "date" else table.days(place, column.day_first)
                gone = np.isnan(values)
                _check_finite(values, column.name, table)
                block[:, : width - column.missing] = column.numbers(values)
                others.append(column.difference(values))
            if column.missing:
                block[gone, width - 1] = 1
            elif gone.any():
                missing.append(f"{column.name!r} ({np.count_nonzero(gone):,} of {gone.size:,})")
        if missing:
            message = f"values are missing that training had all of, in {', '.join(missing[:_SHOWN])}"
            hint = "medians replace numbers, and there is no category"
            warn(DemonetWarning(message, file=table.file, hint=hint))
        if unseen:
            message = f"categories that training did not have count as none of them: {', '.join(unseen[:_SHOWN])}"
            warn(DemonetWarning(message, file=table.file))
        tell_others(others, table.file)
        return result

    def absent(self) -> NDArray[np.float32]:
        """``[columns]`` the row of an item of which nothing is known."""
        row: list[float] = []
        for column in self.columns:
            known = len(column.encoded) - column.missing if column.kind != "unused" else 0
            numbers = [0.0] * known if column.kind == "category" else column.numbers(np.array([np.nan]))[0].tolist()
            row += numbers[:known] + ([1.0] if known and column.missing else [])
        return np.array(row, dtype=np.float32)

    def _places(self, table: Attributes) -> list[int | None]:
        """The position of each used column in another table; a missing one is an error."""
        used = [column.kind != "unused" for column in self.columns]
        if not (self.named and table.named):
            if len(table.names) != len(self.columns):
                problem = f"{len(table.names)} columns of attributes, but training had {len(self.columns)}"
                raise DemonetError(problem, file=table.file)
            if self.named or table.named:
                which = "has no names of columns" if self.named else "has names of columns, training had none"
                names = listed([column.name for column in self.columns])
                warn(DemonetWarning(f"the table {which}: they are taken by position, as {names}", file=table.file))
            return [place if use else None for place, use in enumerate(used)]
        place = {name: number for number, name in reversed(list(enumerate(table.names)))}
        missing = [name for name in self.sources if name not in place]
        trained = {column.name for column in self.columns}
        unknown = [name for name in table.names if name not in trained]
        if missing:
            named = (("missing", missing), ("not in training", unknown))
            problems = "; ".join(f"{what}: {listed(names)}" for what, names in named if names)
            raise DemonetError(f"the columns differ from training ({problems})", file=table.file)
        if unknown:
            warn(DemonetWarning(f"columns that training did not have are ignored: {listed(unknown)}", file=table.file))
        order = [place[name] for name in self.sources]
        if order != sorted(order):
            warn(DemonetWarning("columns reordered as in training", file=table.file))
        return [place[column.name] if use else None for column, use in zip(self.columns, used, strict=True)]

    def state(self) -> dict[str, Any]:
        """All that was learned, for JSON."""
        return {"named": self.named, "columns": [asdict(column) for column in self.columns]}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The inverse of :meth:`state`."""
        return cls(encodings(state["columns"]), bool(state["named"]))


def encodings(state: Sequence[dict[str, Any]]) -> tuple[ColumnEncoding, ...]:
    """Columns from their fields in a file."""
    found = tuple(from_json(ColumnEncoding, column) for column in state)
    if not all(np.isfinite([column.median, *(column.limits or ()), *(column.sizes or ())]).all() for column in found):
        raise DemonetError("a number that was learned about a column is not finite")
    return found


class Attributes:
    """The attribute columns of a table.

    Args:
        table: The table.
        places: The positions of the columns.
        decimal: The decimal mark of numbers; None to recognise it.
    """

    def __init__(self, table: Table, places: Sequence[int], decimal: Decimal | None = None) -> None:
        import pyarrow as pa

        self.table, self.places, self.decimal = table, places, decimal
        self.named, self.file = table.names is not None, table.file
        self.names = [f"column {place + 1}" if table.names is None else table.names[place] for place in places]
        check_width(len(places), file=self.file)
        columns = table.values(places)
        self.columns = [c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in columns]
        self.rows = len(columns[0]) if columns else 0
        self._marked: list[str] = []
        self.texts, self.known, self.type = cache(self._texts), cache(self._known), cache(self._type)

    def _texts(self, place: int) -> list[str | None]:
        """A column as it is written, so that ``01`` is not 1; None for missing values."""
        (texts,) = self.table.columns([self.places[place]], ["text"])
        return [None if is_missing(text) else text for text in texts]

    def _known(self, place: int) -> list[str]:
        """The distinct texts of a column."""
        return sorted({text for text in self.texts(place) if text is not None})

    def _type(self, place: int) -> Literal["number", "flag", "date", "time", "text", "other"]:
        """What Arrow has recognised, and dates and times in texts."""
        import pyarrow.types as types

        kind = self.columns[place].type
        if types.is_boolean(kind):
            return "flag"
        if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind):
            return "number"
        if types.is_temporal(kind):
            return "date" if types.is_timestamp(kind) or types.is_date(kind) else "time"
        if not is_text(kind):
            return "other"
        known = self.known(place)
        if not known or not all(map(looks_like_time, known)):
            return "text"
        return "date" if read_dates(known) is not None or read_dates(known, day_first=False) is not None else "time"

    @cached_property
    def _table_mark(self) -> Decimal | None:
        """The mark of those columns of text in which only one is possible."""
        texts = (self.known(place)[:_SAMPLE] for place in range(len(self.names)) if self.type(place) == "text")
        marks = {decimal_mark(known) for known in texts if known and any(as_number(text, ",") for text in known)}
        return "," if "," in marks else None

    def numbers(self, place: int) -> NDArray[np.float64]:
        """A column as numbers, NaN for missing ones; a text that is no number is an error."""
        import pyarrow as pa

        name = self.names[place]
        if self.type(place) in ("number", "flag"):
            column = self.columns[place]
            thousands = pa.types.is_floating(column.type) and (self.decimal or self._table_mark) == ","
            if not thousands or any(as_number(text, ",") is None for text in self.known(place)):
                column = column.cast(pa.int8()) if self.type(place) == "flag" else column
                return column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64)
        values, wrong, marked = read_numbers(
            self.texts(place), f"column {name!r}", decimal=self.decimal, table=self._table_mark, file=self.file
        )
        if wrong.size:
            row = int(wrong[0])
            hint = Hint("correct it or leave the cell empty; {ignore} leaves the column out", ignore=self._named(place))
            text = str(self.texts(place)[row])
            raise DemonetError(f"{text[:60]!r} is not a number, in column {name!r}", **self.where(row), hint=hint)
        if marked:
            self._marked.append(repr(name))
        return values

    def day_first(self, place: int, trained: bool | None = None) -> bool | None:
        """Whether dates are written day, month, year: as the column shows itself, else as in training."""
        found, known = day_comes_first(self.known(place)), self.known(place)
        found = trained if found is None else found
        dates = (text for text in known if looks_like_time(text) and not text[:4].isdecimal())
        if found is None and (short := next(dates, None)):
            hint = Hint("write it as 2024-12-31; {ignore} leaves the column out", ignore=self._named(place))
            problem = f"{short!r} in column {self.names[place]!r}: day or month first?"
            raise DemonetError(problem, file=self.file, hint=hint)
        return found

    def _named(self, place: int) -> str | int:
        """How a column is named in an option."""
        return self.names[place] if self.named else self.places[place]

    def days(self, place: int, trained: bool | None = None) -> NDArray[np.float64]:
        """A column of dates as days since 1970, NaN for missing ones; ``trained`` is as in :meth:`day_first`."""
        import pyarrow as pa

        if pa.types.is_temporal(self.columns[place].type):
            micro = self.columns[place].cast(pa.timestamp("us"), safe=False).to_numpy().astype("datetime64[us]")
            return np.where(np.isnat(micro), np.nan, micro.astype(np.int64) / 86400e6)
        day_first = self.day_first(place, trained) is not False
        values = read_dates(self.texts(place), day_first)
        if values is None:
            texts = enumerate(self.texts(place))
            row = next(row for row, text in texts if text is not None and read_dates([text], day_first) is None)
            problem = f"{str(self.texts(place)[row])[:60]!r} is not a date, in column {self.names[place]!r}"
            raise DemonetError(problem, **self.where(row), hint="write it as 2024-12-31")
        return values

    def where(self, row: int) -> dict[str, Any]:
        """The file, and the line of a row, for a message."""
        return {"file": self.file, "line": self.table.line(row)}

    def tell_marks(self) -> None:
        """Warn of columns whose numbers have other forms than a plain one with a decimal point."""
        tell_marks(list(dict.fromkeys(self._marked)), self.file)


def _learn(place: int, table: Attributes) -> ColumnEncoding:
    name, kind = table.names[place], table.type(place)
    out = Hint("{ignore} leaves the column out", ignore=name)
    if kind in ("other", "time"):
        if kind == "time" and (day := next(filter(_is_no_day, table.known(place)), None)):
            raise DemonetError(f"{day!r} in column {name!r} is not a date", file=table.file, hint=out)
        what = "times of day" if kind == "time" else f"type {table.columns[place].type}"
        raise DemonetError(f"column {name!r} has {what}, which are not features", file=table.file, hint=out)
    if kind == "date":
        day_first = table.day_first(place)
        values = table.days(place)
        if not np.isnan(values).all():
            return ColumnEncoding.learn(name, "date", values, day_first=day_first)
    else:
        texts = Counter(table.texts(place)) if kind == "text" else Counter[str | None]()
        del texts[None]
        read = max(sum(n for text, n in texts.items() if as_number(str(text), mark) is not None) for mark in ".,")
        if kind != "text" or (texts and 2 * read >= texts.total()):  # numbers, perhaps with some mistakes among them
            values = table.numbers(place)
            known = values[~np.isnan(values)]
            if known.size:
                _check_finite(values, name, table)
                found: ValueKind = "indicator" if kind == "flag" else column_kinds(known[:, None])[0]
                return ColumnEncoding.learn(name, found, values)
        elif texts:
            return _categories(name, table.texts(place), table.known(place), table)
    warn(DemonetWarning(f"column {name!r} is empty and not used", file=table.file))
    return ColumnEncoding(name, "unused")


def _is_no_day(text: str) -> bool:
    """Whether a text has the form of a date, and there is no such day."""
    return ":" not in text and all(read_dates([text], day_first) is None for day_first in (True, False))


def _categories(name: str, texts: Sequence[str | None], categories: list[str], table: Attributes) -> ColumnEncoding:
    known = sum(text is not None for text in texts)
    if len(categories) > MAX_CATEGORIES or len(categories) == known > MAX_NAMES:
        what = f"more than {MAX_CATEGORIES}" if len(categories) > MAX_CATEGORIES else "all different"
        message = f"column {name!r} has {len(categories)} categories, {what}: it is not used"
        warn(DemonetWarning(message, file=table.file))
        return ColumnEncoding(name, "unused")
    return ColumnEncoding(name, "category", missing=known < len(texts), categories=tuple(categories))


def _sizes(known: NDArray[np.float64]) -> tuple[float, float, float] | None:
    """The quartiles of the numbers other than 0, without their signs; None of few numbers."""
    sizes = np.sort(np.abs(known[known != 0]))
    if sizes.size < _ENOUGH:
        return None
    first, second, third = (float(sizes[sizes.size * part // 4]) for part in (1, 2, 3))
    return first, second, third


def tell_others(found: Sequence[str | None], file: str | Path | None) -> None:
    """Warn of what :meth:`ColumnEncoding.difference` has found."""
    if named := [one for one in found if one is not None]:
        more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
        problem = f"other numbers than in training: {', '.join(named[:_SHOWN])}{more}"
        warn(DemonetWarning(problem, file=file, hint="are these the same columns, in the same units?"))


def _check_finite(values: NDArray[np.float64], name: str, table: Attributes) -> None:
    large = np.abs(values) > np.finfo(np.float32).max
    if large.any():
        row = int(np.flatnonzero(large)[0])
        hint = "numbers must be finite in single precision, so below 3e38"
        raise DemonetError(f"{values[row]:g} in column {name!r}", **table.where(row), hint=hint)


def listed(names: Sequence[str]) -> str:
    """Names in a message, the first of many."""
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(repr(name) for name in names[:_SHOWN]) + rest


def column_kinds(x: NDArray[Any]) -> list[ValueKind]:
    """The kind of each column of a dense matrix.

    ``"count"``: whole numbers, 0 or more, and at least half of them 0; ``"indicator"``: only 0 and 1, mostly 1;
    ``"number"``: anything else.
    """
    kinds: list[ValueKind] = []
    for column in x.T:
        if not ((column >= 0) & (column == np.round(column))).all():
            kinds.append("number")
        elif 2 * np.count_nonzero(column) <= len(column):
            kinds.append("count")
        else:
            kinds.append("indicator" if column.max(initial=0) <= 1 else "number")
    return kinds
