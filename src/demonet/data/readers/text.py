"""Text tables, with commas, semicolons, tabs, vertical bars or blanks between fields.

Arrow parses the whole text: a million lines take a tenth of a second. Only if that fails is the text scanned line by
line, to name the line and the value in the error.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from demonet.data.ids import MISSING, Coded, is_missing
from demonet.data.readers.base import as_lines, numbered_lines
from demonet.data.readers.tables import Kind, convert, is_integer, is_number, join_strings, release
from demonet.errors import DemonetError, DemonetWarning, Hint, warn

MAX_COLUMNS = 100_000
_FIRST_NAMES = {"source", "src", "from", "node", "node_id", "id", "graph", "graph_id"}
_NAMES = {"source", "target", "node", "node_id"}  # at any place
_SEPARATORS = "\t;|,"  # in this order where several fit: a comma is also a decimal comma
_BLOCK = 1 << 22  # bytes that a pattern is replaced in at a time: each match takes memory
_SAMPLE = 50  # lines that decide on the separator, and first on the header
_NULLS = sorted({variant for word in MISSING for variant in (word, word.upper(), word.capitalize())} | {"NaN", "NaT"})


class TextTable:
    """A text file as columns.

    Lines that start with # or % are comments: in CSV and TSV only above the first line of the table, because an id may
    start so, too. A warning says how many lines were skipped.

    Args:
        content: The content of the file.
        path: The file, for error messages.
        header: Whether the first line has the column names. If None, it has if it starts with a usual name for a node,
            an edge's source or a graph, if ``source``, ``target``, ``node`` or ``node_id`` is among its words, or
            (``guessed``) if it has no number and below there are integers in the first column or numbers in another.
        words: Whether ids are known to be strings, so that a line of words need not be a header.
    """

    def __init__(self, content: bytes, path: Path, header: bool | None = None, words: bool = False) -> None:
        self.file = path
        data = _without_blank_lines(as_lines(content, path))
        data, self._comments = _without_comments(data, anywhere=not re.search(r"\.[ct]sv(\.gz)?$", path.name.lower()))
        sample = _first_lines(data)
        if not sample:
            raise DemonetError("only comments and empty lines", file=path)
        self._delimiter = _separator(sample)
        self._data = _with_single_blanks(data) if self._delimiter == " " else data
        lines = numbered_lines(self._data)
        line, found = next(lines)
        first = found[1]
        places = first.count(self._delimiter.encode()) + 1
        if places > MAX_COLUMNS:
            hint = "store wide features as a sparse .npz or .mtx"
            raise DemonetError(f"{places} columns, more than {MAX_COLUMNS}", file=path, line=line, hint=hint)
        fields = self._fields(line, first)
        self.width = len(fields)
        self.names: list[str] | None = fields
        self._start = found.end()
        self.guessed = False
        known = fields[0].lower() in _FIRST_NAMES or not _NAMES.isdisjoint(field.lower() for field in fields)
        if header is None and not known:
            no_number = not any(is_number(field) or is_missing(field) for field in fields)
            self.guessed = no_number and self._has_only_values_below(words)
            header = self.guessed
        header = True if header is None else header
        if header and next(lines, None) is None:
            raise DemonetError("a header without rows", file=path, line=line)
        if not header:
            self.names, self._start = None, found.start(1)

    def columns(self, places: Sequence[int], kinds: Sequence[Kind]) -> list[Any]:
        """The columns at these positions: `Ids` for an id, float64 for a number, a list of str or None for text."""
        self._tell_comments()
        columns: list[Any] = []
        read = self._read(places, kinds)
        for place, kind in zip(places, kinds, strict=True):
            column = read.pop(0)  # free Arrow's copy once ours is made
            if kind != "text" and column.null_count:
                row = int(np.flatnonzero(column.is_null().to_numpy())[0])
                raise DemonetError(f"{self._named(place)} is empty", file=self.file, line=self.line(row))
            values = convert(column, kind, self.file)
            if kind == "number" and not np.isfinite(values).all():
                row = int(np.flatnonzero(~np.isfinite(values))[0])
                problem = f"{values[row]} in {self._named(place)}"
                raise DemonetError(problem, file=self.file, line=self.line(row), hint="numbers must be finite")
            columns.append(values)
        release()
        columns = join_strings(columns)
        for place, ids in zip(places, columns, strict=True):
            if isinstance(ids, Coded) and (blank := np.flatnonzero(ids.codes == ids.code(""))).size:
                raise DemonetError(f"{self._named(place)} is blank", file=self.file, line=self.line(int(blank[0])))
        return columns

    def values(self, places: Sequence[int]) -> list[Any]:
        """The columns at these positions as Arrow arrays, of the types that Arrow recognises."""
        self._tell_comments()
        return self._parse({str(place): None for place in places}, _NULLS)

    def _tell_comments(self) -> None:
        """Warn of skipped lines, once."""
        if self._comments:
            skipped = "1 line that starts" if self._comments == 1 else f"{self._comments:,} lines that start"
            warn(DemonetWarning(f"{skipped} with # or % skipped as a comment", file=self.file))
            self._comments = 0

    def _named(self, place: int) -> str:
        return f"column {place + 1}" if self.names is None else f"column {self.names[place]!r}"

    def line(self, row: int) -> int:
        """The line of the file that holds a row."""
        skip = row + (self.names is not None)
        return next(line for i, (line, _) in enumerate(numbered_lines(self._data)) if i == skip)

    def _read(self, places: Sequence[int], kinds: Sequence[Kind]) -> list[Any]:
        import pyarrow as pa

        reason = ""
        fixed = {"number": pa.float64(), "int id": pa.int64()}
        types = {str(place): fixed.get(kind, pa.string()) for place, kind in zip(places, kinds, strict=True)}
        for decimal in ".," if "number" in kinds and self._delimiter not in " ," else ".":
            try:
                return self._parse(types, [""], decimal)
            except (pa.ArrowInvalid, pa.ArrowCapacityError) as error:
                reason = str(error)
                release()
        self._explain(places, kinds, reason)

    def _parse(self, types: dict[str, Any], nulls: list[str], decimal: str = ".", stop: int | None = None) -> list[Any]:
        """The columns of these types, in the order of ``types``, None to recognise a type; up to the byte ``stop``."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        table = arrow_csv.read_csv(
            pa.BufferReader(pa.py_buffer(self._data)[self._start : stop]),
            arrow_csv.ReadOptions(column_names=[str(i) for i in range(self.width)], block_size=1 << 22),
            arrow_csv.ParseOptions(delimiter=self._delimiter, quote_char=self._delimiter != " " and '"'),
            arrow_csv.ConvertOptions(
                include_columns=list(types),
                column_types={name: kind for name, kind in types.items() if kind is not None},
                null_values=nulls,
                strings_can_be_null=True,
                decimal_point=decimal,
            ),
        )
        return [table.column(name) for name in types]

    def _has_only_values_below(self, words: bool) -> bool:
        """Whether the lines below the first have integers in the first column (not ``words``), or values in another.

        Values are numbers, dates and times: with words alone, the first line may be an edge like the others.
        """
        import pyarrow as pa

        def has_values(column: Any) -> bool:
            if pa.types.is_string(column.type) and self._delimiter not in " ,":
                return all(text is None or is_number(text.replace(",", ".")) for text in column.to_pylist())
            kind = column.type
            return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind))

        end = self._start
        for _ in range(_SAMPLE):
            end = self._data.find(b"\n", end + 1)
            if end < 0:
                break
        for stop in (end, None) if end > 0 else (None,):  # the whole file only if its first lines have values
            if not self._data[self._start : stop].strip():
                return False
            try:
                first, *others = self._parse({str(place): None for place in range(self.width)}, _NULLS, stop=stop)
            except (pa.ArrowInvalid, pa.ArrowCapacityError):
                return False
            whole = not words and pa.types.is_integer(first.type) and first.null_count == 0
            if not whole and not any(has_values(column) for column in others):
                return False
        return True

    def _explain(self, places: Sequence[int], kinds: Sequence[Kind], reason: str) -> NoReturn:
        """Raise the error of the first bad line."""
        lines = numbered_lines(self._data)
        if self.names is not None:
            next(lines)
        for row, (line, found) in enumerate(lines):
            text = found[1]
            fields = self._fields(line, text)
            if len(fields) != self.width:
                problem = f"{len(fields)} fields but the first line has {self.width}: {_short(text)}"
                raise DemonetError(problem, file=self.file, line=line)
            for place, kind in zip(places, kinds, strict=True):
                if (kind == "number" and not is_number(fields[place])) or (
                    kind == "int id" and not is_integer(fields[place])
                ):
                    what = "a number" if kind == "number" else "an integer"
                    problem = f"{_short(fields[place].encode())} is not {what}, in {self._named(place)}"
                    hint = _if_header(fields, places, kinds) if row == 0 and self.names is None else None
                    raise DemonetError(problem, file=self.file, line=line, hint=hint)
        raise DemonetError(f"not a table: {reason}", file=self.file)

    def _fields(self, line: int, text: bytes) -> list[str]:
        try:
            decoded = text.decode("utf-8")
        except UnicodeDecodeError as error:
            problem = f"byte {text[error.start]:#04x} is not UTF-8 text"
            raise DemonetError(problem, file=self.file, line=line, hint="save the file as UTF-8") from None
        if self._delimiter == " ":
            return decoded.split(" ")
        try:
            return [field.strip() for field in next(csv.reader([decoded], delimiter=self._delimiter), [""])]
        except csv.Error as error:
            raise DemonetError(f"{error}: {_short(text)}", file=self.file, line=line) from None


