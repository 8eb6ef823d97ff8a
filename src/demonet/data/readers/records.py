"""Files with several tables: workbooks of Excel, SQLite databases, JSON.

The table is the only one, or the one that is named behind the file: ``bank.xlsx#Customers``, ``bank.db#transfers``.
"""

from __future__ import annotations

import io
import json
import re
import sqlite3
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from demonet.checks import check_memory
from demonet.data.readers.arrow import RecordTable
from demonet.data.readers.base import as_text, check_expansion, numbered_lines, split_table
from demonet.errors import DemonetError

_ROWS = 1 << 20  # that a sheet may have
_EXPANSION = 20  # bytes of Python values for a byte of a file, at least
_MERGED = re.compile(rb'<mergeCell\s[^>]*?ref="([^"]+)"')
_UNCOMPUTED = re.compile(
    rb'<c\s[^>]*?r="([A-Z]+[0-9]+)"[^>]*>\s*<f[^>]*?(?:/>|>[^<]*</f>)\s*(?:<v\s*/>|<v>\s*</v>)?\s*</c>'
)


def import_openpyxl(file: Path) -> Any:
    """The library that reads and writes workbooks; an error says how to install it."""
    try:
        import openpyxl  # type: ignore[import-untyped]
    except ImportError:
        hint = "pip install 'demonet[excel]', or use .csv"
        raise DemonetError("Excel files need openpyxl", file=file, hint=hint) from None
    return openpyxl


def read_excel(content: bytes, path: Path, header: bool | None = None, words: bool = False) -> RecordTable:
    """A sheet of a workbook: results of formulas, dates as dates; rows and columns without values are left out."""
    openpyxl = import_openpyxl(path)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            check_expansion(len(content), sum(member.file_size for member in archive.infolist()), path)
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # what the file says may be a million empty rows of 16,384 columns
        names = [sheet.title for sheet in book.worksheets if any(sheet.iter_rows(max_row=_ROWS, values_only=True))]
        sheet = book[_choose(names, path)]
        text = book._archive.read(sheet._worksheet_path)
        if merged := _MERGED.search(text):
            problem = f"merged cells {merged[1].decode()}"
            raise DemonetError(problem, file=path, hint="a table has one value in each cell: unmerge them")
        if formula := _UNCOMPUTED.search(text):
            problem = f"the formula in cell {formula[1].decode()} has no result"
            raise DemonetError(problem, file=path, hint="open the file in Excel and save it")
        found = enumerate(sheet.iter_rows(max_row=_ROWS), 1)
        rows = [(number, [_cell(cell, path) for cell in row]) for number, row in found]
    except DemonetError:
        raise
    except Exception as error:  # openpyxl raises what zipfile, the parser of XML and its own descriptors do
        raise DemonetError(f"not an Excel workbook: {error!r}", file=path) from None
    rows = [(number, row) for number, row in rows if any(value is not None for value in row)]
    width = max((len(row) for _, row in rows), default=0)
    check_expansion(len(content), 8 * width * len(rows), path)
    columns = list(zip(*(row + [None] * (width - len(row)) for _, row in rows), strict=True))
    columns = [column for column in columns if any(value is not None for value in column)]
    return RecordTable(columns, path, header=header, words=words, lines=[number for number, _ in rows])


def _cell(cell: Any, path: Path) -> Any:
    """The value of a cell; a number that is shown with leading zeros is text, as it is shown."""
    value = cell.value
    if cell.data_type == "e" and value != "#N/A":  # that one means a missing value
        raise DemonetError(
            f"cell {cell.coordinate} has the error {value}", file=path, hint="correct it or leave it empty"
        )
    if type(value) is int and value >= 0 and re.fullmatch("0{2,}", cell.number_format or ""):
        return f"{value:0{len(cell.number_format)}}"
    return None if isinstance(value, str) and not value.strip() else value


