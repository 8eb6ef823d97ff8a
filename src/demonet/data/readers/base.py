"""What every reader uses: input files, each opened once, and the description of a graph that a reader returns."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from demonet.atomic import check_no_device
from demonet.checks import check_memory
from demonet.data.ids import Ids
from demonet.errors import DemonetError, DemonetWarning, warn
from demonet.options import Column, Reading

_CHUNK = 1 << 22
MAX_LINE = 1 << 24
# A file that expands to more than this, and to a hundred times its size, is refused. Text compresses 5 to 20 times, a
# matrix of zeros a thousand times.
_LARGE_TEXT, _LARGE_MATRIX = 1 << 26, 1 << 28
_MAX_EXPANSION = 100
_COPIES = 3  # of its content, that reading a file needs at least


_BINARY = {
    b"PK\x03\x04": "if it is a workbook, name it .xlsx, or save it as .csv",
    b"\xd0\xcf\x11\xe0": "an old Excel file? save it as .xlsx or .csv",
    b"SQLite format 3\0": "a SQLite database: name it .db",
    b"PAR1": "a Parquet file: name it .parquet",
}


def split_table(path: Path) -> tuple[Path, str | None]:
    """The file, and the table in it that is named behind a ``#``, as in ``bank.xlsx#Customers``."""
    file, _, table = str(path).partition("#")
    return (Path(file), table) if table and not path.exists() and Path(file).is_file() else (path, None)


class InputFiles:
    """Opens input files, each once, and keeps their checksums.

    Attributes:
        checksums: The sha256 of every file that was read, by its path; of a folder, that of the names and contents of
            all files in it.
    """

    def __init__(self) -> None:
        self.checksums: dict[Path, str] = {}

    def read(self, path: Path) -> bytes:
        """The content of a file, decompressed if it is gzip, whatever its name."""
        raw = _open(path)
        self.checksums[path] = hashlib.sha256(raw).hexdigest()
        return _content(raw, path)

    def read_folder(self, folder: Path, suffixes: tuple[str, ...]) -> dict[str, bytes]:
        """The content of the files whose names end in one of the suffixes, in any case, by name without ``.gz``."""
        total, members = hashlib.sha256(), dict[str, bytes]()
        for path in sorted(folder.iterdir()):
            if not path.is_file():
                continue
            total.update(path.name.encode())
            name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
            suffix = next((suffix for suffix in suffixes if name.lower().endswith(suffix.lower())), None)
            if suffix is None:
                with path.open("rb") as stream:
                    while chunk := stream.read(_CHUNK):
                        total.update(chunk)
                continue
            raw, member = _open(path), name[: -len(suffix)] + suffix
            total.update(raw)
            content = _content(raw, path)
            if members.setdefault(member, content) != content:
                raise DemonetError("there is another file of this name, with other content", file=path)
        self.checksums[folder] = total.hexdigest()
        return members


