"""Parquet tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from demonet.data.readers.tables import Kind, convert, join_strings, release
from demonet.errors import DemonetError


class ParquetTable:
    """A Parquet file as columns; only the requested columns are decoded. ``header`` and ``words`` have no effect."""

    def __init__(self, content: bytes, path: Path, header: bool | None = None, words: bool = False) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self.file, self.guessed, self._content = path, False, pa.py_buffer(content)
        try:
            schema = parquet.read_schema(pa.BufferReader(self._content))
        except (pa.ArrowException, OSError) as error:
            raise DemonetError(f"not a Parquet file: {error}", file=path) from None
        self.names: list[str] | None = list(schema.names)
        self.width = len(schema.names)

    def columns(self, places: Sequence[int], kinds: Sequence[Kind]) -> list[Any]:
        """The columns at these positions."""
        import pyarrow as pa
        from pyarrow import parquet

        names = [(self.names or [])[place] for place in places]
        columns: list[Any] = []
        for name, kind in zip(names, kinds, strict=True):  # one at a time: only one of Arrow's copies is in memory
            try:
                column = parquet.read_table(pa.BufferReader(self._content), columns=[name]).column(name)
            except (pa.ArrowException, OSError, MemoryError) as error:
                raise DemonetError(f"damaged Parquet file: {error}", file=self.file) from None
            if kind != "text" and column.null_count:
                row = int(np.flatnonzero(column.is_null().to_numpy())[0])
                raise DemonetError(f"column {name!r} is empty in row {row}", file=self.file)
            values = convert(column, kind, self.file)
            del column
            release()
            if kind == "number" and not np.isfinite(values).all():
                row = int(np.flatnonzero(~np.isfinite(values))[0])
                raise DemonetError(f"{values[row]} in column {name!r}, row {row}", file=self.file)
            columns.append(values)
        return join_strings(columns)

    def line(self, row: int) -> None:
        """A Parquet file has no lines."""