def read_sqlite(content: bytes, path: Path, header: bool | None = None, words: bool = False) -> RecordTable:
    """A table of a database, which is read from memory: the file is not opened by SQLite. Views are not read."""
    journal = Path(f"{split_table(path)[0]}-wal")
    if journal.is_file() and journal.stat().st_size:
        problem = f"the last changes are not in it, but in {journal.name}"
        raise DemonetError(problem, file=path, hint="close the program that uses it")
    if not content.startswith(b"SQLite format 3\0"):
        raise DemonetError("not a SQLite database", file=path)
    check_memory(_EXPANSION * len(content), "its tables", file=path)
    base = sqlite3.connect(":memory:")
    try:
        base.deserialize(content[:18] + b"\1\1" + content[20:])  # as if it had no journal of its own
        base.execute("PRAGMA trusted_schema = OFF")
        base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1 << 24)
        found = base.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        names = [str(name) for name, sql in found if not re.match(r"(?i)\s*create\s+virtual", str(sql))]
        table = _choose(names, path).replace('"', '""')
        cursor = base.execute(f'SELECT * FROM "{table}"')
        columns = [str(each[0]) for each in cursor.description]
        rows, size = [], 0
        for row in cursor:  # a column may be computed: a few bytes that become millions in each row
            size += sum(len(value) for value in row if isinstance(value, str | bytes))
            check_expansion(len(content), size, path)
            rows.append(row)
        return _records(columns, rows, path)
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:  # the last: bytes in SQLite's own message
        raise DemonetError(f"damaged SQLite database: {error}", file=path) from None
    finally:
        base.close()


def read_json(content: bytes, path: Path, header: bool | None = None, words: bool = False) -> RecordTable:
    """Records, ``[{"source": 1, "target": 2}, ...]``; or an object with lists of them; or one record a line."""
    check_memory(_EXPANSION * len(content), "its records", file=path)
    text = as_text(content, path)
    if re.search(r"\.(jsonl|ndjson)(\.gz)?$", path.name.lower()):
        found: Any = [_parse(match[1], path, line) for line, match in numbered_lines(text) if match[1].strip()]
    else:
        found = _parse(text, path)
    if not isinstance(found, list):
        lists = (
            {name: value for name, value in found.items() if isinstance(value, list)} if isinstance(found, dict) else {}
        )
        found = lists[_choose(list(lists), path)]
    row = next((row for row, record in enumerate(found) if not isinstance(record, dict)), None)
    if row is not None:
        raise DemonetError(f"record {row} is not an object with named values", file=path)
    names = list(dict.fromkeys(name for record in found for name in record))
    check_expansion(len(content), 8 * len(names) * len(found), path)
    return _records(names, [[record.get(name) for name in names] for record in found], path)


def _parse(text: bytes, path: Path, line: int | None = None) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_record)
    except (ValueError, RecursionError) as error:
        raise DemonetError(f"not JSON: {error}", file=path, line=line or getattr(error, "lineno", None)) from None


def _record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = ", ".join(sorted(name for name, count in counts.items() if count > 1))
        raise ValueError(f"a name twice in one record: {twice[:100]}")
    return record


def _records(names: Sequence[str], rows: Sequence[Sequence[Any]], path: Path) -> RecordTable:
    if not rows:
        raise DemonetError("the table is empty", file=path)
    return RecordTable(list(zip(*rows, strict=True)), path, names=names)


def _choose(names: Sequence[str], path: Path) -> str:
    """The table that is named behind the file, or the only one."""
    file, asked = split_table(path)
    if asked is None and len(names) == 1:
        return names[0]
    if asked in names:
        return str(asked)
    if not names:
        raise DemonetError("there is no table with values in it", file=path)
    shown = ", ".join(map(repr, names[:20]))
    problem = f"no table {asked!r}" if asked else f"{len(names)} tables"
    each = " or ".join(f"'{file}#{name}'" for name in names[:3])
    raise DemonetError(f"{problem}: it has {shown}", file=file, hint=f"name one: {each}")
