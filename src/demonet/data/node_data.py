"""Labels and features that users give for ids: tables, mappings, sequences and matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from demonet.data.columns import Attributes, Columns, as_number
from demonet.data.ids import (
    Ids,
    LabelTable,
    Numbering,
    as_integer,
    encode_classes,
    id_at,
    is_missing,
    make_ids,
    warn_of_codes,
    warn_of_forms,
    without_missing,
)
from demonet.data.readers import format_of
from demonet.data.readers.tables import Column, Kind, Table, id_place, is_number, place_of
from demonet.data.rows import to_torch
from demonet.errors import DemonetError, DemonetWarning, warn


@dataclass(frozen=True)
class TableOptions:
    """Which columns of a table of labels or features are read.

    Attributes:
        id_column: The column of ids, by name or position; None for ``node``, ``node_id``, ``id`` or the first.
        label_column: The column of labels; None for all others.
        ignore: Columns that are not features.
    """

    id_column: Column = None
    label_column: Column = None
    ignore: Sequence[str | int] = ()

    @property
    def header(self) -> bool | None:
        """Whether a text table has a header: yes, if one of its columns is given by name."""
        return True if any(isinstance(c, str) for c in (self.id_column, self.label_column, *self.ignore)) else None


class Labelled:
    """Labels by id, the table that they come from, and all its label columns if it has several."""

    def __init__(
        self,
        ids: Ids,
        labels: list[Any],
        table: Table | None = None,
        columns: list[list[str | None]] | None = None,
        names: list[str] | None = None,
    ) -> None:
        self.table, self.columns, self.names = table, columns or [], names
        self.ids, self.labels = ids, without_missing(labels, **({} if table is None else {"file": table.file}))

    @classmethod
    def read(cls, table: Table, kind: str, options: TableOptions) -> Labelled:
        """A table of ids and labels; a label that is empty or a word such as ``NA`` means unlabelled."""
        at = id_place(table, options.id_column)
        if options.label_column is None:
            places = [place for place in range(table.width) if place != at]
        else:
            places = [place_of(table, options.label_column, "label_column")]
        _check_width(table, places, "labels")
        kinds: list[Kind] = ["str id" if kind == "str" else "id", *["text"] * len(places)]  # type: ignore[list-item]
        ids, *columns = table.columns([at, *places], kinds)
        columns = [_with_points(column) for column in columns]
        labels = columns[0]
        if all(is_missing(label) or as_integer(label) is not None for label in labels):
            labels = [label if is_missing(label) else int(label) for label in labels]
        names = None if table.names is None else [table.names[place] for place in places]
        return cls(ids, labels, table, columns, names)

    def where(self, row: int) -> dict[str, Any]:
        """The file and line of a row, for an error."""
        return {} if self.table is None else {"file": self.table.file, "line": self.table.line(row)}

    @property
    def name(self) -> str | None:
        """The name of the column of labels, if it has one."""
        return self.names[0] if self.names else None

    def encode(self, numbering: Numbering) -> tuple[Tensor, list[Any]]:
        """The class index of each node, -1 for unlabelled, and the class names in order."""
        codes, names = encode_classes(self.labels)
        if len(self.columns) < 2:  # in several columns of 0 and 1, -1 is unknown
            where = {} if self.table is None else {"file": self.table.file}
            warn_of_codes(names, **where)
            warn_of_forms(names, "labels", **where)
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
        return torch.from_numpy(y), names

    def encode_table(self, numbering: Numbering) -> LabelTable | None:
        """All label columns by node; None if there is only one."""
        if len(self.columns) < 2 or self.table is None:
            return None
        names = self.names or [f"label {number}" for number in range(1, len(self.columns) + 1)]
        rows = np.full((len(self.labels), len(self.columns)), np.nan)
        for place, cells in enumerate(self.columns):
            for row, cell in enumerate(cells):
                if is_missing(cell):
                    continue
                assert cell is not None
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


def _with_points(column: list[str | None]) -> list[str | None]:
    """A column of numbers, some with decimal commas, with decimal points; any other column as it is."""
    texts = [text for text in column if text is not None and not is_missing(text)]
    if not any("," in text for text in texts) or any(as_number(text) is None for text in texts):
        return column
    return [text if text is None or is_missing(text) else text.replace(",", ".") for text in column]


def from_mapping(labels: Any) -> Labelled:
    """A dict, a pandas Series, or anything with ``items()``, from id to label."""
    pairs = list(labels.items())
    return Labelled(make_ids(key for key, _ in pairs), [value for _, value in pairs])


def from_sequence(labels: Any, nodes: Ids) -> Labelled:
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
    return Labelled(nodes, labels)


class Featured:
    """Rows of features by id.

    Attributes:
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
        self.ids, self.rows, self.table, self.file, self.columns = ids, rows, table, file, columns

    def where(self, row: int) -> dict[str, Any]:
        """The file and line of a row, for an error."""
        return {"file": self.file} if self.table is None else {"file": self.table.file, "line": self.table.line(row)}

    def encode(self, numbering: Numbering) -> Tensor:
        """One float32 row per node; dense, or CSR if the matrix is sparse. A node without a row in a table gets one."""
        numbers = numbering.find(self.ids)
        times = np.bincount(numbers, minlength=numbering.node_ids.size)
        if (times > 1).any():
            node = int(np.argmax(times > 1))
            row = int(np.flatnonzero(numbers == node)[1])
            raise DemonetError(f"two feature rows for node {id_at(self.ids, row)!r}", **self.where(row))
        missing = np.flatnonzero(times == 0)
        if missing.size:
            name = numbering.node_ids.tolist()[int(missing[0])]
            problem = f"no feature row for node {name!r} ({missing.size} of {times.size} nodes have none)"
            file = self.where(0).get("file")
            if self.columns is None:
                raise DemonetError(problem, file=file)
            warn(DemonetWarning(f"{problem}: all their values count as missing", file=file))
            self.rows = np.concatenate([self.rows, np.tile(self.columns.absent(), (missing.size, 1))])
            numbers = np.concatenate([numbers, missing])
        order = np.empty(numbers.size, dtype=np.int64)
        order[numbers] = np.arange(numbers.size)
        if not isinstance(self.rows, np.ndarray):
            rows = sparse.csr_array(self.rows)[order]
            rows.eliminate_zeros()  # a stored zero would count as a term in tf-idf
            return to_torch(rows)
        return torch.from_numpy(np.ascontiguousarray(self.rows[order], dtype=np.float32))


