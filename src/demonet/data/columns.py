"""Kinds of attributes: what a column of a table or of ``x`` is, and numbers for all of them.

A table is encoded once, when it is read: numbers stay, missing ones become the median of the training table with a
column of 0 and 1 beside them, categories become columns of 0 and 1. What was learned is a :class:`Columns`, which is
stored with the model, so that another table is encoded in the same way.

The columns of ``x`` are then treated by their kind: counts (whole numbers, 0 or more, mostly 0) as tf-idf, other
numbers standardised, columns of 0 and 1 as they are. :func:`fitting_features` decides for a preset.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from demonet.data.ids import is_missing
from demonet.errors import DemonetError, DemonetWarning, Hint, warn

ValueKind = Literal["count", "number", "indicator"]
MAX_CATEGORIES = 50  # of one column
MAX_NAMES = 10  # so many texts may all be different and still be categories, not names
_SHOWN = 8  # columns named in a message
_COMMA = re.compile(r"[+-]?\d+,\d+(e[+-]?\d+)?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}([-/.])\d{1,2}\1\d{1,2}([T ].*)?|\d{1,2}([-/.])\d{1,2}\3\d{2,4}( .*)?|\d{1,2}:\d{2}(:.*)?")


@dataclass(frozen=True)
class Column:
    """What was learned about one column of a table.

    Attributes:
        name: Its name.
        kind: ``"count"``, ``"number"`` or ``"indicator"`` (0 and 1) for numbers; ``"category"``; or ``"unused"``.
        median: What replaces a missing number.
        missing: Whether values were missing, so that a column of 0 and 1 says where.
        categories: The categories, sorted; each is a column of 0 and 1.
    """

    name: str
    kind: Literal["count", "number", "indicator", "category", "unused"]
    median: float = 0.0
    missing: bool = False
    categories: tuple[str, ...] = ()

    @property
    def encoded(self) -> list[tuple[str, ValueKind]]:
        """The name and kind of each column of ``x`` that it becomes."""
        if self.kind == "unused":
            return []
        if self.kind == "category":
            found: list[tuple[str, ValueKind]] = [(f"{self.name}={value}", "indicator") for value in self.categories]
        else:
            found = [(self.name, self.kind)]
        return found + ([(f"{self.name} missing", "indicator")] if self.missing else [])


@dataclass(frozen=True)
class Columns:
    """The columns of a table of attributes, as learned from the training table.

    Attributes:
        columns: The columns in their order.
        named: Whether they have names; otherwise they are matched by position.
    """

    columns: tuple[Column, ...]
    named: bool

    @cached_property
    def encoded(self) -> list[tuple[str, ValueKind]]:
        """The name and kind of each column of ``x``."""
        return [pair for column in self.columns for pair in column.encoded]

    @property
    def names(self) -> list[str]:
        """The name of each column of ``x``."""
        return [name for name, _ in self.encoded]

    @property
    def kinds(self) -> list[ValueKind]:
        """The kind of each column of ``x``."""
        return [kind for _, kind in self.encoded]

    @property
    def sources(self) -> list[str]:
        """The names of the columns of the table that are used."""
        return [column.name for column in self.columns if column.kind != "unused"]

    @classmethod
    def learn(cls, table: Attributes) -> Self:
        """Recognise the columns of a table."""
        found = tuple(_learn(name, table.parse(place), table) for place, name in enumerate(table.names))
        if not any(column.kind != "unused" for column in found):
            problem = f"no column can be used as a feature: {_shown(table.names)}"
            raise DemonetError(problem, **table.where(None))
        missing = [column.name for column in found if column.missing]
        if missing:
            message = f"missing values in {_shown(missing)}: medians replace numbers, and a column says where"
            warn(DemonetWarning(message, **table.where(None)))
        return cls(found, table.named)

    def encode(self, table: Attributes) -> NDArray[np.float32]:
        """``[rows, columns]`` the table as numbers."""
        places = self._places(table)
        result = np.zeros((table.rows, len(self.encoded)), dtype=np.float32)
        at, unseen = 0, []
        for column, place in zip(self.columns, places, strict=True):
            if place is None:
                continue
            width = len(column.encoded)
            block = result[:, at : at + width]
            at += width
            parsed = table.parse(place)
            if column.kind == "category":
                texts = parsed.texts
                number = {value: i for i, value in enumerate(column.categories)}
                codes = np.array([-1 if text is None else number.get(text, -2) for text in texts], dtype=np.int64)
                block[codes >= 0, codes[codes >= 0]] = 1
                gone = codes == -1
                if (codes == -2).any():
                    rows = np.flatnonzero(codes == -2)
                    unseen.append(f"{texts[rows[0]]!r} in {column.name!r} ({rows.size} in total)")
            else:
                values = parsed.numbers(lambda row, text, name=column.name: _refuse(row, text, name, table))  # type: ignore[misc]
                gone = np.isnan(values)
                block[:, 0] = np.where(gone, column.median, values)
                _check_finite(block[:, 0], column.name, table)
            if column.missing:
                block[gone, width - 1] = 1
        if unseen:
            message = f"categories that training did not have count as none of them: {', '.join(unseen[:_SHOWN])}"
            warn(DemonetWarning(message, **table.where(None)))
        return result

    def absent(self) -> NDArray[np.float32]:
        """``[columns]`` the row of an item of which nothing is known."""
        row: list[float] = []
        for column in self.columns:
            numbers = [0.0] * len(column.encoded)
            if numbers and column.kind != "category":
                numbers[0] = column.median
            if numbers and column.missing:
                numbers[-1] = 1.0
            row += numbers
        return np.array(row, dtype=np.float32)

    def _places(self, table: Attributes) -> list[int | None]:
        """The position of each used column in another table; a missing one is an error."""
        used = [column.kind != "unused" for column in self.columns]
        if not (self.named and table.named):
            if len(table.names) != len(self.columns):
                problem = f"{len(table.names)} columns of attributes, but training had {len(self.columns)}"
                raise DemonetError(problem, **table.where(None))
            return [place if use else None for place, use in enumerate(used)]
        place = {name: number for number, name in reversed(list(enumerate(table.names)))}
        missing = [name for name in self.sources if name not in place]
        trained = {column.name for column in self.columns}
        unknown = [name for name in table.names if name not in trained]
        if missing:
            named = (("missing", missing), ("not in training", unknown))
            problems = "; ".join(f"{what}: {_shown(names)}" for what, names in named if names)
            raise DemonetError(f"the columns differ from training ({problems})", **table.where(None))
        if unknown:
            warn(
                DemonetWarning(
                    f"columns that training did not have are ignored: {_shown(unknown)}", **table.where(None)
                )
            )
        order = [place[name] for name in self.sources]
        if order != sorted(order):
            warn(DemonetWarning("columns reordered as in training", **table.where(None)))
        return [place[column.name] if use else None for column, use in zip(self.columns, used, strict=True)]

    def state(self) -> dict[str, Any]:
        """All that was learned, for JSON."""
        return {"named": self.named, "columns": [asdict(column) for column in self.columns]}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The inverse of :meth:`state`."""
        columns = (Column(**{**column, "categories": tuple(column["categories"])}) for column in state["columns"])
        return cls(tuple(columns), bool(state["named"]))


