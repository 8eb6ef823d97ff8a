"""What a column of a table can be, and Arrow's columns as the arrays that the rest of the package takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from demonet.data.ids import Coded
from demonet.errors import DemonetError

Kind = Literal["id", "int id", "str id", "number", "text"]
_NUMBER = re.compile(
    r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*|\s*[+-]?(nan|inf|infinity)\s*", re.ASCII | re.IGNORECASE
)


class Table(Protocol):
    """Columns of a file, by place."""

    file: Path
    names: list[str] | None
    width: int

    def columns(self, places: Sequence[int], kinds: Sequence[Kind]) -> list[Any]:
        """The columns at these places: `Ids` for an id, float64 for a number, a list of str or None for text."""

    def line(self, row: int) -> int | None:
        """The line of the file on which a row stands, if it has lines."""


def place_of(table: Table, column: str | int, what: str) -> int:
    """The place of a column that the user named or counted."""
    if isinstance(column, str):
        if table.names is None or column not in table.names:
            known = "the file has no header" if table.names is None else f"there are {', '.join(table.names[:20])}"
            raise DemonetError(f"no column {column!r} for the {what}", file=table.file, hint=known)
        return table.names.index(column)
    if not 0 <= column < table.width:
        raise DemonetError(f"no column {column} for the {what}", file=table.file, hint=f"there are {table.width}")
    return column


def convert(column: Any, kind: Kind, file: Path) -> Any:
    """An Arrow column without nulls (unless text) as integer ids, numbers or text; strings as an Arrow dictionary."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        if kind == "text":
            return pc.utf8_trim_whitespace(column.cast(pa.large_string())).to_pylist()
        if kind == "number":
            return column.cast(pa.float64()).to_numpy()
        if pa.types.is_integer(column.type) and kind != "str id":
            return column.cast(pa.int64()).to_numpy()
        if kind == "int id" or not (pa.types.is_integer(column.type) or _is_string(column.type)):
            raise DemonetError(f"a column of node ids has type {column.type}", file=file, hint="integers or strings")
        return column.cast(pa.string()).dictionary_encode()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DemonetError(f"a column cannot be read: {error}", file=file) from None


def join_strings(columns: list[Any]) -> list[Any]:
    """Arrow dictionaries among the columns become `Coded`, all with the same names: each string is held once."""
    import pyarrow as pa

    ours = [i for i, column in enumerate(columns) if isinstance(column, pa.ChunkedArray)]
    if not ours:
        return columns
    together = pa.chunked_array(
        [c for i in ours for c in columns[i].chunks], type=columns[ours[0]].type
    ).unify_dictionaries()
    names = [name.strip() for name in together.chunk(0).dictionary.to_pylist()] if together.num_chunks else []
    number: dict[str, int] = {}
    distinct = np.array([number.setdefault(name, len(number)) for name in names], dtype=np.int64)
    array = np.array([*number, None], dtype=object)[:-1]  # None keeps NumPy from choosing a type of its own
    chunks = iter(together.chunks)
    for i in ours:
        codes = [next(chunks).indices.to_numpy() for _ in columns[i].chunks]
        codes = [distinct[part] for part in codes] if len(number) < len(names) else codes
        columns[i] = Coded(np.concatenate(codes) if codes else np.empty(0, np.int32), array)
    return columns


def release() -> None:
    """Hand back the memory with which Arrow has read; it keeps that until told otherwise."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


def is_integer(text: str) -> bool:
    """Whether text reads as an int64."""
    return re.fullmatch(r"\s*-?\d+\s*", text, re.ASCII) is not None and -(2**63) <= int(text[:40]) < 2**63


def is_number(text: str) -> bool:
    """Whether text reads as a float."""
    return _NUMBER.fullmatch(text) is not None


def _is_string(type_: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))
