"""Tables with a row an item, written column by column: CSV in blocks of rows, Parquet, or a workbook of Excel."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demonet.atomic import check_file, is_stream, replacing
from demonet.data.readers.base import split_table
from demonet.data.readers.records import import_openpyxl
from demonet.data.values import as_integer
from demonet.errors import DemonetError
from demonet.options import Decimal

BLOCK = 1 << 14  # rows that are text at once
_SHEET = (1 << 20, 1 << 14)  # rows and columns that a sheet may have
_TITLE = "demonet"
_CELL_TEXT = 32_767  # characters that a cell may have
_SEPARATORS = {".": ",", ",": ";"}  # between columns, by decimal mark
_HEADER = 1 << 24  # characters in which the first row of a CSV file is
_EXACT = 10**15  # whole numbers of up to 15 digits are exact in a cell


@dataclass(frozen=True, eq=False)
class Column:
    """One column.

    Args:
        name: Its name.
        values: ``[rows]`` text; or whole numbers; or other numbers, NaN for an empty cell with ``gaps``; or with
            ``names`` the index of a name, -1 for an empty cell.
        names: The names.
        gaps: Whether NaN is an empty cell.
    """

    name: str
    values: Sequence[str] | NDArray[Any]
    names: Sequence[str] | None = None
    gaps: bool = False

    @property
    def words(self) -> Sequence[str]:
        """All text that may occur in it."""
        return self.names or (() if isinstance(self.values, np.ndarray) else self.values)

    def cells(self, rows: slice, decimal: Decimal = ".") -> list[Any]:
        """Some cells of a CSV file, before they are quoted."""
        values = self.values[rows]
        if self.names is not None:
            return np.array([*self.names, ""], dtype=object)[np.asarray(values)].tolist()
        if not isinstance(values, np.ndarray):
            return list(values)
        if not self.gaps and values.dtype.kind != "f":
            return values.tolist()
        texts = [f"{value:.9g}" for value in values.tolist()]
        if decimal != ".":
            texts = [text.replace(".", decimal) for text in texts]
        return ["" if text == "nan" else text for text in texts] if self.gaps else texts

    def excel(self) -> list[Any]:
        """The cells of a sheet, None for empty ones; texts that are all whole numbers are numbers."""
        if self.names is not None:
            return np.array([*_numbers(self.names), None], dtype=object)[np.asarray(self.values)].tolist()
        if not isinstance(self.values, np.ndarray):
            return _numbers(self.values)
        if self.values.dtype.kind != "f":
            return self.values.tolist()
        return [float(str(value)) if np.isfinite(value) else None for value in self.values]  # shortest digits

    def arrow(self) -> Any:
        """The column for Parquet."""
        import pyarrow as pa

        if self.names is not None:
            codes = pa.array(np.asarray(self.values, dtype=np.int32), mask=np.asarray(self.values) < 0)
            return pa.DictionaryArray.from_arrays(codes, pa.array(list(self.names), pa.string()))
        if not isinstance(self.values, np.ndarray):
            return pa.array(self.values, pa.string())
        return pa.array(np.ascontiguousarray(self.values), from_pandas=self.gaps)


def write_csv(path: Path, columns: Sequence[Column], excel: Decimal | None = None) -> None:
    """Write a CSV file: text is quoted as needed, numbers have 9 digits, which restore every float32.

    Everything is quoted if a name has a carriage return, which Python before 3.13 does not quote. ``excel`` is the
    decimal mark of a spreadsheet, which opens such a file with a double click: it has a byte order mark, and with a
    decimal comma, semicolons between columns.
    """
    every, decimal = any("\r" in word for column in columns for word in (column.name, *column.words)), excel or "."
    with path.open("w", encoding="utf-8" if excel is None else "utf-8-sig", newline="") as out:
        form: Any = {"delimiter": _SEPARATORS[decimal], "lineterminator": "\n"}
        writer = csv.writer(out, quoting=csv.QUOTE_ALL if every else csv.QUOTE_MINIMAL, **form)
        writer.writerow([column.name for column in columns])
        for start in range(0, len(columns[0].values), BLOCK):
            cells = (column.cells(slice(start, start + BLOCK), decimal) for column in columns)
            writer.writerows(zip(*cells, strict=True))


def arrow_table(columns: Sequence[Column]) -> Any:
    """A ``pyarrow.Table``; empty cells are null."""
    import pyarrow as pa

    return pa.table([column.arrow() for column in columns], [column.name for column in columns])


def write_parquet(path: Path, columns: Sequence[Column]) -> None:
    """Write a Parquet file; empty cells are null."""
    from pyarrow import parquet

    parquet.write_table(arrow_table(columns), path)


def write_excel(path: Path, columns: Sequence[Column]) -> None:
    """Write a workbook with one sheet; a text is never a formula, and the header stays in sight.

    Characters that a workbook cannot have are replaced, and a text is cut where a cell ends.
    """
    openpyxl = import_openpyxl(path)
    illegal = openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE
    count = len(columns[0].values)
    if count >= _SHEET[0] or len(columns) > _SHEET[1]:
        problem = f"{count + 1:,} rows and {len(columns):,} columns, but a sheet has {_SHEET[0]:,} and {_SHEET[1]:,}"
        raise DemonetError(problem, file=path, hint="write .csv or .parquet")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet(_TITLE)
    sheet.freeze_panes = "A2"
    sheet.auto_filter.ref = f"A1:{openpyxl.utils.get_column_letter(len(columns))}{count + 1}"

    def cell(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        text = illegal.sub("\N{REPLACEMENT CHARACTER}", value)[:_CELL_TEXT]
        found = openpyxl.cell.WriteOnlyCell(sheet, text)
        found.data_type = "s"
        return found

    sheet.append([cell(column.name) for column in columns])
    for row in zip(*(column.excel() for column in columns), strict=True):
        sheet.append(list(map(cell, row)))
    book.save(path)


_WRITERS = {".csv": write_csv, ".parquet": write_parquet, ".xlsx": write_excel}


def check_table(path: Path, inputs: Iterable[str | Path | None] = (), *, also: Sequence[str] = ()) -> None:
    """Fail early if a table cannot be written: its suffix or its folder is wrong, or it is one of the inputs.

    ``also`` are suffixes besides those of tables; a stream gets CSV.
    """
    suffix = path.suffix.lower()
    if not is_stream(path) and suffix not in (*_WRITERS, *also):
        hint = f"use {', '.join((*_WRITERS, *also))}"
        raise DemonetError(f"unknown suffix {path.suffix!r}", argument="out", file=path, hint=hint)
    if suffix == ".xlsx":
        import_openpyxl(path)
    check_file(path, inputs=[name and split_table(Path(name))[0] for name in inputs])


def header_of(path: Path) -> list[str]:
    """The names of the columns of a table, if :func:`write_table` can have written it."""
    try:
        if path.suffix.lower() == ".parquet":
            from pyarrow import parquet

            return list(parquet.read_schema(path).names)
        if path.suffix.lower() == ".xlsx":
            book = import_openpyxl(path).load_workbook(path, read_only=True)
            with closing(book):
                return [str(name) for name in next(book[_TITLE].iter_rows(max_row=1, values_only=True))]
        with path.open(encoding="utf-8-sig", newline="") as stream:
            text = stream.read(_HEADER)
        found = (next(csv.reader(io.StringIO(text), delimiter=mark), []) for mark in _SEPARATORS.values())
        return max(found, key=len)
    except Exception:  # whatever libraries raise about a file of something else
        return []


def write_table(path: Path, columns: Sequence[Column], excel: Decimal | None = None) -> None:
    """Write a table in the format of the suffix: ``.csv``, ``.parquet`` or ``.xlsx``; CSV to a stream.

    ``excel`` is for CSV, see :func:`write_csv`.
    """
    check_table(path)
    write = write_csv if is_stream(path) else _WRITERS[path.suffix.lower()]
    with replacing(path) as temporary:
        write_csv(temporary, columns, excel) if write is write_csv else write(temporary, columns)


def _numbers(texts: Sequence[str]) -> list[Any]:
    """Texts as numbers if all are whole numbers in their usual form, with few enough digits; ``007`` stays text."""
    numbers = [as_integer(text) for text in texts]
    return numbers if all(n is not None and abs(n) < _EXACT for n in numbers) else list(texts)
