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
from demonet.data.readers.base import Listing, ReadOptions
from demonet.data.readers.gin import read_gin
from demonet.data.readers.graphml import read_gexf, read_graphml
from demonet.data.readers.matlab import read_mat
from demonet.data.readers.matrix import read_npy, read_npz
from demonet.data.readers.matrix_market import read_matrix_market
from demonet.data.readers.parquet import ParquetTable
from demonet.data.readers.tables import Table
from demonet.data.readers.text import TextTable
from demonet.data.readers.torch_file import read_pt


@dataclass(frozen=True)
class Format:
    """What a file of some format can hold, each with its reader.

    Attributes:
        table: Columns: edges, labels or features. Called with ``(content, path, header, words)``.
        graph: One graph. Called with ``(content, path, options)``.
        graphs: Many graphs. Called with ``(content, path)``.
        matrix: A matrix: adjacency or features. Called with ``(content, path)``.
    """

    table: Callable[[bytes, Path, bool | None, bool], Table] | None = None
    graph: Callable[[bytes, Path, ReadOptions], Listing] | None = None
    graphs: Callable[[bytes, Path], Collection] | None = None
    matrix: Callable[[bytes, Path], Any] | None = None


FORMATS: dict[str, Format] = {
    ".csv": Format(table=TextTable),
    ".tsv": Format(table=TextTable),
    ".parquet": Format(table=ParquetTable),
    ".pq": Format(table=ParquetTable),
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
    name = path.name.lower().removesuffix(".gz")
    return FORMATS.get(Path(name).suffix, TEXT)
