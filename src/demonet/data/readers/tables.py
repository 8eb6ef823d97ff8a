"""Tables: columns of ids, numbers or text, and tables whose rows are edges."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from demonet.data.ids import Coded, Ids, id_at
from demonet.data.readers.base import Listing
from demonet.errors import DemonetError, DemonetWarning, Hint, warn

Column = str | int | None
Kind = Literal["id", "int id", "str id", "number", "text"]
_NUMBER = re.compile(
    r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*|\s*[+-]?(nan|inf|infinity)\s*", re.ASCII | re.IGNORECASE
)


class Table(Protocol):
    """The columns of a file, by position.

    Attributes:
        names: The column names, if there is a header.
        width: The number of columns.
        guessed: Whether the header was recognised by its content alone.
    """

    @property
    def file(self) -> Path | None:
        """The file, if there is one."""

    names: list[str] | None
    width: int
    guessed: bool

    def columns(self, places: Sequence[int], kinds: Sequence[Kind]) -> list[Any]:
        """The columns at these positions: `Ids` for an id, float64 for a number, a list of str or None for text."""

    def values(self, places: Sequence[int]) -> list[Any]:
        """The columns at these positions as Arrow arrays, nulls where a value is missing."""

    def line(self, row: int) -> int | None:
        """The line of the file that holds a row, if the file has lines."""


def place_of(table: Table, column: str | int, argument: str) -> int:
    """The position of a column, given by name or by position in ``argument``."""
    if isinstance(column, str):
        if table.names is None or column not in table.names:
            known = "there is no header" if table.names is None else f"columns: {', '.join(table.names[:20])}"
            raise DemonetError(f"no column {column!r}", argument=argument, file=table.file, hint=known)
        return table.names.index(column)
    if not 0 <= column < table.width:
        hint = f"there are {table.width} columns, counted from 0"
        raise DemonetError(f"no column {column}", argument=argument, file=table.file, hint=hint)
    return column


def convert(column: Any, kind: Kind, file: Path | None) -> Any:
    """An Arrow column without nulls (unless text) as integer ids, numbers or text; string ids are a dictionary."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        if kind == "text":
            return pc.utf8_trim_whitespace(column.cast(pa.large_string())).to_pylist()
        if kind == "number":
            return column.cast(pa.float64()).to_numpy()
        if kind == "id" and _is_string(column.type) and (numbers := _as_integers(column)) is not None:
            return numbers
        if pa.types.is_integer(column.type) and kind != "str id":
            return column.cast(pa.int64()).to_numpy()
        if kind == "int id" or not (pa.types.is_integer(column.type) or _is_string(column.type)):
            raise DemonetError(f"node ids have type {column.type}", file=file, hint="use integers or strings")
        return column.cast(pa.string()).dictionary_encode()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DemonetError(f"a column cannot be read: {error}", file=file) from None


def _as_integers(column: Any) -> np.ndarray | None:
    """Texts as int64; None if one is not an integer as ``str`` writes it: ``seven``, ``007``, ``0x10``, ``-0``."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for trim in (False, True):  # few columns need it, and it takes time
        column = pc.utf8_trim_whitespace(column) if trim else column
        try:
            numbers = column.cast(pa.int64())
        except pa.ArrowInvalid:
            continue
        zero = pc.and_(pc.starts_with(column, "0"), pc.greater(pc.binary_length(column), 1))
        other = pc.any(zero).as_py() or pc.any(pc.starts_with(column, "-0")).as_py()
        return None if other else numbers.to_numpy()
    return None


def join_strings(columns: list[Any]) -> list[Any]:
    """Convert Arrow dictionaries to `Coded` with one shared array of names, so that each string is stored once."""
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
    """Return the memory that Arrow keeps after reading."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


def is_integer(text: str) -> bool:
    """Whether text reads as an int64."""
    return re.fullmatch(r"\s*-?\d{1,40}\s*", text, re.ASCII) is not None and -(2**63) <= int(text) < 2**63


def is_number(text: str) -> bool:
    """Whether text reads as a float."""
    return _NUMBER.fullmatch(text) is not None


