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
    """An Arrow column without nulls (unless text) as ids, numbers or text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        if kind == "text":
            return pc.utf8_trim_whitespace(_plain(column).cast(pa.large_string())).to_pylist()
        if kind == "number":
            return _plain(column).cast(pa.float64()).to_numpy()
        if pa.types.is_integer(column.type) and kind != "str id":
            return column.cast(pa.int64()).to_numpy()
        values = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if kind == "int id" or not (pa.types.is_integer(values) or _is_string(values)):
            raise DemonetError(f"a column of node ids has type {column.type}", file=file, hint="integers or strings")
        if not pa.types.is_dictionary(column.type):
            column = column.cast(pa.large_string()).dictionary_encode()
        return _coded(column.unify_dictionaries().combine_chunks())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DemonetError(f"a column cannot be read: {error}", file=file) from None


def _plain(column: Any) -> Any:
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _coded(column: Any) -> Coded:
    """A dictionary column; blanks around a string do not count, so two of its entries may be one."""
    names = np.array([str(name).strip() for name in column.dictionary.to_pylist()], dtype=object)
    codes = column.indices.to_numpy()
    if len(set(names)) < len(names):
        first = {name: i for i, name in reversed(list(enumerate(names)))}
        codes = np.array([first[name] for name in names])[codes]
    return Coded(codes, names)


def is_integer(text: str) -> bool:
    """Whether text reads as an int64."""
    return re.fullmatch(r"\s*-?\d+\s*", text, re.ASCII) is not None and -(2**63) <= int(text[:40]) < 2**63


def is_number(text: str) -> bool:
    """Whether text reads as a float."""
    return _NUMBER.fullmatch(text) is not None


def _is_string(type_: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))
