"""Labels and features that users give for ids: tables, mappings, sequences and matrices."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from demonet.data.columns import Attributes, Columns
from demonet.data.ids import (
    Ids,
    LabelTable,
    Numbering,
    encode_classes,
    id_at,
    make_ids,
    warn_of_codes,
    warn_of_forms,
    without_missing,
)
from demonet.data.readers.arrow import RecordTable
from demonet.data.readers.base import ReadOptions
from demonet.data.readers.tables import Kind, Table, id_place, place_of
from demonet.data.rows import to_scipy, to_torch
from demonet.data.values import (
    as_integer,
    as_number,
    is_missing,
    is_number,
    is_plain,
    measures,
    read_numbers,
    tell_marks,
)
from demonet.errors import DemonetError, DemonetWarning, Hint, warn

_LABEL_NAMES = ("label", "labels", "class", "klasse", "target", "y")


class _ById:
    """What users give for ids, and the table or file that it comes from."""

    def __init__(self, ids: Ids, table: Table | None = None, file: Path | None = None) -> None:
        self.ids, self.table, self.file = ids, table, file if table is None else table.file

    def where(self, row: int) -> dict[str, Any]:
        """The file and line of a row, for an error."""
        return {"file": self.file, "line": None if self.table is None else self.table.line(row)}


class Labels(_ById):
    """Labels by id, and all label columns of a table that has several.

    Attributes:
        labels: One label per id, None for unlabelled.
        columns: The label columns of a table, as text.
        names: Their names, if they have names.
        word: The error of a single column of numbers that measure, in which a few cells are words.
        used: The positions of ids and labels in the table.
    """

    word: DemonetError | None = None
    used: Sequence[int] = ()

    def __init__(
        self, ids: Ids, labels: list[Any], table: Table | None = None, columns: list[list[str | None]] | None = None
    ) -> None:
        super().__init__(ids, table)
        self.columns, self.names = columns or [], list[str]()
        self.labels = without_missing(labels, file=self.file)

    @classmethod
    def read(cls, table: Table, numbering: Numbering, options: ReadOptions) -> Self:
        """A table of ids and labels; a label that is empty or a word such as ``NA`` means unlabelled."""
        at = id_place(table, options.id_column)
        if options.label_column is None:
            places = [place for place in range(table.width) if place != at]
            usual = [place for place in places if table.names and table.names[place].lower() in _LABEL_NAMES]
            places = usual if len(usual) == 1 else places
        else:
            places = [place_of(table, options.label_column, "label_column")]
        _check_width(table, places, "labels")
        ids, *columns = _columns_by_id(table, numbering, options, at, places)
        if options.label_column is None and table.names is not None and len(places) > 1:
            _check_numbers(table, places, columns)
        told = [table.named(place) for place in places]
        numbers = [
            read_numbers(column, name, decimal=options.decimal, file=table.file)
            for column, name in zip(columns, told, strict=True)
        ]
        columns = [
            _with_points(column, *read, name, table.file)
            for column, read, name in zip(columns, numbers, told, strict=True)
        ]
        labels = columns[0]
        if all(is_missing(label) or as_integer(label) is not None for label in labels):
            labels = [label if is_missing(label) else int(label) for label in labels]
        found = cls(ids, labels, table, columns)
        found.used = [at, *places]
        for row, label in enumerate(found.labels if options.check_label else ()):
            if label is not None and (problem := options.check_label(label)):  # type: ignore[misc]
                raise DemonetError(problem, **found.where(row))
        found.names = [] if table.names is None else [table.names[place] for place in places]
        if len(columns) == 1 and (first := _word(*numbers[0][:2])) is not None:
            problem = f"{columns[0][first]!r} is not a number, in {told[0]}"
            hint = Hint("a number, or empty for unknown; {task} treats all as classes", task="classify")
            found.word = DemonetError(problem, **found.where(first), hint=hint)
        return found

    @property
    def name(self) -> str | None:
        """The name of the column of labels, if it has one."""
        return self.names[0] if self.names else None

    def encode(self, numbering: Numbering) -> tuple[Tensor, list[Any]]:
        """The class index of each node, -1 for unlabelled, and the class names in order."""
        codes, names = encode_classes(self.labels)
        if len(self.columns) < 2:  # in several columns of 0 and 1, -1 is unknown
            warn_of_codes(names, file=self.file)
            warn_of_forms(names, "labels", words=True, file=self.file)
        rows = np.flatnonzero(codes >= 0)
        numbers, codes = numbering.find(self.ids)[rows], codes[rows]
        y = np.full(numbering.node_ids.size, -1, dtype=np.int64)
        y[numbers[::-1]] = codes[::-1]  # the first label of a node wins
        clash = np.flatnonzero(y[numbers] != codes)
        if clash.size:
            row = int(rows[clash[0]])
            first, second = names[y[numbers[clash[0]]]], self.labels[row]
            problem = f"{id_at(self.ids, row)!r} is labelled {second!r}, but was labelled {first!r} before"
            raise DemonetError(problem, **self.where(row))
        _tell_repeated(len(self.ids) - np.unique(numbering.find(self.ids)).size, self.file)
        return torch.from_numpy(y), names

    def encode_table(self, numbering: Numbering) -> LabelTable | None:
        """All label columns by node; of a single one only the error, if a few words are among numbers that measure."""
        names = self.names or [f"label {number}" for number in range(1, len(self.columns) + 1)]
        if len(self.columns) < 2:
            return None if self.word is None else LabelTable(names, None, self.word)
        rows = np.full((len(self.labels), len(self.columns)), np.nan)
        for place, cells in enumerate(self.columns):
            for row, cell in enumerate(cells):
                if cell is None or is_missing(cell):
                    continue
                if not (is_number(cell) and abs(float(cell)) != np.inf):
                    problem = f"{cell!r} is not a number, in column {names[place]!r}"
                    return LabelTable(names, None, DemonetError(problem, **self.where(row)))
                rows[row, place] = float(cell)
        numbers = numbering.find(self.ids)
        values = np.full((numbering.node_ids.size, len(self.columns)), np.nan)
        values[numbers[::-1]] = rows[::-1]
        clash = np.flatnonzero(((values[numbers] != rows) & ~np.isnan(values[numbers] + rows)).any(1))
        if clash.size:
            row = int(clash[0])
            problem = f"{id_at(self.ids, row)!r} has other labels than before"
            return LabelTable(names, None, DemonetError(problem, **self.where(row)))
        return LabelTable(names, values)


def _word(values: NDArray[np.float64], wrong: NDArray[np.int64]) -> int | None:
    """The first row that has no finite number in a column of numbers that measure, at most half of which are none."""
    known, wrong = values[np.isfinite(values)], np.union1d(wrong, np.flatnonzero(np.isinf(values)))
    return int(wrong[0]) if wrong.size and wrong.size <= known.size and measures(known) else None


def _check_numbers(table: Table, places: list[int], columns: list[list[str | None]]) -> None:
    """Refuse to choose among several columns that are not all numbers: which of them are the labels?"""
    for column in columns:
        known = [text for text in column if text is not None and not is_missing(text)]
        words = sum(as_number(text) is None and as_number(text, ",") is None for text in known)
        if 2 * words > len(known):  # fewer are mistakes, of which an error names the first
            guess = (table.names or [])[_likeliest(columns, places)]
            hint = Hint("name it: {label_column}", label_column=guess)
            raise DemonetError(f"which column has the labels? {table.described(places)}", file=table.file, hint=hint)


def _likeliest(columns: list[list[str | None]], places: list[int]) -> int:
    """The column that looks most like labels: values that come again, not all known if there is such one, and few."""

    def unlike(column: list[str | None]) -> tuple[bool, bool, int]:
        known = [text for text in column if text is not None and not is_missing(text)]
        kinds = len(set(known))
        return not 2 <= kinds < len(known), len(known) == len(column), kinds

    return min(zip(places, columns, strict=True), key=lambda pair: (unlike(pair[1]), -pair[0]))[0]


def _with_points(
    column: list[str | None], values: NDArray[np.float64], wrong: NDArray[np.int64], marked: bool, name: str, file: Any
) -> list[str | None]:
    """A column of numbers with decimal commas or thousands separators in plain form; any other column as it is."""
    if wrong.size or not marked:
        return column
    tell_marks([name], file)
    return [text if text is None or is_plain(text, n) else f"{n:.15g}" for text, n in zip(column, values, strict=True)]


def from_mapping(labels: Any) -> Labels:
    """A dict, a pandas Series, or anything with ``items()``, from id to label."""
    pairs = list(labels.items())
    return Labels(make_ids(key for key, _ in pairs), [value for _, value in pairs])


def from_sequence(labels: Any, nodes: Ids, name: str | None = None) -> Labels:
    """One label per node, in the order of the nodes; in a tensor of integers, -1 is unlabelled."""
    if isinstance(labels, Tensor):
        integers = not labels.is_floating_point()
        labels = labels.tolist()
        labels = [None if integers and label == -1 else label for label in labels]
    if isinstance(labels, np.ndarray) and labels.ndim != 1:
        raise DemonetError(f"labels of shape {labels.shape} for {len(nodes)} nodes", hint="pass one label per node")
    labels = list(labels)  # a label may itself be a sequence, such as a tuple
    if len(labels) != len(nodes):
        raise DemonetError(f"{len(labels)} labels for {len(nodes)} nodes", hint="pass one label per node")
    found = Labels(nodes, labels)
    found.names = [] if name is None else [name]
    return found


class FeatureRows(_ById):
    """Rows of features by id.

    Attributes:
        rows: A NumPy array or a SciPy sparse matrix, one row per id.
        columns: What the columns of a table are; None for a matrix.
    """

    def __init__(
        self,
        ids: Ids,
        rows: Any,
        table: Table | None = None,
        file: Path | None = None,
        columns: Columns | None = None,
    ) -> None:
        super().__init__(ids, table, file)
        self.rows, self.columns = rows, columns

    @classmethod
    def read(cls, table: Table, numbering: Numbering, options: ReadOptions, labels: Collection[Any] = ()) -> Self:
        """A table of ids and values, encoded as ``options.columns`` says, or as the table itself does.

        Columns that are called like one of the ``labels``, in small letters, are left out: they would tell the answer.
        So are columns without a name in a table with names, such as the row numbers that pandas writes.
        """
        at, known = id_place(table, options.id_column), options.columns.sources if options.columns is not None else ()
        (ids,) = _columns_by_id(table, numbering, options, at, ())
        left_out = {at}
        if options.columns is None:
            left_out |= {place_of(table, column, "ignore") for column in options.ignore or ()}
        if isinstance(options.label_column, int):
            left_out.add(place_of(table, options.label_column, "label_column"))
        names = {place: name for place, name in enumerate(table.names or ()) if place not in left_out}
        names = {place: name for place, name in names.items() if name not in known}
        taken = [place for place, name in names.items() if name.casefold() in labels]
        unnamed = [place for place, name in names.items() if not name]
        left_out.update(taken, unnamed)
        told = [table.named(place) for place in taken if names[place] != options.label_column]
        if told and options.columns is None:
            problem = f"not used, because the labels have this name: {', '.join(told)}"
            warn(DemonetWarning(problem, file=table.file, hint="rename it if it is an attribute"))
        if unnamed and options.columns is None:
            problem = f"not used, because it has no name: column {unnamed[0] + 1}"
            warn(DemonetWarning(problem, file=table.file, hint="name it if it is an attribute"))
        places = [place for place in range(table.width) if place not in left_out]
        _check_width(table, places, "features")
        given = Attributes(table, places, options.decimal)
        columns = options.columns or Columns.learn(given)
        return cls(ids, columns.encode(given), table, columns=columns)

    def encode(self, numbering: Numbering) -> Tensor:
        """One float32 row per node; dense, or CSR if the matrix is sparse. A node without a row in a table gets one."""
        numbers = numbering.find(self.ids)
        first = np.full(numbering.node_ids.size, -1)
        first[numbers[::-1]] = np.arange(numbers.size)[::-1]
        again = np.flatnonzero(first[numbers] != np.arange(numbers.size))
        if again.size:
            differ = again[(self.rows[again] != self.rows[first[numbers[again]]]).any(1)]
            if differ.size:
                row = int(differ[0])
                raise DemonetError(f"two different rows for node {id_at(self.ids, row)!r}", **self.where(row))
            _tell_repeated(again.size, self.file)
            self.rows, numbers = np.delete(self.rows, again, 0), np.delete(numbers, again)
        missing = np.flatnonzero(first < 0)
        if missing.size:
            name = numbering.node_ids.tolist()[int(missing[0])]
            problem = f"no feature row for node {name!r} ({missing.size} of {first.size} nodes have none)"
            if self.columns is None:
                raise DemonetError(problem, file=self.file)
            warn(DemonetWarning(f"{problem}: all their values count as missing", file=self.file))
            self.rows = np.concatenate([self.rows, np.tile(self.columns.absent(), (missing.size, 1))])
            numbers = np.concatenate([numbers, missing])
        order = np.empty(numbers.size, dtype=np.int64)
        order[numbers] = np.arange(numbers.size)
        if not isinstance(self.rows, np.ndarray):
            rows = sparse.csr_array(self.rows)[order]
            rows.eliminate_zeros()  # a stored zero would count as a term in tf-idf
            return to_torch(rows)
        return torch.from_numpy(np.ascontiguousarray(self.rows[order], dtype=np.float32))


def _tell_repeated(count: int, file: Path | None) -> None:
    if count:
        rows = "a row that repeats" if count == 1 else f"{count:,} rows that repeat"
        warn(DemonetWarning(f"{rows} another merged", file=file))


def _columns_by_id(
    table: Table, numbering: Numbering, options: ReadOptions, at: int, places: Sequence[int]
) -> list[Any]:
    """The ids and other columns, as text; if the first row is a header that was not recognised, without it.

    It is, if no edge has its id, which is not a number, while edges have all other ids, or no other row has its label.
    """
    kinds: list[Kind] = ["text"] * (1 + len(places))
    kinds[0] = "str id" if numbering.kind == "str" else "int id" if options.ids == "int" else "id"
    ids, *columns = table.columns([at, *places], kinds)
    if table.names is not None or len(ids) < 3 or is_number(str(id_at(ids, 0))):
        return [ids, *columns]
    unknown = numbering.find(ids) < 0
    own = bool(columns) and isinstance(columns[0][0], str) and columns[0][0] not in columns[0][1:]
    if not unknown[0] or (unknown[1:].any() and not own):
        return [ids, *columns]
    table.take_header()
    return table.columns([at, *places], kinds)


def _check_width(table: Table, places: Sequence[int], what: str) -> None:
    if not places:
        hint = "separate columns with commas, semicolons, tabs, vertical bars or blanks"
        raise DemonetError(f"one column, but ids and {what} are expected", file=table.file, hint=hint)


def from_attributes(
    names: Sequence[str], values: Sequence[Sequence[Any]], nodes: Ids, learned: Columns | None, file: Path | None
) -> FeatureRows:
    """Features from node attributes of a graph, each with one value per node in the order of the nodes."""
    given = Attributes(RecordTable(values, file, names=names), range(len(names)))
    learned = learned or Columns.learn(given)
    return FeatureRows(nodes, learned.encode(given), file=file, columns=learned)


def from_matrix_rows(matrix: Any, nodes: Ids, file: Path | None = None, columns: Columns | None = None) -> FeatureRows:
    """An array, tensor or sparse matrix with one row per node, in the order of the nodes."""
    if isinstance(matrix, Tensor):
        matrix = matrix.detach().cpu()
        if matrix.dtype in (torch.bfloat16, torch.float16):
            matrix = matrix.float()
        matrix = matrix.numpy() if matrix.layout == torch.strided else to_scipy(matrix, np.float64)
    if not sparse.issparse(matrix):
        matrix = np.asarray(matrix)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise DemonetError(f"features of shape {list(matrix.shape)} and type {matrix.dtype}, not a matrix", file=file)
    if matrix.shape[0] != len(nodes):
        raise DemonetError(f"{matrix.shape[0]} feature rows for {len(nodes)} nodes", file=file)
    return FeatureRows(nodes, matrix, file=file, columns=columns)
