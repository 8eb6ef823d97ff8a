"""Values as people write them: missing ones, integers, numbers in German or English form, dates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demonet.errors import DemonetError, DemonetWarning, Hint, warn
from demonet.options import Decimal

Texts = Sequence[str | None]
MANY_VALUES = 20  # so many distinct whole numbers may still be classes
# Words for a missing value, in any case: what R, pandas, SQL and spreadsheets write.
MISSING = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none"})
_INTEGER = re.compile(r"[+-]?(0x[0-9a-f]{1,40}|[0-9]{1,40})", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_BLANKS = "' ’\u00a0\u202f"  # between thousands in Switzerland and France
_GROUPED = {
    mark: re.compile(rf"[+-]?[1-9]\d{{0,2}}(?:[{_BLANKS}{other}]\d{{3}})+(?:[{mark}]\d+)?", re.ASCII)
    for mark, other in ((".", ","), (",", "."))
}
_DATE = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})|(\d{1,2})([-/.])(\d{1,2})\6(\d{4}|\d{2})", re.ASCII)
_TIME = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?\s*(?:Z|[+-]\d{2}:?\d{2})?", re.ASCII)


def is_missing(value: Any) -> bool:
    """Whether a value is missing: None, NaN, pandas' NA and NaT, or a word such as ``NA``, ``null`` or ``nan``.

    >>> [is_missing(value) for value in (None, float("nan"), " N/A", "null", "", "no", 0, -1)]
    [True, True, True, True, True, False, False, False]
    """
    if value is None or isinstance(value, str):
        return value is None or value.strip().lower() in MISSING
    same = value == value
    return not (isinstance(same, bool | np.bool_) and same) and np.ndim(value) == 0  # NA == NA is NA


def number_value(text: str) -> int | None:
    """The integer that a text stands for, in any form.

    >>> number_value("007"), number_value("-0"), number_value("0x10"), number_value("seven")
    (7, 0, 16, None)
    """
    return int(text, 16 if "x" in text.lower() else 10) if _INTEGER.fullmatch(text) else None


def as_integer(text: str) -> int | None:
    """The int64 that is written in this way; None for other forms, such as ``007``.

    >>> as_integer("7"), as_integer("-10"), as_integer("007"), as_integer("0x10"), as_integer("-0")
    (7, -10, None, None, None)
    """
    value = number_value(text)
    return value if value is not None and str(value) == text and -(2**63) <= value < 2**63 else None


def is_integer(text: str) -> bool:
    """Whether text reads as an int64."""
    return re.fullmatch(r"\s*-?\d{1,40}\s*", text, re.ASCII) is not None and -(2**63) <= int(text) < 2**63


def is_number(text: str) -> bool:
    """Whether text reads as a float, with a decimal point."""
    return _NUMBER.fullmatch(text.strip()) is not None


def as_number(text: str, decimal: str = ".") -> float | None:
    """A number with this decimal mark, perhaps with thousands separators; None for any other text.

    >>> as_number("1.5"), as_number("1,234,567.5"), as_number("1.116,51", ","), as_number("1.116,51"), as_number("x")
    (1.5, 1234567.5, 1116.51, None, None)
    """
    plain = text.replace(",", ".") if decimal == "," else text
    if is_number(plain) and not (decimal == "," and "." in text):
        return float(plain)
    if _GROUPED[decimal].fullmatch(text):
        return float(re.sub(rf"[^\d+\-{decimal}]", "", text).replace(",", "."))
    return None


def decimal_mark(texts: Iterable[str], given: Decimal | None = None, table: Decimal | None = None) -> Decimal | None:
    """The decimal mark of a column, from all its values; None if thousands and decimals cannot be told apart.

    Args:
        texts: The distinct values that are not missing.
        given: The mark, if the user has said so.
        table: The mark of other columns of the table, for a column that may be read in two ways.

    >>> decimal_mark(["1.234", "950,50"]), decimal_mark(["1.5", "2"]), decimal_mark(["1,234"]), decimal_mark(["1.234"])
    (',', '.', None, '.')
    """
    if given is not None:
        return given
    both = [(as_number(text, "."), as_number(text, ",")) for text in texts]
    english, german = (sum(pair[side] is not None for pair in both) for side in (0, 1))
    if english != german:
        return "." if english > german else ","
    if english < len(both) or all(first == second for first, second in both):
        return "."
    if table is not None:
        return table
    return None if any("," in text for text in texts) else "."


def read_numbers(
    texts: Texts, column: str, *, decimal: Decimal | None = None, table: Decimal | None = None, file: Path | None = None
) -> tuple[NDArray[np.float64], NDArray[np.int64], bool]:
    """The numbers of a column, with the decimal mark that fits all of them; an error if two do.

    Args:
        texts: The column.
        column: Its name, for the error.
        decimal, table: As in :func:`decimal_mark`.
        file: The file, for the error.

    Returns:
        The numbers, NaN for missing ones; the rows whose text is no number; whether a number has another form than a
        plain one with a decimal point.
    """
    plain = {text: text.strip() for text in set(texts) if text is not None and not is_missing(text)}
    mark = decimal_mark(plain.values(), decimal, table)
    if mark is None:
        text = next(text for text in plain.values() if "," in text)
        hint = Hint(f"{{decimal}} reads {as_number(text, ','):g}, a decimal point {as_number(text):g}", decimal=",")
        raise DemonetError(f"{text!r} in {column}: decimals or thousands?", file=file, hint=hint)
    known = {text: as_number(stripped, mark) for text, stripped in plain.items()}
    found = [None if text is None else known.get(text) for text in texts]
    wrong = [row for row, text in enumerate(texts) if found[row] is None and text in known]
    values = np.array([np.nan if value is None else value for value in found], np.float64)
    marked = any(value is not None and not is_plain(plain[text], value) for text, value in known.items())
    return values, np.array(wrong, np.int64), marked


def measures(numbers: NDArray[np.float64]) -> bool:
    """Whether numbers measure something, and do not stand for classes.

    They do if one has a fractional part, or if there are more than 20 distinct ones, more than half as many as numbers.
    """
    distinct = np.unique(numbers).size
    return bool((numbers != numbers.round()).any()) or (distinct > MANY_VALUES and distinct > numbers.size / 2)


def is_plain(text: str, value: float) -> bool:
    """Whether a text is this number in its plain form, or is missing."""
    return value != value or (is_number(text) and float(text) == value)


def tell_marks(columns: Sequence[str], file: Path | None) -> None:
    """Warn of columns whose numbers have other forms than a plain one with a decimal point."""
    if columns:
        message = f"decimal commas or thousands separators read in {', '.join(columns)}"
        warn(DemonetWarning(message, file=file))


def looks_like_time(text: str) -> bool:
    """Whether a text is a date, a time, or both."""
    date, _, time = text.strip().replace("T", " ").partition(" ")
    return bool(_DATE.fullmatch(date) and (not time or _TIME.fullmatch(time.strip()))) or bool(_TIME.fullmatch(text))


def day_comes_first(texts: Iterable[str]) -> bool | None:
    """Whether dates are written day, month, year; None if that cannot be told, as of dates that are written year first.

    >>> day_comes_first(["31/01/2024"]), day_comes_first(["1/31/2024"]), day_comes_first(["1.2.2024"])
    (True, False, True)
    >>> day_comes_first(["1/2/2024"]), day_comes_first(["2024-01-31"])
    (None, None)
    """
    parts = [found for text in texts if (found := _DATE.match(text)) and found[5]]
    if any(found[6] == "." or int(found[5]) > 12 for found in parts):
        return True
    return False if any(int(found[7]) > 12 for found in parts) else None


def read_dates(texts: Texts, day_first: bool = True) -> NDArray[np.float64] | None:
    """Days since 1970, NaN for missing dates; None if a text is not a date.

    >>> read_dates(["1970-01-02", "3.1.1970 12:00", None]).tolist()
    [1.0, 2.5, nan]
    """
    known: dict[str | None, float] = {}
    for text in set(texts):
        day = np.nan if text is None or is_missing(text) else _day(text, day_first)
        if day is None:
            return None
        known[text] = day
    return np.array([known[text] for text in texts], np.float64)


def _day(text: str, day_first: bool) -> float | None:
    date, _, time = text.strip().replace("T", " ").partition(" ")
    found, clock = _DATE.fullmatch(date), _TIME.fullmatch(time.strip()) if time else None
    if found is None or (time and clock is None):
        return None
    if found[1]:
        year, month, day = int(found[1]), int(found[3]), int(found[4])
    else:
        year, month, day = int(found[8]), int(found[7]), int(found[5])
        month, day = (month, day) if day_first else (day, month)
        year += 0 if len(found[8]) == 4 else 2000 if year < 70 else 1900
    try:
        days = float(np.datetime64(f"{year:04}-{month:02}-{day:02}", "D").astype(np.int64))
    except ValueError:
        return None
    return days if clock is None else days + int(clock[1]) / 24 + int(clock[2]) / 1440 + float(clock[3] or 0) / 86400


def calendar(days: NDArray[np.float64]) -> NDArray[np.float64]:
    """``[n, 3]`` days since 1970, the month from 1 to 12, and the weekday from 0 (Monday) to 6."""
    whole = np.floor(days).astype("datetime64[D]")
    month = whole.astype("datetime64[M]").astype(np.int64) % 12 + 1
    return np.column_stack([days, month, (whole.astype(np.int64) + 3) % 7])  # 1 January 1970 was a Thursday