class Attributes:
    """The attribute columns of a table, as Arrow arrays.

    Args:
        names: The name of each column.
        columns: The columns.
        named: Whether the names are those of the table, and not made up.
        file: The file, for messages.
        line: Gives the line of a row, for messages.
        text: Gives a column as it is written: its type may be recognised, so that ``01`` is 1. Default: cast to text.
    """

    def __init__(
        self,
        names: Sequence[str],
        columns: Sequence[Any],
        *,
        named: bool = True,
        file: Path | None = None,
        line: Callable[[int], int | None] | None = None,
        text: Callable[[int], list[str | None]] | None = None,
    ) -> None:
        self.names, self.columns, self.named, self.file, self._line = list(names), list(columns), named, file, line
        self._text = text
        self.rows = len(columns[0]) if columns else 0
        self._parsed: dict[int, _Parsed] = {}

    def where(self, row: int | None) -> dict[str, Any]:
        """The file, and the line of a row, for a message."""
        return {"file": self.file, "line": None if row is None or self._line is None else self._line(row)}

    def parse(self, place: int) -> _Parsed:
        """The values of a column; parsed once."""
        if place not in self._parsed:
            text = None if self._text is None else partial(self._text, place)
            self._parsed[place] = _Parsed(self.columns[place], text)
        return self._parsed[place]


