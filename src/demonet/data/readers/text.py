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

from demonet.data.readers.base import as_lines, numbered_lines
from demonet.data.readers.tables import (
    SAMPLE,
    Table,
    check_names,
    check_width,
    may_be_header,
    release,
    short,
    usual_header,
    values_below,
)
from demonet.data.values import MISSING, is_missing
from demonet.errors import DemonetError, DemonetWarning, warn

_SEPARATORS = "\t;|,"  # in this order where several fit: a comma is also a decimal comma
_NAMES = 3  # of a header, by which a line that may repeat it is found
_BLOCK = 1 << 22  # bytes that a pattern is replaced in at a time: each match takes memory
_NULLS = sorted({variant for word in MISSING for variant in (word, word.upper(), word.capitalize())} | {"NaN", "NaT"})


class TextTable(Table):
    """A text file as columns.

    Lines that start with # or % are comments: in CSV and TSV only above the first line of the table, because an id may
    start so, too. A warning says how many lines were skipped.

    Args:
        content: The content of the file.
        path: The file, for error messages.
        header: Whether the first line has the column names. If None, it has if some of them are usual, or (``guessed``)
            if it has no number and there are values below.
        words: Whether ids are known to be strings, so that a line of words need not be a header.
    """

    header_row = True

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
        check_width(places, file=path, line=line)
        fields = self._fields(line, first)
        self.width = len(fields)
        self._header = fields, found.end()
        if header is None and not usual_header(fields):
            self.guessed = may_be_header(fields) and self._has_only_values_below(words, found.end())
            header = self.guessed
        header = True if header is None else header
        if header and next(lines, None) is None:
            raise DemonetError("a header without rows", file=path, line=line)
        self._start = found.start(1)
        if header:
            self.use_header()

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

    def use_header(self) -> None:
        """Take names from the first line; lines that repeat it are left out."""
        line = self.line(0)
        self.names, self._start = self._header
        check_names(self.names, self.file, line)
        header, lines = self._data[: self._start].rpartition(b"\n")[2], self._like(self.names[:_NAMES])
        spans = [found.span(1) for found in lines if self._plain(found[1]) == self._plain(header)]
        if spans:  # two files, one after the other
            kept = zip([0, *(end for _, end in spans)], [*(start for start, _ in spans), None], strict=True)
            self._data = b"".join(self._data[start:end] for start, end in kept)
            repeats = "a line that repeats" if len(spans) == 1 else f"{len(spans)} lines that repeat"
            warn(DemonetWarning(f"{repeats} the header skipped", file=self.file))

    def _like(self, names: Sequence[str]) -> Iterator[re.Match[bytes]]:
        """The lines below the header (group 1) that begin with these names, in any case, with blanks and quotes."""

        def any_case(letter: str) -> bytes:
            forms = sorted(re.escape(form.encode()) for form in {letter, letter.lower(), letter.upper()})
            return b'"*+' if letter == '"' else b"(?:%s)" % b"|".join(forms)

        around = b'"*+' if self._delimiter == " " else b'[ "]*+'
        between = around + re.escape(self._delimiter.encode()) + around
        start = between.join(b"".join(map(any_case, name)) for name in names)
        line = re.compile(rb"\n(" + around + start + rb"[^\n]*+)")
        return line.finditer(self._data, self._start)

    def _plain(self, line: bytes) -> list[str]:
        """The fields of a line without what may differ between two spellings of a header."""
        text = line.decode("utf-8").replace('"', "").casefold()
        return [field.strip() for field in text.split(self._delimiter)]

    def drop_header(self) -> None:
        """Read the header as the first row."""
        self.names, self._start = None, self._data.rfind(b"\n", 0, self._start) + 1

    def first_row(self) -> Sequence[str]:
        """The first line."""
        return self._header[0]

    def sample(self, place: int) -> list[str]:
        """The first values of a column as text, without missing ones."""
        start = int(self.names is not None)
        rows = [
            self._fields(line, found[1]) for line, found in islice(numbered_lines(self._data), start, start + SAMPLE)
        ]
        return [row[place] for row in rows if len(row) == self.width and not is_missing(row[place])]

    def arrow(self, places: Sequence[int]) -> Iterator[Any]:
        """The columns at these positions as text."""
        import pyarrow as pa

        self._tell_comments()
        try:
            read = self._parse({str(place): pa.string() for place in places}, [""])
        except (pa.ArrowInvalid, pa.ArrowCapacityError) as error:
            release()
            self._explain(str(error))
        while read:
            yield read.pop(0)

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
        """Whether there are values below the first line; the whole file is only parsed if its first lines have some."""
        import pyarrow as pa

        end = self._start = start
        for _ in range(SAMPLE):
            end = self._data.find(b"\n", end + 1)
            if end < 0:
                break
        for stop in (end, None) if end > 0 else (None,):
            if not self._data[self._start : stop].strip():
                return False
            try:
                columns = self._parse({str(place): None for place in range(self.width)}, _NULLS, stop=stop)
            except (pa.ArrowInvalid, pa.ArrowCapacityError):
                return False
            if not values_below(columns, words, marks=self._delimiter not in " ,"):
                return False
        return True

    def _explain(self, reason: str) -> NoReturn:
        """Raise the error of the first line with another number of fields."""
        for line, found in numbered_lines(self._data):
            if (count := len(self._fields(line, found[1]))) != self.width:
                problem = f"{count} fields but the first line has {self.width}: {_short(found[1])}"
                raise DemonetError(problem, file=self.file, line=line)
        raise DemonetError(f"not a table: {reason}", file=self.file)

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
    return [line[1].decode("utf-8", "replace") for _, line in islice(numbered_lines(data), SAMPLE)]


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
    return short(text[:100].decode("utf-8", "replace"))
