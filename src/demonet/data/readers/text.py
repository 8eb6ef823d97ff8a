"""Text tables, with blanks, tabs or commas between fields.

Arrow parses the whole text: a million lines take a tenth of a second. Only if that fails is the text scanned line by
line, to name the line and the value in the error.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from demonet.data.ids import Coded
from demonet.data.readers.base import as_text
from demonet.data.readers.tables import Kind, convert, is_integer, is_number, join_strings, release
from demonet.errors import DemonetError

MAX_COLUMNS = 100_000
MAX_LINE = 1 << 26
_FIRST_NAMES = {"source", "src", "from", "node", "node_id", "id", "graph", "graph_id"}


class TextTable:
    """A text file as columns; lines that start with # or % are comments.

    Args:
        content: The content of the file.
        path: The file, for error messages.
        header: Whether the first line has the column names. If None, it has if it starts with a usual name for a node,
            an edge's source or a graph, or (``guessed``) if it has no number and the first column only integers below.
        words: Whether ids are known to be strings, so that a line of words need not be a header.
    """

    def __init__(self, content: bytes, path: Path, header: bool | None = None, words: bool = False) -> None:
        self.file = path
        data = as_text(content, path)
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first = _first_line(data)
        if not first:
            raise DemonetError("only comments and empty lines", file=path)
        self._delimiter = "," if b"," in first else "\t" if b"\t" in first else " "
        self._data = _tidy(data, blanks=self._delimiter == " ")
        lines = self._lines()
        line, first = next(lines)
        places = first.count(self._delimiter.encode()) + 1
        if places > MAX_COLUMNS:
            hint = "store wide features as a sparse .npz or .mtx"
            raise DemonetError(f"{places} columns, more than {MAX_COLUMNS}", file=path, line=line, hint=hint)
        fields = self._fields(line, first)
        self.width = len(fields)
        self.names: list[str] | None = fields
        self._start = self._data.index(first) + len(first)
        self.guessed = False
        if header is None and fields[0].lower() not in _FIRST_NAMES:
            no_number = not words and not any(is_number(field) for field in fields)
            self.guessed = no_number and self._has_only_integers_below()
            header = self.guessed
        header = True if header is None else header
        if header and next(lines, None) is None:
            raise DemonetError("a header without rows", file=path, line=line)
        if not header:
            self.names, self._start = None, 0

    def columns(self, places: Sequence[int], kinds: Sequence[Kind]) -> list[Any]:
        """The columns at these positions: `Ids` for an id, float64 for a number, a list of str or None for text."""
        columns: list[Any] = []
        read = self._read(places, kinds)
        for place, kind in zip(places, kinds, strict=True):
            column = read.pop(0)  # free Arrow's copy once ours is made
            if kind != "text" and column.null_count:
                row = int(np.flatnonzero(column.is_null().to_numpy())[0])
                raise DemonetError(f"column {place + 1} is empty", file=self.file, line=self.line(row))
            values = convert(column, kind, self.file)
            if kind == "number" and not np.isfinite(values).all():
                row = int(np.flatnonzero(~np.isfinite(values))[0])
                problem = f"{values[row]} in column {place + 1}"
                raise DemonetError(problem, file=self.file, line=self.line(row), hint="numbers must be finite")
            columns.append(values)
        release()
        columns = join_strings(columns)
        for place, ids in zip(places, columns, strict=True):
            if isinstance(ids, Coded) and (blank := np.flatnonzero(ids.codes == ids.code(""))).size:
                raise DemonetError(f"column {place + 1} is blank", file=self.file, line=self.line(int(blank[0])))
        return columns

    def line(self, row: int) -> int:
        """The line of the file that holds a row."""
        skip = row + (self.names is not None)
        return next(line for i, (line, _) in enumerate(self._lines()) if i == skip)

    def _read(self, places: Sequence[int], kinds: Sequence[Kind]) -> list[Any]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        body = pa.py_buffer(self._data)[self._start :]
        reason = ""
        for id_type in (pa.int64(), pa.string()):  # ids are integers or, if that fails, strings
            fixed = {"number": pa.float64(), "text": pa.string(), "str id": pa.string(), "int id": pa.int64()}
            types = {str(place): fixed.get(kind, id_type) for place, kind in zip(places, kinds, strict=True)}
            try:
                table = arrow_csv.read_csv(
                    pa.BufferReader(body),
                    arrow_csv.ReadOptions(column_names=[str(i) for i in range(self.width)], block_size=1 << 22),
                    arrow_csv.ParseOptions(delimiter=self._delimiter, quote_char=self._delimiter != " " and '"'),
                    arrow_csv.ConvertOptions(
                        include_columns=list(types), column_types=types, null_values=[""], strings_can_be_null=True
                    ),
                )
                return [table.column(str(place)) for place in places]
            except (pa.ArrowInvalid, pa.ArrowCapacityError) as error:
                reason = str(error)
                release()
                if "id" not in kinds:
                    break
        self._explain(places, kinds, reason)

    def _has_only_integers_below(self) -> bool:
        try:
            return self._data[self._start :].strip() != b"" and self._read([0], ["int id"])[0].null_count == 0
        except DemonetError:
            return False

    def _explain(self, places: Sequence[int], kinds: Sequence[Kind], reason: str) -> NoReturn:
        """Raise the error of the first bad line."""
        lines = self._lines()
        if self.names is not None:
            next(lines)
        for row, (line, text) in enumerate(lines):
            fields = self._fields(line, text)
            if len(fields) != self.width:
                problem = f"{len(fields)} fields but the first line has {self.width}: {_short(text)}"
                raise DemonetError(problem, file=self.file, line=line)
            for place, kind in zip(places, kinds, strict=True):
                if (kind == "number" and not is_number(fields[place])) or (
                    kind == "int id" and not is_integer(fields[place])
                ):
                    what = "a number" if kind == "number" else "an integer"
                    problem = f"{_short(fields[place].encode())} is not {what}, in column {place + 1}"
                    header = "start a header with 'source' for edges, 'node' for labels and features"
                    hint = header if row == 0 and self.names is None else None
                    raise DemonetError(problem, file=self.file, line=line, hint=hint)
        raise DemonetError(f"not a table: {reason}", file=self.file)

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """Non-empty lines with their numbers."""
        start, number = 0, 0
        while start < len(self._data):
            end = self._data.find(b"\n", start)
            end = len(self._data) if end < 0 else end
            number += 1
            if end - start > MAX_LINE:
                raise DemonetError(f"a line of {end - start} bytes", file=self.file, line=number)
            if end > start:
                yield number, self._data[start:end]
            start = end + 1

    def _fields(self, line: int, text: bytes) -> list[str]:
        try:
            decoded = text.decode("utf-8")
        except UnicodeDecodeError as error:
            problem = f"byte {text[error.start]:#04x} is not UTF-8 text"
            raise DemonetError(problem, file=self.file, line=line, hint="is this a binary file?") from None
        if self._delimiter == " ":
            return decoded.split(" ")
        try:
            return [field.strip() for field in next(csv.reader([decoded], delimiter=self._delimiter), [""])]
        except csv.Error as error:
            raise DemonetError(f"{error}: {_short(text)}", file=self.file, line=line) from None


def _first_line(data: bytes) -> bytes:
    match = re.search(rb"(?m)^(?![#%])[ \t]*[^\s].*$", data)
    return match.group() if match else b""


def _tidy(data: bytes, blanks: bool) -> bytes:
    """Empty the comments and, if blanks separate the fields, leave one blank between them; line numbers stay."""
    if blanks and (data[:1] in b" \t" or data[-1:] == b" " or any(s in data for s in (b"  ", b"\t", b" \n", b"\n "))):
        data = re.sub(rb"(?m)^ | $", b"", re.sub(rb"[ \t]+", b" ", data))
    if data[:1] in b"#%" or b"\n#" in data or b"\n%" in data:
        data = re.sub(rb"(?m)^[#%].*$", b"", data)
    if data[:1] in b" \t" or b"\n " in data or b"\n\t" in data:
        data = re.sub(rb"(?m)^[ \t]+$", b"", data)
    return data


def _short(text: bytes) -> str:
    return repr(text[:60].decode("utf-8", "replace")) + ("..." if len(text) > 60 else "")