class _Parsed:
    """The values of an Arrow column: numbers, dates or texts."""

    def __init__(self, column: Any, text: Callable[[], list[str | None]] | None = None) -> None:
        import pyarrow as pa

        self._text = text
        kind = column.type
        if pa.types.is_dictionary(kind):
            column, kind = column.cast(kind.value_type), kind.value_type
        self._column = column
        self._values: NDArray[np.float64] | None = None
        self._texts: list[str | None] | None = None
        self.is_date = bool(pa.types.is_temporal(kind))
        self.is_flag = bool(pa.types.is_boolean(kind))
        self.is_empty = column.null_count == len(column)
        self.type = str(kind)
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        if numeric or self.is_flag or self.is_empty:
            numbers = column.cast(pa.int8()) if self.is_flag else column
            self._values = numbers.cast(pa.float64(), safe=False).to_numpy().astype(np.float64)
            self.is_empty = bool(np.isnan(self._values).all())
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            self._texts = [None if is_missing(text) else text.strip() for text in column.to_pylist()]
            known = [text for text in self._texts if text is not None]
            self.is_empty = not known
            self.is_date = bool(known) and all(_DATE.fullmatch(text) for text in known)
            self.share = float(np.mean([as_number(text) is not None for text in known])) if known else 0.0
            if self.share == 1.0 and not self.is_date:
                self._values = self.numbers(None)

    share = 1.0  # of the values that are numbers

    @property
    def readable(self) -> bool:
        """Whether the type is one that can be a feature."""
        return self._values is not None or self._texts is not None or self.is_date

    @property
    def all_numbers(self) -> NDArray[np.float64] | None:
        """The values, NaN for missing, if all are numbers."""
        return self._values

    @property
    def texts(self) -> list[str | None]:
        """The values as text."""
        if self._texts is None:
            import pyarrow as pa

            values = self._column.cast(pa.string()).to_pylist() if self._text is None else self._text()
            self._texts = [None if text is None or is_missing(text) else text.strip() for text in values]
        return self._texts

    def numbers(self, refuse: Callable[[int, str], None] | None) -> NDArray[np.float64]:
        """The values as numbers, NaN for missing; ``refuse`` is called with the first that is none."""
        if self._values is not None:
            return self._values
        result = np.full(len(self.texts), np.nan)
        for row, text in enumerate(self.texts):
            value = None if text is None else as_number(text)
            if value is not None:
                result[row] = value
            elif text is not None and refuse is not None:
                refuse(row, text)
        return result


def as_number(text: str) -> float | None:
    """A number with a decimal point or comma; None for any other text.

    >>> as_number("1.5"), as_number("-1,5"), as_number("1,234,567"), as_number("x")
    (1.5, -1.5, None, None)
    """
    try:
        return float(text.replace(",", ".") if _COMMA.fullmatch(text) else text)
    except ValueError:
        return None


def _learn(name: str, parsed: _Parsed, table: Attributes) -> Column:
    where = table.where(None)
    out = Hint("{ignore} leaves the column out", ignore=name)
    if parsed.is_empty:
        warn(DemonetWarning(f"column {name!r} is empty and not used", **where))
        return Column(name, "unused")
    if parsed.is_date:
        hint = Hint("write it as a number, such as a year or an age; {ignore} leaves the column out", ignore=name)
        raise DemonetError(f"column {name!r} has dates, which are not features", **where, hint=hint)
    if not parsed.readable:
        raise DemonetError(f"column {name!r} has type {parsed.type}", **where, hint=out)
    values = parsed.all_numbers
    if values is None and parsed.share >= 0.5:  # numbers with some mistakes among them
        values = parsed.numbers(lambda row, text: _refuse(row, text, name, table))
    if values is not None:
        known = values[~np.isnan(values)]
        _check_finite(values.astype(np.float32), name, table)
        kind: ValueKind = "indicator" if parsed.is_flag else column_kinds(known[:, None])[0]
        return Column(name, kind, float(np.median(known)), missing=known.size < values.size)
    texts = [text for text in parsed.texts if text is not None]
    categories = sorted(set(texts))
    if len(categories) > MAX_CATEGORIES or len(categories) == len(texts) > MAX_NAMES:
        what = f"more than {MAX_CATEGORIES}" if len(categories) > MAX_CATEGORIES else "all different"
        message = f"column {name!r} has {len(categories)} categories, {what}: it is not used"
        warn(DemonetWarning(message, **where))
        return Column(name, "unused")
    return Column(name, "category", missing=len(texts) < len(parsed.texts), categories=tuple(categories))


def _refuse(row: int, text: str, name: str, table: Attributes) -> None:
    hint = Hint("correct it or leave the cell empty; {ignore} leaves the column out", ignore=name)
    raise DemonetError(f"{text[:60]!r} is not a number, in column {name!r}", **table.where(row), hint=hint)


def _check_finite(values: NDArray[np.float32], name: str, table: Attributes) -> None:
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise DemonetError(f"{values[row]} in column {name!r}", **table.where(row), hint="numbers must be finite")


