"""Edge lists: a table whose rows are edges."""

from __future__ import annotations

import warnings
from pathlib import Path

from demonet.data.ids import Coded, Ids, id_at
from demonet.data.readers.columns import Kind, Table, is_number, place_of, release
from demonet.data.readers.listing import Listing
from demonet.data.readers.parquet import ParquetTable
from demonet.data.readers.text import TextTable
from demonet.errors import DemonetError, DemonetWarning

Column = str | int | None


def open_table(path: Path, header: bool | None = None, words: bool = False) -> Table:
    """A table by the ending of its name: Parquet, or else text."""
    return ParquetTable(path) if path.suffix in (".parquet", ".pq") else TextTable(path, header, words)


def read_edge_list(
    path: Path, source: Column, target: Column, weight: Column | bool, ids: str, header: bool | None
) -> Listing:
    """Edges from text or Parquet; the arguments are those of `read_graph`."""
    named = any(isinstance(column, str) for column in (source, target, weight))
    table = open_table(path, True if named and header is None else header)
    if isinstance(table, TextTable) and table.guessed:
        first = ", ".join(table.names or [])
        warnings.warn(f"{path}: {first!r} is taken for a header (header=False reads it as an edge)", DemonetWarning, 4)
    ends, weight_at = edge_columns(table, source, target, weight)
    kind: Kind = "int id" if ids == "int" else "str id" if ids == "str" else "id"
    kinds: list[Kind] = [kind, kind] if weight_at is None else [kind, kind, "number"]
    columns = table.columns([*ends, *([] if weight_at is None else [weight_at])], kinds)
    release()
    if isinstance(table, TextTable) and table.names is None:
        _look_at_first(path, columns[0], columns[1])
    return Listing(columns[0], columns[1], None if weight_at is None else columns[2], file=path)


def _look_at_first(path: Path, *ends: Ids) -> None:
    """A first line of words that never come again is more likely a header than an edge: say what it is taken for."""
    if len(ends[0]) < 3 or not all(isinstance(ids, Coded) for ids in ends):
        return
    first = [str(id_at(ids, 0)) for ids in ends]
    times = [sum(int((ids.codes == ids.code(name)).sum()) for ids in ends if isinstance(ids, Coded)) for name in first]
    if times == [1, 1] and not any(is_number(name) for name in first):
        hint = "a header starts with 'source', 'node' or 'id'; or say source= and target="
        names = ", ".join(map(repr, first))
        warnings.warn(f"{path}:1: {names} is read as an edge, but neither comes again ({hint})", DemonetWarning, 5)


def edge_columns(
    table: Table, source: Column, target: Column, weight: Column | bool, skip: int | None = None
) -> tuple[list[int], int | None]:
    """Where the two ends and the weight stand: as the user says, by their usual names, or the first columns."""
    if table.width - (skip is not None) < 2:
        raise DemonetError("one column, where an edge has two ends", file=table.file, hint="blanks, tabs or commas")
    names = table.names or []
    free = [place for place in range(table.width) if place != skip]
    if source is None and target is None and not {"source", "target"} <= set(names):
        ends = free[:2]
    else:
        ends = [
            place_of(table, "source" if source is None else source, "source of an edge"),
            place_of(table, "target" if target is None else target, "target of an edge"),
        ]
    if weight is False:
        return ends, None
    if weight is not None and weight is not True:
        return ends, place_of(table, weight, "weight of an edge")
    if "weight" in names:
        return ends, names.index("weight")
    if weight is True or (table.names is None and source is None and target is None and len(free) > 2):
        if len(free) != 3:
            hint = "say which with source=, target= and weight=, as names or as places from 0"
            raise DemonetError(f"{table.width} columns, where an edge list has 2 or 3", file=table.file, hint=hint)
        return ends, next(place for place in free if place not in ends)
    return ends, None
