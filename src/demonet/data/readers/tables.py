"""Tables: columns of ids, numbers or text, and tables whose rows are edges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from demonet.data.ids import Coded, Ids, id_at
from demonet.data.readers.base import Listing, ReadOptions
from demonet.data.values import (
    as_number,
    is_integer,
    is_missing,
    is_number,
    looks_like_time,
    read_numbers,
    tell_marks,
)
from demonet.errors import DemonetError, DemonetWarning, Hint, warn
from demonet.options import Column, Decimal

_ENDS = [("source", "target"), ("src", "dst"), ("from", "to"), ("von", "nach"), ("citing", "cited")]
_FIRST_NAMES = {"source", "src", "from", "node", "node_id", "id", "graph", "graph_id"}
_NAMES = {"source", "target", "node", "node_id"}  # at any place
MAX_COLUMNS = 100_000
SAMPLE = 50  # rows that decide on the separator, on the header, and on what a column has
_FEW = 20  # values of a column that is rather a category than an end of an edge
Kind = Literal["id", "int id", "str id", "number", "text"]
_ID_KINDS: dict[str, Kind] = {"auto": "id", "int": "int id", "str": "str id"}


class Table(ABC):
    """The columns of a file or a data frame, by position.

    Attributes:
        file: The file, if there is one.
        names: The column names, if there is a header.
        header_row: Whether names are the first row, so that it may be one of the values.
        width: The number of columns.
        guessed: Whether the header was recognised by its content alone.
        decimal: The decimal mark of numbers that are text; None to recognise it.
        twins: By position, two values of a column that differ only in their type, such as ``1 and '1'``.
    """

    file: Path | None = None
    names: list[str] | None = None
    header_row: bool = False
    width: int
    guessed: bool = False
    decimal: Decimal | None = None
    twins: Mapping[int, str] = MappingProxyType({})

    @abstractmethod
    def arrow(self, places: Sequence[int]) -> Iterator[Any]:
        """The columns at these positions as Arrow arrays, as they are written, null for empty cells; none is kept."""

    def values(self, places: Sequence[int]) -> list[Any]:
        """The columns at these positions as Arrow arrays with the types of their values."""
        return list(self.arrow(places))

    def line(self, row: int) -> int | None:
        """The line of the file that holds a row, if the file has lines."""
        return None

    def take_header(self) -> None:
        """Read the first row as a header, because no edge has its id."""
        self.use_header()
        first = ", ".join(self.names or [])
        warn(DemonetWarning(f"{first!r} is read as a header, because no edge has its id", file=self.file))

    def use_header(self) -> None:
        """Take names from the first row; only for tables in which it may have them."""
        raise NotImplementedError

    def drop_header(self) -> None:
        """Read the header as the first row."""
        raise NotImplementedError

    def error(self, problem: str, row: int, hint: str | None = None) -> DemonetError:
        """An error that names the line of a row, or the row."""
        line = self.line(row)
        problem = f"{problem}, row {row}" if line is None else problem
        return DemonetError(problem, file=self.file, line=line, hint=hint)

    def sample(self, place: int) -> list[str]:
        """The first values of a column as text, without missing ones."""
        return [str(value) for value in next(self.arrow([place]))[:SAMPLE].to_pylist() if not is_missing(value)]

    def described(self, places: Sequence[int]) -> str:
        """Columns with some of their values, for a question to the user."""
        shown = (f"{self.named(place)} ({', '.join(dict.fromkeys(self.sample(place)[:3]))}, ...)" for place in places)
        return "; ".join(islice(shown, 12))

    def named(self, place: int) -> str:
        """A column by its name, or by its number from 1 on."""
        return f"column {place + 1}" if self.names is None else f"column {self.names[place]!r}"

    def columns(self, places: Sequence[int], kinds: Sequence[Kind]) -> list[Any]:
        """The columns at these positions: `Ids` for an id, float64 for a number, a list of str or None for text."""
        found: list[Any] = []
        for place in places:
            if places.count(place) > 1:
                raise DemonetError(f"{self.named(place)} is used twice", file=self.file, hint="name two columns")
        arrow = self.arrow(places)
        for place, kind in zip(places, kinds, strict=True):
            column = next(arrow)
            if kind != "number" and place in self.twins:
                problem = f"values that differ only in their type, such as {self.twins[place]}, in {self.named(place)}"
                raise DemonetError(problem, file=self.file)
            if kind != "text" and column.null_count:
                raise self.error(f"{self.named(place)} is empty", _first(column.is_null().to_numpy()))
            values = self._converted(column, kind, place)
            del column  # Arrow's copy, before the next column is read
            release()
            if kind == "number" and not np.isfinite(values).all():
                row = _first(~np.isfinite(values))
                raise self.error(f"{values[row]} in {self.named(place)}", row, "numbers must be finite")
            found.append(values)
        found = join_strings(found)
        for place, ids in zip(places, found, strict=True):
            if isinstance(ids, Coded) and (blank := ids.codes == ids.code("")).any():
                raise self.error(f"{self.named(place)} is blank", _first(blank))
        return found

    def _converted(self, column: Any, kind: Kind, place: int) -> Any:
        """An Arrow column without nulls (unless text) as integer ids, numbers or text; string ids are a dictionary."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        text = is_text(column.type)
        if pa.types.is_nested(column.type):
            hint = "use one value a cell; for several labels, a column of 0 and 1 for each"
            raise DemonetError(f"lists or records in {self.named(place)}", file=self.file, hint=hint)
        try:
            if kind == "text":
                return pc.utf8_trim_whitespace(column.cast(pa.large_string())).to_pylist()
            if kind == "number":
                return self._numbers(column, place) if text else column.cast(pa.float64()).to_numpy()
            if kind == "id" and text and (numbers := _as_integers(column)) is not None:
                return numbers
            if kind == "int id" and text:
                return self._integers(column, place)
            if pa.types.is_integer(column.type) and kind != "str id":
                return column.cast(pa.int64()).to_numpy()
            if kind == "int id" or not (pa.types.is_integer(column.type) or text):
                problem = f"node ids have type {column.type}, in {self.named(place)}"
                raise DemonetError(problem, file=self.file, hint="use integers or strings")
            return column.cast(pa.string()).dictionary_encode()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DemonetError(f"a column cannot be read: {error}", file=self.file) from None

    def _integers(self, column: Any, place: int) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            return pc.utf8_trim_whitespace(column).cast(pa.int64()).to_numpy()
        except pa.ArrowInvalid:
            texts = enumerate(column.to_pylist())
            row, text = next((row, text) for row, text in texts if not is_integer(text))
            raise self._no_number(f"{short(text.strip())} is not an integer, in {self.named(place)}", row) from None

    def _numbers(self, column: Any, place: int) -> Any:
        """Texts as numbers, with the decimal mark that fits all of them."""
        import pyarrow as pa

        if self.decimal != ",":
            with suppress(pa.ArrowInvalid):
                return column.cast(pa.float64()).to_numpy()
        texts = column.to_pylist()
        values, _, marked = read_numbers(texts, self.named(place), decimal=self.decimal, file=self.file)
        for row in np.flatnonzero(np.isnan(values)).tolist():
            if not is_number(texts[row]):  # nan is a number, but not a finite one
                raise self._no_number(f"{short(texts[row].strip())} is not a number, in {self.named(place)}", row)
        tell_marks([self.named(place)] if marked else [], self.file)
        return values

    def _no_number(self, problem: str, row: int) -> DemonetError:
        """The error of a cell; the first line may be a header that was not recognised."""
        first = [str(value) for value in self.first_row()] if row == 0 and self.names is None else []
        template = "if this line is a header, name the columns: {source} {target}"
        hint = Hint(template, source=first[0], target=first[1]) if len(first) > 1 else None
        return self.error(problem, row, hint)

    def first_row(self) -> Sequence[Any]:
        """The first row."""
        return [column[0].as_py() for column in self.arrow(range(self.width))]