def _shown(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(repr(name) for name in names[:_SHOWN]) + rest


def column_kinds(x: NDArray[Any]) -> list[ValueKind]:
    """The kind of each column of a dense matrix.

    ``"count"``: whole numbers, 0 or more, and at least half of them 0; ``"indicator"``: only 0 and 1, mostly 1;
    ``"number"``: anything else.
    """
    kinds: list[ValueKind] = []
    for column in x.T:
        if not ((column >= 0) & (column == np.round(column))).all():
            kinds.append("number")
        elif 2 * np.count_nonzero(column) <= len(column):
            kinds.append("count")
        else:
            kinds.append("indicator" if column.max(initial=0) <= 1 else "number")
    return kinds


MatrixKind = Literal["none", "labels", "counts", "weights", "numbers"]


def matrix_kind(graphs: Iterable[Data]) -> MatrixKind:
    """What the attributes ``x`` of graphs are, taken together.

    ``"none"``: there are none. ``"labels"``: rows with at most a single 1, as node labels are. ``"counts"``: whole
    numbers, 0 or more, and mostly 0, as words of a text are; sparse storage counts as mostly 0. ``"weights"``: other
    numbers, 0 or more, at least three quarters 0, in 32 columns or more of about the same scale: words that were
    weighted before, as by dividing rows by their sum or by tf-idf. ``"numbers"``: anything else.
    """
    graphs = list(graphs)
    labels, whole, nonzero, size, is_sparse = True, True, 0, 0, False
    for graph in graphs:
        if graph.x is None or graph.x.size(1) == 0:
            return "none"
        x = graph.x.detach()
        values = x if x.layout == torch.strided else x.values()
        if (table := graph.get("columns")) is not None:  # of which every column has a kind
            if set(table.kinds) == {"count"}:
                return "counts"
            if "indicator" in table.kinds:
                return "numbers"
        parts = values.split(2**17)
        if any(bool(((part < 0) | part.isnan()).any()) for part in parts):
            return "numbers"
        whole = whole and not any(bool((part != part.round()).any()) for part in parts)
        is_sparse |= x.layout != torch.strided
        nonzero, size = nonzero + int(values.count_nonzero()), size + x.numel()
        if not whole and 4 * nonzero > size:
            return "numbers"
        labels = labels and whole and (values.numel() == 0 or int(values.max()) <= 1) and int(_row_sums(x).max()) <= 1
    if not whole:
        return "weights" if _one_scale([graph.x.detach() for graph in graphs]) else "numbers"
    if any(graph.get("columns") is not None for graph in graphs):
        return "numbers"
    return "labels" if labels else "counts" if is_sparse or 2 * nonzero <= size else "numbers"


WORDS, SCALES = 32, 20.0  # fewest columns; of the means of nine in ten of them, the largest by the smallest


def _one_scale(matrices: Sequence[Tensor]) -> bool:
    """Whether many columns have entries of about the same scale; zeros do not count."""
    total, count = torch.zeros(2, max(x.size(1) for x in matrices), dtype=torch.float64)
    for x in matrices:
        for part in x.split(2**14) if x.layout == torch.strided else [x]:
            column, value = _entries(part)
            total.index_add_(0, column, value)
            count.index_add_(0, column, torch.ones_like(value))
    mean = (total / count)[count > 0]
    if mean.numel() < WORDS:
        return False
    low, high = mean.quantile(torch.tensor([0.05, 0.95], dtype=mean.dtype)).tolist()
    return high <= SCALES * low


def _entries(x: Tensor) -> tuple[Tensor, Tensor]:
    """The columns and values of the entries that are not zero, on the CPU."""
    if x.layout != torch.strided:
        return x.col_indices().long().cpu(), x.values().double().cpu()
    place = x.nonzero(as_tuple=True)
    return place[1].cpu(), x[place].double().cpu()


def fitting_features(spec: str, graphs: Sequence[Data]) -> str:
    """The blocks of a preset for these attributes: tf-idf is for counts alone, other columns are treated by their kind.

    Args:
        spec: Names of blocks, see :class:`~demonet.features.FeatureMap`.
        graphs: The graphs, with attributes or without.
    """
    if matrix_kind(graphs) != "numbers":
        return spec
    names = ["columns" if name in ("tfidf", "attributes") else name for name in spec.split("+")]
    return "+".join(dict.fromkeys(name for name in names if name != "neighbour-tfidf"))


def _row_sums(x: Tensor) -> Tensor:
    if x.layout == torch.strided:
        return x.sum(1) if x.numel() else x.new_zeros(1)
    rows = torch.repeat_interleave(torch.arange(x.size(0), device=x.device), x.crow_indices().diff())
    return torch.zeros(max(1, x.size(0)), device=x.device).index_add_(0, rows, x.values().float())
