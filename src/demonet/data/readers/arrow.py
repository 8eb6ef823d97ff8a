"""Tables whose columns have types: Parquet files, data frames of pandas, Polars and others, rows of Python values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from demonet.checks import check_memory
from demonet.data.readers.base import composed
from demonet.data.readers.tables import Table, check_names, may_be_header, usual_header, values_below
from demonet.data.values import is_missing
from demonet.errors import DemonetError

_ROW_BYTES = 48  # of memory that a row needs at least: two ids, and the edge in both directions


class _ArrowTable(Table):
    """A table whose columns come from Arrow, one at a time."""

    @abstractmethod
    def _column(self, place: int) -> Any:
        """The column at this position."""

    def arrow(self, places: Sequence[int]) -> Iterator[Any]:
        """The columns at these positions."""
        return map(self._column, places)


class ParquetTable(_ArrowTable):
    """A Parquet file as columns; only the requested columns are decoded. ``header`` and ``words`` have no effect."""

    def __init__(self, content: bytes, path: Path, header: bool | None = None, words: bool = False) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self.file, self._content = path, pa.py_buffer(content)
        self._rows: int | None = None
        try:
            metadata = parquet.read_metadata(pa.BufferReader(self._content))
            self.names = names = list(metadata.schema.to_arrow_schema().names)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise DemonetError(f"not a Parquet file: {error}", file=path) from None
        self.width = len(names)
        check_names(names, path)
        check_memory(_ROW_BYTES * metadata.num_rows, f"{metadata.num_rows:,} rows", file=path)

    def _column(self, place: int) -> Any:
        import pyarrow as pa
        from pyarrow import parquet

        assert self.names is not None
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


class RecordTable(_ArrowTable):
    """Columns of Python values, such as those of a sheet.

    Args:
        columns: The columns.
        file: The file that they come from.
        names: Their names; None if the first row may have them.
        header: Without ``names``: whether it has; None if that follows from its content.
        words: As for a :class:`~demonet.data.readers.text.TextTable`.
        lines: The line of each row in the file, with that of the header, if it has lines.
    """

    def __init__(
        self,
        columns: Sequence[Sequence[Any]],
        file: Path | None,
        *,
        names: Sequence[str] | None = None,
        header: bool | None = None,
        words: bool = False,
        lines: Sequence[int] | None = None,
    ) -> None:
        def one_form(values: Sequence[Any]) -> list[Any]:
            return [composed(value, file) if isinstance(value, str) else value for value in values]

        self.file, self.width, self.twins, self.header_row = file, len(columns), {}, names is None
        self._values, self._lines, self._start = [one_form(column) for column in columns], lines, 0
        if names is not None:
            self.names = one_form(names)
            check_names(self.names, file)
        elif header or (header is None and self._has_header(words)):
            self.use_header()

    def _has_header(self, words: bool) -> bool:
        first = self.first_row()
        if all(isinstance(value, str) for value in first) and usual_header(first):
            return True
        if not may_be_header(first):
            return False
        self._start = 1
        self.guessed = values_below(self.values(range(self.width)), words, marks=True)
        self._start = 0
        return self.guessed

    def use_header(self) -> None:
        """Take names from the first row."""
        self.names = ["" if value is None else str(value).strip() for value in self.first_row()]
        check_names(self.names, self.file, self.line(0))
        self._start = 1
        if len(self._values[0]) < 2:
            raise DemonetError("a header without rows", file=self.file)

    def drop_header(self) -> None:
        """Read the header as the first row."""
        self.names, self._start = None, 0

    def first_row(self) -> list[Any]:
        """The first row."""
        return [column[0] for column in self._values]

    def line(self, row: int) -> int | None:
        """The line of the file that holds a row, if the file has lines."""
        return None if self._lines is None else self._lines[row + self._start]

    def _column(self, place: int) -> Any:
        column, twins = as_column(self._values[place][self._start :], self.named(place), self.file)
        if twins:
            self.twins = {**self.twins, place: twins}
        return column


class FrameTable(_ArrowTable):
    """A data frame of pandas, Polars or any library that exports Arrow or the data frame protocol.

    Args:
        frame: The data frame; ``is_frame(frame)`` must hold.
        index: Whether the index of a pandas frame is the first column, unless a column has ids by a usual name.
    """

    def __init__(self, frame: Any, index: bool = False) -> None:
        frame = frame.collect() if hasattr(frame, "collect") else frame  # a lazy frame
        frame = frame.to_pandas() if not _is_arrow(frame) and hasattr(frame, "to_pandas") else frame
        if hasattr(frame, "iloc"):
            names, self._columns, twins = _from_pandas(frame, index)
            self.twins = {place: texts for place, texts in enumerate(twins) if texts}
        else:
            table = _to_arrow(frame)
            names, self._columns = [str(name) for name in table.column_names], table.columns
        check_names(names, None)
        self.names, self.width = names, len(names)

    def _column(self, place: int) -> Any:
        return self._columns[place]


def is_frame(value: Any) -> bool:
    """Whether a value is a data frame: of pandas, Polars, Arrow, or anything with their protocols."""
    return hasattr(value, "columns") and any(
        hasattr(value, name) for name in ("__arrow_c_stream__", "__dataframe__", "to_pandas", "collect", "iloc")
    )


def as_column(values: Sequence[Any], named: str, file: Path | None) -> tuple[Any, str]:
    """Python values as an Arrow column; those of several types are text, unless all are numbers.

    Also two of them that differ only in their type, such as ``1 and '1'``, or an empty text.
    """
    import pyarrow as pa

    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    plain = [None if _is_empty(value) else value for value in plain]
    kinds, twins = {type(value) for value in plain if value is not None}, ""
    if len(kinds) > 1 and not kinds <= {int, float}:
        texts = {value for value in plain if isinstance(value, str)}
        same = next((v for v in plain if v is not None and not isinstance(v, str) and str(v) in texts), None)
        twins = "" if same is None else f"{same!r} and '{same}'"
        plain = [None if value is None else str(value) for value in plain]
    try:
        if kinds <= {int, float} and any(isinstance(value, int) and abs(value) >= 2**63 for value in plain):
            plain = [None if value is None else str(value) for value in plain]  # no type has them
        return pa.chunked_array([pa.array(plain)]), twins
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DemonetError(f"{named} has neither numbers nor text: {error}", file=file) from None


def _is_empty(value: Any) -> bool:
    return not value.strip() if isinstance(value, str) else is_missing(value)


def _is_arrow(frame: Any) -> bool:
    return any(hasattr(frame, name) for name in ("iloc", "__arrow_c_stream__", "__dataframe__"))


def _to_arrow(frame: Any) -> Any:
    import pyarrow as pa
    from pyarrow.interchange import from_dataframe

    try:
        return pa.table(frame) if hasattr(frame, "__arrow_c_stream__") else from_dataframe(frame)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
        raise DemonetError(f"a {type(frame).__name__} cannot be read as a table: {error}") from None


def _from_pandas(frame: Any, index: bool) -> tuple[list[str], list[Any], list[str]]:
    """The names of the columns of a pandas frame, perhaps with its index; the columns; what :func:`as_column` tells."""
    import pyarrow as pa

    names, series = [str(name) for name in frame.columns], [frame.iloc[:, place] for place in range(frame.shape[1])]
    if index and not any(name.lower() in ("node", "node_id", "id") for name in names):
        names.insert(0, "node" if frame.index.name is None else str(frame.index.name))
        series.insert(0, frame.index.to_series())
    columns, twins = [], []
    for name, values in zip(names, series, strict=True):
        if values.dtype == object:
            column, told = as_column(values.tolist(), f"column {name!r}", None)
        else:
            try:
                column, told = pa.table([pa.array(values, from_pandas=True)], [name]).column(0), ""
            except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
                raise DemonetError(f"column {name!r} cannot be read: {error}") from None
        columns.append(column)
        twins.append(told)
    return names, columns, twins
