"""Readers of file formats, one module each, and the registry that maps suffixes to them.

To add a format, write a module with a reader and add a line to ``FORMATS``. A reader takes the content of a file
(decompressed) and its path, which is only for error messages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demonet.data.graph_set import Collection
from demonet.data.readers.arrow import ParquetTable
from demonet.data.readers.base import Listing, ReadOptions, split_table
from demonet.data.readers.gin import read_gin
from demonet.data.readers.graphml import read_gexf, read_graphml
from demonet.data.readers.matlab import read_mat
from demonet.data.readers.matrix import read_npy, read_npz
from demonet.data.readers.matrix_market import read_matrix_market
from demonet.data.readers.records import read_excel, read_json, read_sqlite
from demonet.data.readers.tables import Table
from demonet.data.readers.text import TextTable
from demonet.data.readers.torch_file import read_pt
from demonet.errors import DemonetError


@dataclass(frozen=True)
class Format:
    """What a file of some format can hold, each with its reader.

    Attributes:
        table: Columns: edges, labels or features. Called with ``(content, path, header, words)``.
        graph: One graph. Called with ``(content, path, options)``.
        graphs: Many graphs. Called with ``(content, path)``.
        matrix: A matrix: adjacency or features. Called with ``(content, path)``.
        several: Whether a file may have several tables, of which one is named behind a ``#``.
    """

    table: Callable[[bytes, Path, bool | None, bool], Table] | None = None
    graph: Callable[[bytes, Path, ReadOptions], Listing] | None = None
    graphs: Callable[[bytes, Path], Collection] | None = None
    matrix: Callable[[bytes, Path], Any] | None = None
    several: bool = False


_EXCEL, _SQLITE, _JSON = (Format(table=read, several=True) for read in (read_excel, read_sqlite, read_json))
FORMATS: dict[str, Format] = {
    ".csv": Format(table=TextTable),
    ".tsv": Format(table=TextTable),
    ".parquet": Format(table=ParquetTable),
    ".pq": Format(table=ParquetTable),
    ".xlsx": _EXCEL,
    ".xlsm": _EXCEL,
    ".db": _SQLITE,
    ".sqlite": _SQLITE,
    ".sqlite3": _SQLITE,
    ".json": _JSON,
    ".jsonl": _JSON,
    ".ndjson": _JSON,
    ".graphml": Format(graph=read_graphml),
    ".gexf": Format(graph=read_gexf),
    ".mat": Format(graph=read_mat),
    ".pt": Format(graph=read_pt),
    ".mtx": Format(matrix=read_matrix_market),
    ".npz": Format(matrix=read_npz),
    ".npy": Format(matrix=read_npy),
}
TEXT = Format(table=TextTable, graphs=read_gin)  # any other suffix


def format_of(path: Path) -> Format:
    """The format of a file by its suffix, in upper or lower case, with ``.gz`` or without."""
    file, table = split_table(path)
    form = FORMATS.get(Path(file.name.lower().removesuffix(".gz")).suffix, TEXT)
    if table is not None and not form.several:
        raise DemonetError("no such file", file=path, hint="a table behind # is read from .xlsx, .db and .json files")
    return form


def open_table(content: bytes, path: Path, header: bool | None = None, words: bool = False) -> Table:
    """The table of a file, by its suffix."""
    table = format_of(path).table
    if table is None:
        hint = "use .csv, .tsv, .parquet, .xlsx, .db or .json"
        raise DemonetError(f"a table is expected, not a {path.suffix} file", file=path, hint=hint)
    return table(content, path, header, words)
