"""Parquet tables, and tables in memory: data frames of pandas, Polars and others."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from demonet.checks import check_memory
from demonet.data.readers.tables import Kind, Table, check_names
from demonet.data.values import is_missing
from demonet.errors import DemonetError

_ROW_BYTES = 48  # of memory that a row needs at least: two ids, and the edge in both directions


class _ArrowTable(Table):
    """A table whose columns come from Arrow, one at a time."""

    names: list[str]

    @abstractmethod
    def _column(self, place: int) -> Any:
        """The column at this position."""

    def _arrow(self, places: Sequence[int], kinds: Sequence[Kind]) -> Iterator[Any]:
        yield from map(self._column, places)

    def sample(self, place: int) -> list[str]:
        """The first values of a column as text, without missing ones."""
        return [str(value) for value in self._column(place)[:50].to_pylist() if not is_missing(value)]

    def values(self, places: Sequence[int]) -> list[Any]:
        return list(map(self._column, places))


class ParquetTable(_ArrowTable):
    """A Parquet file as columns; only the requested columns are decoded. ``header`` and ``words`` have no effect."""

    def __init__(self, content: bytes, path: Path, header: bool | None = None, words: bool = False) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self.file, self._content = path, pa.py_buffer(content)
        self._rows: int | None = None
        try:
            metadata = parquet.read_metadata(pa.BufferReader(self._content))
            self.names = list(metadata.schema.to_arrow_schema().names)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise DemonetError(f"not a Parquet file: {error}", file=path) from None
        self.width = len(self.names)
        check_names(self.names, path)
        check_memory(_ROW_BYTES * metadata.num_rows, f"{metadata.num_rows:,} rows", file=path)

    def _column(self, place: int) -> Any:
        import pyarrow as pa
        from pyarrow import parquet

        name = self.names[place]
        try:
            table = parquet.read_table(pa.BufferReader(self._content), columns=[name])
            column = table.column(name)
            column.validate(full=True)  # values that are not UTF-8, offsets outside their buffer
        except (pa.ArrowException, OSError, MemoryError, UnicodeDecodeError, KeyError) as error:
            raise DemonetError(f"damaged Parquet file: {error}", file=self.file) from None
        self._rows = len(column) if self._rows is None else self._rows
        if len(column) != self._rows:
            raise DemonetError(f"columns of {self._rows:,} and of {len(column):,} rows", file=self.file)
        return column


class FrameTable(_ArrowTable):
    """A data frame of pandas, Polars or any library that exports Arrow or the data frame protocol.

    Args:
        frame: The data frame; ``is_frame(frame)`` must hold.
        index: Whether the index of a pandas frame is the first column, unless a column has ids by a usual name.
    """

    def __init__(self, frame: Any, index: bool = False) -> None:
        frame = frame.collect() if hasattr(frame, "collect") else frame  # a lazy frame
        self._mixed: dict[str, str] = {}
        if hasattr(frame, "iloc"):
            frame, self._mixed = _plain_pandas(frame, index)
        self._table = _to_arrow(frame)
        self.names = [str(name) for name in self._table.column_names]
        check_names(self.names, None)
        self.width = len(self.names)

    def columns(self, places: Sequence[int], kinds: Sequence[Kind]) -> list[Any]:
        """The columns at these positions; ids and labels that differ only in their type are an error."""
        for place, kind in zip(places, kinds, strict=True):
            name = self.names[place]
            if kind != "number" and (texts := self._mixed.get(name)):
                raise DemonetError(f"values that differ only in their type, such as {texts}, in column {name!r}")
        return super().columns(places, kinds)

    def _column(self, place: int) -> Any:
        return self._table.column(place)


def is_frame(value: Any) -> bool:
    """Whether a value is a data frame: of pandas, Polars, Arrow, or anything with their protocols."""
    return hasattr(value, "columns") and any(
        hasattr(value, name) for name in ("__arrow_c_stream__", "__dataframe__", "to_pandas", "collect", "iloc")
    )


def _to_arrow(frame: Any) -> Any:
    import pyarrow as pa
    from pyarrow.interchange import from_dataframe

    try:
        if hasattr(frame, "iloc"):
            return pa.Table.from_pandas(frame, preserve_index=False)
        if hasattr(frame, "__arrow_c_stream__"):
            return pa.table(frame)
        if hasattr(frame, "__dataframe__"):
            return from_dataframe(frame)
        return pa.Table.from_pandas(frame.to_pandas(), preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
        raise DemonetError(f"a {type(frame).__name__} cannot be read as a table: {error}") from None


def _plain_pandas(frame: Any, index: bool) -> tuple[Any, dict[str, str]]:
    """A pandas frame with names of type str, without mixed columns, and with its index as the first column.

    Also, for each mixed column with two values of the same text, such as 1 and '1', these values.
    """
    frame = frame.copy(deep=False)
    frame.columns = [str(name) for name in frame.columns]
    check_names(frame.columns, None)
    usual = any(name.lower() in ("node", "node_id", "id") for name in frame.columns)
    if index and not usual:
        frame.insert(0, "node" if frame.index.name is None else str(frame.index.name), frame.index)
    mixed = {}
    for name in frame.columns:
        values = frame[name].tolist() if frame[name].dtype == object else []
        if len({type(value) for value in values if isinstance(value, str | int | float | bool)}) > 1:
            texts = {value for value in values if isinstance(value, str)}
            same = next((value for value in values if not isinstance(value, str) and str(value) in texts), None)
            if same is not None:
                mixed[name] = f"{same!r} and '{same}'"
            frame[name] = [None if is_missing(value) else str(value) for value in values]
    return frame, mixed