def _is_string(type_: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def edge_columns(
    table: Table, source: Column, target: Column, weight: Column | bool, skip: int | None = None
) -> tuple[list[int], int | None]:
    """The positions of source, target and weight: as given, by their usual names, or the first columns."""
    if table.width - (skip is not None) < 2:
        hint = "separate columns with commas, semicolons, tabs, vertical bars or blanks"
        raise DemonetError("one column, but an edge needs a source and a target", file=table.file, hint=hint)
    names = table.names or []
    free = [place for place in range(table.width) if place != skip]
    if source is None and target is None and not {"source", "target"} <= set(names):
        ends = free[:2]
    else:
        ends = [
            place_of(table, "source" if source is None else source, "source"),
            place_of(table, "target" if target is None else target, "target"),
        ]
    if weight is False:
        return ends, None
    if weight is not None and weight is not True:
        return ends, place_of(table, weight, "weight")
    if "weight" in names:
        return ends, names.index("weight")
    if weight is True or (table.names is None and source is None and target is None and len(free) > 2):
        if len(free) != 3:
            template = "name the columns with {source}, {target} and {weight}, by name or by position from 0"
            hint = Hint(template, source=..., target=..., weight=...)
            raise DemonetError(f"{table.width} columns, but an edge list has 2 or 3", file=table.file, hint=hint)
        return ends, next(place for place in free if place not in ends)
    return ends, None


def read_edges(table: Table, source: Column, target: Column, weight: Column | bool, ids: str) -> Listing:
    """The edges of a table; the arguments are those of :func:`~demonet.data.read_graph`."""
    if table.guessed:
        first = ", ".join(table.names or [])
        hint = Hint("{header} reads it as an edge", header=False)
        warn(DemonetWarning(f"{first!r} is read as a header", file=table.file, hint=hint))
    ends, weight_at = edge_columns(table, source, target, weight)
    if weight is None:
        _tell_unused(table, [*ends, *([] if weight_at is None else [weight_at])])
    kind: Kind = "int id" if ids == "int" else "str id" if ids == "str" else "id"
    kinds: list[Kind] = [kind, kind] if weight_at is None else [kind, kind, "number"]
    columns = table.columns([*ends, *([] if weight_at is None else [weight_at])], kinds)
    release()
    if table.names is None:
        _check_first_edge(table.file, columns[0], columns[1])
    return Listing(columns[0], columns[1], None if weight_at is None else columns[2], file=table.file)


def _tell_unused(table: Table, used: Sequence[int]) -> None:
    """Warn of columns of an edge list that are not read: one of them may be the weight."""
    left = [name for place, name in enumerate(table.names or []) if place not in used]
    if left:
        shown = ", ".join(map(repr, left[:5])) + (", ..." if len(left) > 5 else "")
        hint = Hint("{weight} reads weights from a column", weight=left[0]) if len(used) == 2 else None
        warn(DemonetWarning(f"not used: {shown}", file=table.file, hint=hint))


def _check_first_edge(path: Path | None, *ends: Ids) -> None:
    """Warn if the first line may be a header: words that occur nowhere else."""
    if len(ends[0]) < 3 or not all(isinstance(ids, Coded) for ids in ends):
        return
    first = [str(id_at(ids, 0)) for ids in ends]
    times = [sum(int((ids.codes == ids.code(name)).sum()) for ids in ends if isinstance(ids, Coded)) for name in first]
    if times == [1, 1] and not any(is_number(name) for name in first):
        names = ", ".join(map(repr, first))
        problem = f"{names} is read as an edge, but neither id occurs again"
        hint = Hint("if it is a header, name the columns: {source} {target}", source=first[0], target=first[1])
        warn(DemonetWarning(problem, file=path, line=1, hint=hint))


def id_place(table: Table, column: Column) -> int:
    """The position of the ids: as given, by a usual name, or the first column."""
    names = [name.lower() for name in table.names or []]
    usual = next((place for place, name in enumerate(names) if name in ("node", "node_id", "id", "graph")), None)
    if column is not None and (usual is None or isinstance(column, int) or column in (table.names or [])):
        return place_of(table, column, "id_column")
    return usual or 0
