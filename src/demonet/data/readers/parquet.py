"""Parquet tables: columns that already know their type."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from demonet.data.readers.columns import Kind, convert, join_strings, release
from demonet.errors import DemonetError


class ParquetTable:
    """A Parquet file as columns; only those asked for are read."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self.file = path
        if not path.is_file():
            raise DemonetError("no such file", file=path)
        try:
            schema = parquet.read_schema(path)
        except (pa.ArrowException, OSError) as error:
            raise DemonetError(f"not a Parquet file: {error}", file=path) from None
        self.names: list[str] | None = list(schema.names)
        self.width = len(schema.names)

    def columns(self, places: Sequence[int], kinds: Sequence[Kind]) -> list[Any]:
        """The columns at these places."""
        import pyarrow as pa
        from pyarrow import parquet

        names = [(self.names or [])[place] for place in places]
        columns: list[Any] = []
        for name, kind in zip(
            names, kinds, strict=True
        ):  # one at a time, so that Arrow's copy of it goes before the next
            try:
                column = parquet.read_table(self.file, columns=[name]).column(name)
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