def _if_header(fields: Sequence[str], places: Sequence[int], kinds: Sequence[Kind]) -> str:
    """What to do if the first line is a header that was not recognised."""
    first, second = fields[places[0]], fields[places[min(1, len(places) - 1)]]
    if len(kinds) > 1 and "number" not in kinds[:2]:  # the ends of an edge
        return Hint("if this line is a header, name the columns: {source} {target}", source=first, target=second)
    return "start a header with 'node' for labels and features"


def _first_lines(data: bytes) -> list[str]:
    """The first lines that are not empty."""
    return [line[1].decode("utf-8", "replace") for _, line in islice(numbered_lines(data), _SAMPLE)]


def _replace(pattern: bytes, new: bytes | Callable[[re.Match[bytes]], bytes], data: bytes) -> bytes:
    """The text with a pattern replaced, in blocks of whole lines."""
    parts, start = [], 0
    while start < len(data):
        end = data.find(b"\n", start + _BLOCK) + 1 or len(data)
        parts.append(re.sub(pattern, new, data[start:end]))
        start = end
    return b"".join(parts)


def _line_ends(found: re.Match[bytes]) -> bytes:
    return b"\n" * found.group().count(b"\n")


def _without_comments(data: bytes, anywhere: bool) -> tuple[bytes, int]:
    r"""The text with comments emptied, so that line numbers stay, and how many there were.

    >>> _without_comments(b"# a\n1,2\n#3,4\n", anywhere=False), _without_comments(b"# a\n1 2\n#3 4\n", anywhere=True)
    ((b'\n1,2\n#3,4\n', 1), (b'\n1 2\n\n', 2))
    """
    found = re.match(rb"(?:\n++|[#%].*+(?:\n|\Z))*+", data)  # possessive: others keep each match in memory
    above = data if anywhere or found is None else found.group()
    count = above.count(b"\n#") + above.count(b"\n%") + above.startswith((b"#", b"%"))
    if not count:
        return data, 0
    pattern = rb"(?m)^[#%].*+(?:\n[#%].*+)*+"
    return _replace(pattern, _line_ends, above) + data[len(above) :], count