def as_text(content: bytes, path: Path) -> bytes:
    """The content of a text file without a byte order mark; binary content is an error."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    at = content.find(b"\0")
    if at >= 0:
        kinds = (advice for start, advice in _BINARY.items() if content.startswith(start))
        hint = next(kinds, "a text file is expected; save UTF-16 as UTF-8")
        raise DemonetError(f"binary file: byte {at} is zero", file=path, hint=hint)
    if b"\xcc" in content or b"\xcd" in content:  # one of them begins every accent that is a character of its own
        with suppress(UnicodeDecodeError):  # in Windows-1252 they are letters
            return composed(content.decode(), path).encode()
    return content


def composed(text: str, file: Path | None) -> str:
    """Text with every letter in its composed form (NFC), so that a name is one name however its accents are written."""
    found = text if text.isascii() else unicodedata.normalize("NFC", text)
    if found != text:
        warn(
            DemonetWarning("letters and accents that are two characters each are read as one (Unicode NFC)", file=file)
        )
    return found


def as_lines(content: bytes, path: Path) -> bytes:
    """The content of a text file with ``\\n`` at the ends of lines and no byte order marks; long lines are an error."""
    data = as_text(content, path)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if (mark := codecs.BOM_UTF8) in data:  # files that were put one after the other
        data = data.replace(b"\n" + mark, b"\n").removeprefix(mark)
    start = 0
    while len(data) - start > MAX_LINE:
        last = data.rfind(b"\n", start, start + MAX_LINE + 1)
        if last < 0:
            line = data.count(b"\n", 0, start) + 1
            raise DemonetError(f"a line of more than {MAX_LINE >> 20} MiB", file=path, line=line)
        start = last + 1
    return data


def numbered_lines(data: bytes) -> Iterator[tuple[int, re.Match[bytes]]]:
    """The lines that are not empty (group 1) with their numbers from 1 on; empty ones take no memory."""
    number = 1
    for line in re.finditer(rb"\n*+([^\n]++|\Z)", data):
        number += line.start(1) - line.start()
        if line[1]:
            yield number, line


def check_expansion(packed: int, unpacked: int, path: Path, large: int = _LARGE_MATRIX) -> None:
    """Refuse a compressed file that expands to an implausible size, or to more than there is memory for."""
    problem = f"{packed:,} compressed bytes expand to {unpacked:,} or more"
    check_memory(_COPIES * unpacked, problem, file=path)
    if unpacked > max(large, _MAX_EXPANSION * packed):
        raise DemonetError(problem, file=path, hint="if that is right, decompress the file first")


MASKS = ("train_mask", "val_mask", "test_mask")
"""Columns with this name say which nodes are in a part of the split."""


@dataclass
class Listing:
    """One graph as its source describes it, with the source's own ids.

    Args:
        source: The id of each edge's source.
        target: The id of each edge's target.
        weight: One number per edge.
        nodes: All nodes in the source's order, if it lists them; otherwise the nodes are the ends of edges, sorted.
        directed: Whether edges are directed, if the source says so.
        inside: Columns and matrices with one row per node, by name; labels and features may be among them.
        labels: The name in ``inside`` of the labels to use by default.
        features: The name in ``inside`` of the features to use by default.
        columns: What the columns of the features are, if they come from a table.
        file: The file that was read.
    """

    source: Ids
    target: Ids
    weight: np.ndarray | None = None
    nodes: Ids | None = None
    directed: bool | None = None
    inside: Mapping[str, Any] = field(default_factory=dict)
    labels: str | None = None
    features: str | None = None
    columns: Any = None
    file: Path | None = None


@dataclass(frozen=True)
class ReadOptions(Reading):
    """How files are read: what :class:`~demonet.options.Reading` has, and what only Python code can say.

    Args:
        weight: Also False, for no weights.
        matrix: As in :func:`~demonet.data.read_graph`.
        columns: How a table of features is encoded, as learned from another one: a
            :class:`~demonet.data.columns.Columns`.
        check_label: What is wrong with a label, if anything; the error names its line.
    """

    weight: Column | bool | None = None
    matrix: str | None = None
    columns: Any = None
    check_label: Callable[[Any], str | None] | None = None

    @property
    def edge_weight(self) -> str | None:
        """The edge attribute with the weight, in a file of a graph; None for ``"weight"`` where it exists."""
        return self.weight if isinstance(self.weight, str) else None


def _open(path: Path) -> bytes:
    file, _ = split_table(path)
    try:
        check_no_device(file)
        if file.is_file():
            check_memory(_COPIES * file.stat().st_size, "reading it", file=path)
        return file.read_bytes()
    except FileNotFoundError:
        raise DemonetError("no such file", file=path) from None
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise DemonetError(f"cannot be read: {error}", file=path) from None


def _content(raw: bytes, path: Path) -> bytes:
    content = _decompress(raw, path) if raw[:2] == b"\x1f\x8b" else raw
    if not content:
        raise DemonetError("the file is empty", file=path)
    return content


def _decompress(raw: bytes, path: Path) -> bytes:
    content = io.BytesIO()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
            while chunk := stream.read(_CHUNK):
                content.write(chunk)
                check_expansion(len(raw), content.tell(), path, _LARGE_TEXT)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DemonetError(f"truncated or damaged gzip: {error}", file=path) from None
    return content.getvalue()