def starts_with_header(table: Table, ids: Ids, numbering: Numbering, labels: list[Any] | None = None) -> bool:
    """Whether the first row is a header that was not recognised.

    It is, if no edge has its id, which is not a number, while edges have all other ids, or no other row has its label.
    """
    if table.names is not None or len(ids) < 3 or is_number(str(id_at(ids, 0))):
        return False
    unknown = numbering.find(ids) < 0
    if not unknown[0]:
        return False
    return not unknown[1:].any() or (labels is not None and isinstance(labels[0], str) and labels[0] not in labels[1:])


def _check_width(table: Table, places: Sequence[int], what: str) -> None:
    if not places:
        hint = "separate columns with commas, semicolons, tabs, vertical bars or blanks"
        raise DemonetError(f"one column, but ids and {what} are expected", file=table.file, hint=hint)


def read_features(table: Table, kind: str, options: TableOptions, learned: Columns | None = None) -> Featured:
    """Features from a table of ids and values, encoded as ``learned`` says, or as the table itself does."""
    at = id_place(table, options.id_column)
    left_out = {at}
    if learned is None:
        left_out |= {place_of(table, column, "ignore") for column in options.ignore}
    if options.label_column is not None:
        left_out.add(place_of(table, options.label_column, "label_column"))
    places = [place for place in range(table.width) if place not in left_out]
    _check_width(table, places, "features")
    (ids,) = table.columns([at], ["str id" if kind == "str" else "id"])
    names = [f"column {place + 1}" if table.names is None else table.names[place] for place in places]
    given = Attributes(
        names,
        table.values(places),
        named=table.names is not None,
        file=table.file,
        line=table.line,
        text=lambda place: table.columns([places[place]], ["text"])[0],
    )
    columns = learned or Columns.learn(given)
    return Featured(ids, columns.encode(given), table, columns=columns)


def from_attributes(
    names: Sequence[str], values: Sequence[Sequence[Any]], nodes: Ids, learned: Columns | None, file: Path | None
) -> Featured:
    """Features from node attributes of a graph, each with one value per node in the order of the nodes."""
    import pyarrow as pa

    columns = []
    for name, column in zip(names, values, strict=True):
        plain = [None if is_missing(value) else value for value in column]
        if len({type(value) for value in plain if value is not None}) > 1:  # 1 and 1.5, or 1 and 'a'
            numeric = all(
                value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in plain
            )
            plain = [None if value is None else float(value) if numeric else str(value) for value in plain]
        try:
            columns.append(pa.chunked_array([pa.array(plain)]))
        except (pa.ArrowException, TypeError) as error:
            raise DemonetError(f"node attribute {name!r} is neither numbers nor text: {error}", file=file) from None
    given = Attributes(names, columns, file=file)
    learned = learned or Columns.learn(given)
    return Featured(nodes, learned.encode(given), file=file, columns=learned)


def open_table(content: bytes, path: Path, header: bool | None = None, words: bool = False) -> Table:
    """The table of a file, by its suffix."""
    table = format_of(path).table
    if table is None:
        hint = "use .csv, .tsv or .parquet"
        raise DemonetError(f"a table is expected, not a {path.suffix} file", file=path, hint=hint)
    return table(content, path, header, words)


def from_matrix_rows(matrix: Any, nodes: Ids, file: Path | None = None, columns: Columns | None = None) -> Featured:
    """An array, tensor or sparse matrix with one row per node, in the order of the nodes."""
    if isinstance(matrix, Tensor):
        matrix = matrix.detach().cpu()
        matrix = sparse.csr_array(matrix.to_dense().numpy()) if matrix.layout != torch.strided else matrix.numpy()
    if not sparse.issparse(matrix):
        matrix = np.asarray(matrix)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise DemonetError(f"features of shape {list(matrix.shape)} and type {matrix.dtype}, not a matrix", file=file)
    if matrix.shape[0] != len(nodes):
        raise DemonetError(f"{matrix.shape[0]} feature rows for {len(nodes)} nodes", file=file)
    return Featured(nodes, matrix, file=file, columns=columns)