def _separator(lines: list[str]) -> str:
    """What separates the fields: what gives all lines the same number of fields, and the most; else a blank.

    >>> _separator(["id;x", "a;1,5"]), _separator(["a;1,5"]), _separator(["a,b c"]), _separator(["a b", "c d"])
    (';', ';', ',', ' ')
    """
    widths = {}
    for separator in _SEPARATORS:
        try:
            found = {len(row) for row in csv.reader(lines, delimiter=separator)}
        except csv.Error:
            continue
        if len(found) == 1 and (width := found.pop()) > 1:
            widths[separator] = width
    if widths:
        return max(widths, key=widths.__getitem__)  # the first of equals
    if len({len(line.split()) for line in lines}) == 1 and len(lines[0].split()) > 1:
        return " "
    return next((separator for separator in ",\t;|" if separator in lines[0]), " ")


def _without_blank_lines(data: bytes) -> bytes:
    """The text with lines of blanks emptied, so that line numbers stay."""
    if data[:1] in b" \t" or b"\n " in data or b"\n\t" in data:
        return _replace(rb"(?m)^[ \t]++$(?:\n[ \t]*+$)*+", _line_ends, data)
    return data


def _with_single_blanks(data: bytes) -> bytes:
    """The text with one blank between fields and none around them."""
    if data[:1] in b" \t" or data[-1:] == b" " or any(s in data for s in (b"  ", b"\t", b" \n", b"\n ")):
        return _replace(rb"(?m)^ | $", b"", _replace(rb"[ \t]+", b" ", data))
    return data


def _short(text: bytes) -> str:
    return repr(text[:60].decode("utf-8", "replace")) + ("..." if len(text) > 60 else "")
