"""Text tables, with commas, semicolons, tabs, vertical bars or blanks between fields.

Arrow parses the whole text: a million lines take a tenth of a second. Only if that fails is the text scanned line by
line, to name the line and the value in the error.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from demonet.data.readers.base import as_lines, numbered_lines
from demonet.data.readers.tables import Kind, Table, check_names, release
from demonet.data.values import (
    MISSING,
    as_number,
    decimal_mark,
    is_integer,
    is_missing,
    is_number,
    read_numbers,
    two_readings,
)
from demonet.errors import DemonetError, DemonetWarning, Hint, warn

MAX_COLUMNS = 100_000
_FIRST_NAMES = {"source", "src", "from", "node", "node_id", "id", "graph", "graph_id"}
_NAMES = {"source", "target", "node", "node_id"}  # at any place
_SEPARATORS = "\t;|,"  # in this order where several fit: a comma is also a decimal comma
_BLOCK = 1 << 22  # bytes that a pattern is replaced in at a time: each match takes memory
_SAMPLE = 50  # lines that decide on the separator, and first on the header
_NULLS = sorted({variant for word in MISSING for variant in (word, word.upper(), word.capitalize())} | {"NaN", "NaT"})


class TextTable(Table):
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
        data = _without_blank_lines(as_lines(_as_utf8(content, path), path))
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
        self._header = fields, found.end()
        known = fields[0].lower() in _FIRST_NAMES or not _NAMES.isdisjoint(field.lower() for field in fields)
        if header is None and not known:
            no_number = not any(is_number(field) or is_missing(field) for field in fields)
            self.guessed = no_number and self._has_only_values_below(words, found.end())
            header = self.guessed
        header = True if header is None else header
        if header and next(lines, None) is None:
            raise DemonetError("a header without rows", file=path, line=line)
        self._start = found.start(1)
        if header:
            self._use_header(line)

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

    def line(self, row: int) -> int:
        """The line of the file that holds a row."""
        skip = row + (self.names is not None)
        return next(line for i, (line, _) in enumerate(numbered_lines(self._data)) if i == skip)

    def take_header(self) -> None:
        """Read the first row as a header, because no edge has its id."""
        self._use_header(self.line(0))
        first = ", ".join(self._header[0])
        warn(DemonetWarning(f"{first!r} is read as a header, because no edge has its id", file=self.file))

    def _use_header(self, line: int) -> None:
        self.names, self._start = self._header
        check_names(self.names, self.file, line)
        header = b"\n" + self._data[: self._start].rpartition(b"\n")[2]
        if self._data.find(header, self._start) < 0:
            return
        above, below = self._data[: self._start], self._data[self._start :]
        below, count = re.subn(re.escape(header) + rb"(?=\n|\Z)", b"\n", below)
        if count:  # two files, one after the other
            self._data = above + below
            repeats = "a line that repeats" if count == 1 else f"{count} lines that repeat"
            warn(DemonetWarning(f"{repeats} the header skipped", file=self.file))

    def sample(self, place: int) -> list[str]:
        """The first values of a column as text, without missing ones."""
        start = int(self.names is not None)
        rows = [
            self._fields(line, found[1]) for line, found in islice(numbered_lines(self._data), start, start + _SAMPLE)
        ]
        return [row[place] for row in rows if len(row) == self.width and not is_missing(row[place])]

    def _arrow(self, places: Sequence[int], kinds: Sequence[Kind]) -> Iterator[Any]:
        self._tell_comments()
        read = self._read(places, kinds)
        while read:
            yield read.pop(0)

    def _read(self, places: Sequence[int], kinds: Sequence[Kind]) -> list[Any]:
        import pyarrow as pa

        reason = ""
        fixed = {"number": pa.float64(), "int id": pa.int64()}
        if self.decimal == ",":
            del fixed["number"]
        for _ in range(2):
            types = {str(place): fixed.get(kind, pa.string()) for place, kind in zip(places, kinds, strict=True)}
            try:
                read = self._parse(types, [""])
                numbers = [kind == "number" for kind in kinds]
                return [self._numbers(*pair) if n else pair[0] for n, *pair in zip(numbers, read, places, strict=True)]
            except (pa.ArrowInvalid, pa.ArrowCapacityError) as error:
                reason = str(error)
                release()
            fixed.pop("number", None)  # as text, for other marks than a decimal point
        self._explain(places, kinds, reason)

    def _numbers(self, column: Any, place: int) -> Any:
        """A column of numbers; texts are read with the decimal mark that fits all of them."""
        import pyarrow as pa

        if not pa.types.is_string(column.type):
            return column
        texts = [text and text.strip() for text in column.to_pylist()]
        known = {text for text in texts if text}
        mark = decimal_mark(known, self.decimal)
        if mark is None:
            raise two_readings(next(text for text in known if "," in text), self.named(place), file=self.file)
        values = read_numbers(texts, mark)[0]
        row = next((row for row, text in enumerate(texts) if text and np.isnan(values[row])), None)
        if row is not None:
            problem = f"{_short(str(texts[row]).encode())} is not a number, in {self.named(place)}"
            raise self.error(problem, row, self._if_header() if row == 0 and self.names is None else None)
        if known and (mark == "," or not all(map(is_number, known))):
            message = f"decimal commas or thousands separators read in {self.named(place)}"
            warn(DemonetWarning(message, file=self.file))
        return pa.chunked_array([pa.array(values, mask=np.array([not text for text in texts], dtype=bool))])

    def _parse(self, types: dict[str, Any], nulls: list[str], stop: int | None = None) -> list[Any]:
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
            ),
        )
        return [table.column(name) for name in types]

    def _has_only_values_below(self, words: bool, start: int) -> bool:
        """Whether the lines below the first have integers in the first column (not ``words``), or values in another.

        Values are numbers, dates and times: with words alone, the first line may be an edge like the others.
        """
        import pyarrow as pa

        def has_values(column: Any) -> bool:
            if pa.types.is_string(column.type) and self._delimiter not in " ,":
                texts = [text.strip() for text in column.to_pylist() if text is not None]
                return all(as_number(text) is not None or as_number(text, ",") is not None for text in texts)
            kind = column.type
            return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind))

        end = self._start = start
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
                if kind == "int id" and not is_integer(fields[place]):
                    problem = f"{_short(fields[place].encode())} is not an integer, in {self.named(place)}"
                    hint = self._if_header() if row == 0 and self.names is None else None
                    raise DemonetError(problem, file=self.file, line=line, hint=hint)
        raise DemonetError(f"not a table: {reason}", file=self.file)

    def _if_header(self) -> str:
        """What to do if the first line is a header that was not recognised."""
        first, second = (*self._header[0], "")[:2]
        return Hint("if this line is a header, name the columns: {source} {target}", source=first, target=second)

    def _fields(self, line: int, text: bytes) -> list[str]:
        decoded = text.decode("utf-8")
        if self._delimiter == " ":
            return decoded.split(" ")
        try:
            return [field.strip() for field in next(csv.reader([decoded], delimiter=self._delimiter), [""])]
        except csv.Error as error:
            raise DemonetError(f"{error}: {_short(text)}", file=self.file, line=line) from None


def _as_utf8(content: bytes, path: Path) -> bytes:
    """The text in UTF-8; what is not UTF-8 is taken for Windows-1252, as spreadsheets write it."""
    if content.isascii():
        return content
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(content), _BLOCK):
            decoder.decode(content[start : start + _BLOCK])
        decoder.decode(b"", final=True)
        return content
    except UnicodeDecodeError as error:
        if b"\0" in content:  # a binary file, or UTF-16
            return content
        wrong = error.object[error.start : error.start + 1]
    try:
        text = content.decode("cp1252").encode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problem = f"byte {content[error.start]:#04x} is neither UTF-8 nor Windows-1252"
        raise DemonetError(problem, file=path, line=line, hint="save the file as UTF-8") from None
    message = f"read as Windows-1252, because {wrong!r} is not UTF-8: {wrong.decode('cp1252')!r}"
    warn(DemonetWarning(message, file=path, hint="save the file as UTF-8 if letters are wrong"))
    return text


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