def usual_header(fields: Sequence[str]) -> bool:
    """Whether a line has usual names of columns: for the ends of an edge, or for a node or a graph."""
    names = [field.lower() for field in fields]
    return names[0] in _FIRST_NAMES or not _NAMES.isdisjoint(names) or any({u, v} <= set(names) for u, v in _ENDS)


def may_be_header(fields: Sequence[Any]) -> bool:
    """Whether a line may have names of columns: texts, none of which is missing, a number, a date or a time."""
    words = [field for field in fields if isinstance(field, str) and not is_missing(field) and not has_numbers([field])]
    return len(words) == len(fields) and not any(map(looks_like_time, words))


def values_below(columns: Sequence[Any], words: bool, marks: bool) -> bool:
    """Whether a line of words above these columns is a header, because below there are values.

    There are integers in the first column, unless ids are known to be ``words``, or numbers, dates or times in another.
    With words alone, the first line may be an edge like the others.

    Args:
        columns: Arrow arrays of the types that were recognised.
        words: Whether ids are known to be strings.
        marks: Whether numbers may have decimal commas.
    """
    import pyarrow as pa

    def has_values(column: Any) -> bool:
        kind = column.type
        if is_text(kind) and marks:
            return has_numbers([text.strip() for text in column.to_pylist() if text is not None])
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind))

    first, *others = columns
    whole = not words and pa.types.is_integer(first.type) and first.null_count == 0
    return whole or any(map(has_values, others))


def check_width(count: int, what: str = "columns", *, file: Path | None = None, line: int | None = None) -> None:
    """Refuse a table that is too wide to be read as one."""
    if count > MAX_COLUMNS:
        hint = "store wide features as a sparse .npz or .mtx"
        raise DemonetError(f"{count:,} {what}, more than {MAX_COLUMNS:,}", file=file, line=line, hint=hint)


def check_names(names: Sequence[str], file: Path | None, line: int | None = None) -> None:
    """Refuse two columns of one name."""
    seen: set[str] = set()
    for name in filter(None, names):
        if name in seen:
            raise DemonetError(f"two columns are called {name!r}", file=file, line=line, hint="rename one of them")
        seen.add(name)


def _first(mask: np.ndarray) -> int:
    return int(np.flatnonzero(mask)[0])


def short(text: str) -> str:
    """A text for a message."""
    return repr(text[:60]) + ("..." if len(text) > 60 else "")


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


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is text."""
    import pyarrow.types as types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def edge_columns(table: Table, options: ReadOptions, skip: int | None = None) -> list[int]:
    """The positions of source, target and, if there is one, weight: as given, by usual names, or the first columns."""
    source, target, weight = options.source, options.target, options.weight
    if table.width - (skip is not None) < 2:
        hint = "separate columns with commas, semicolons, tabs, vertical bars or blanks"
        raise DemonetError("one column, but an edge needs a source and a target", file=table.file, hint=hint)
    names = table.names or []
    free = [place for place in range(table.width) if place != skip]
    if source is None and target is None:
        ends = _usual_ends(table) or free[:2]
        if any(_is_measure(table, place) for place in ends):
            raise _which_ends(table, [place for place in free if not _is_measure(table, place)])
    else:
        ends = [
            place_of(table, "source" if source is None else source, "source"),
            place_of(table, "target" if target is None else target, "target"),
        ]
    if weight is False:
        return ends
    if weight is not None and weight is not True:
        return [*ends, place_of(table, weight, "weight")]
    if "weight" in names:
        return [*ends, names.index("weight")]
    if weight is True or (table.names is None and source is None and target is None and len(free) > 2):
        if len(free) != 3:
            template = "name the columns with {source}, {target} and {weight}, by name or by position from 0"
            hint = Hint(template, source=..., target=..., weight=...)
            raise DemonetError(f"{table.width} columns, but an edge list has 2 or 3", file=table.file, hint=hint)
        return [*ends, next(place for place in free if place not in ends)]
    return ends


def read_edges(table: Table, options: ReadOptions) -> Listing:
    """The edges of a table."""
    table.decimal = options.decimal
    unnamed = options.source is None and options.target is None
    guessed = unnamed and not _usual_ends(table)
    places, columns = _edges(table, options)
    doubtful = unnamed and table.header_row and options.header is None and isinstance(columns[0], Coded)
    if doubtful and table.names is not None:
        if _header_is_edge(table, places, columns):
            table.drop_header()
            places, columns = _edges(table, options)
        else:
            table.guessed = table.guessed or guessed
    if table.guessed and table.names is not None:
        hint = Hint("{header} reads it as an edge", header=False)
        warn(DemonetWarning(f"{', '.join(table.names)!r} is read as a header", file=table.file, hint=hint))
    if options.weight is None:
        tell_unused(table, places, _weight_hint(table, places))
    if table.names is None:
        _check_first_edge(table.file, columns[0], columns[1])
    elif guessed and table.width > len(places):
        _check_values(table, places, columns)
    return Listing(columns[0], columns[1], columns[2] if len(places) > 2 else None, file=table.file)


def _edges(table: Table, options: ReadOptions) -> tuple[list[int], list[Any]]:
    places, kind = edge_columns(table, options), _ID_KINDS[options.ids]
    return places, table.columns(places, [kind, kind, "number"][: len(places)])


def _header_is_edge(table: Table, places: Sequence[int], ends: Sequence[Any]) -> bool:
    """Whether the line that was taken for a header is an edge between words: another edge has one of them.

    It is none if a third field is no number: a line without a header has a weight there.
    """
    names = [(table.names or [])[place] for place in places[:2]]
    if not has_numbers([name for place, name in enumerate(table.names or []) if place not in places[:2]]):
        return False
    again = next((name for name in names for ids in ends[:2] if isinstance(ids, Coded) and ids.code(name) >= 0), None)
    if again is None:
        return False
    problem = f"{', '.join(names)!r} is read as an edge, because {again!r} is a node of other edges"
    warn(DemonetWarning(problem, file=table.file, hint=Hint("{header} reads it as a header", header=True)))
    return True


def _usual_ends(table: Table) -> list[int]:
    """The columns with usual names for the ends of an edge."""
    names = [name.casefold() for name in table.names or []]
    return next(([names.index(u), names.index(v)] for u, v in _ENDS if u in names and v in names), [])


def _is_measure(table: Table, place: int) -> bool:
    """Whether a column has dates or times or, beside other columns, decimals: these are never the end of an edge."""
    texts = table.sample(place)
    decimals = table.width > 2 and any("." in text or "," in text for text in texts)
    numbers = decimals and has_numbers(texts)
    return numbers or (bool(texts) and all(map(looks_like_time, texts)))


def _check_values(table: Table, places: Sequence[int], columns: Sequence[Any]) -> None:
    """Refuse to guess that a column of few values, such as a category, is the end of an edge."""
    counts = [np.unique(ids.codes if isinstance(ids, Coded) else ids).size for ids in columns[:2]]
    few = int(np.argmin(counts))
    if len(columns[0]) >= 100 and counts[few] <= _FEW and counts[few] * 10 < counts[1 - few]:
        raise _which_ends(table, [place for place in range(table.width) if place != places[few]])


def _which_ends(table: Table, likely: Sequence[int]) -> DemonetError:
    problem = f"which columns have the two ends of an edge? {table.described(range(table.width))}"
    if len(likely) < 2:
        return DemonetError(problem, file=table.file)
    source, target = (place if table.names is None else table.names[place] for place in likely[:2])
    return DemonetError(
        problem, file=table.file, hint=Hint("name them: {source} {target}", source=source, target=target)
    )


def tell_unused(table: Table, used: Sequence[int], hint: Hint | None = None) -> None:
    """Warn of named columns that are not read, with what would read them."""
    left = [name for place, name in enumerate(table.names or []) if place not in used]
    if left:
        shown = ", ".join(map(repr, left[:5])) + (", ..." if len(left) > 5 else "")
        warn(DemonetWarning(f"not used: {shown}", file=table.file, hint=hint))


def _weight_hint(table: Table, used: Sequence[int]) -> Hint | None:
    """The first column of numbers that an edge list has beside the two ends may be the weight."""
    left = (place for place in range(table.width) if table.names and place not in used and len(used) == 2)
    name = next((table.names[place] for place in left if table.names and has_numbers(table.sample(place))), None)
    return None if name is None else Hint("{weight} reads weights from a column", weight=name)


def has_numbers(texts: Sequence[str]) -> bool:
    """Whether all texts are numbers, with one decimal mark or the other."""
    return all(as_number(text) is not None or as_number(text, ",") is not None for text in texts)


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


def id_place(table: Table, column: Column | None) -> int:
    """The position of the ids: as given, by a usual name, or the first column."""
    names = [name.lower() for name in table.names or []]
    usual = next((place for place, name in enumerate(names) if name in ("node", "node_id", "id", "graph")), None)
    if column is not None and (usual is None or isinstance(column, int) or column in (table.names or [])):
        return place_of(table, column, "id_column")
    return usual or 0
