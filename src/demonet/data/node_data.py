"""Labels and features that users give for ids: tables, mappings, sequences and matrices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from demonet.data.features import to_torch
from demonet.data.ids import Ids, LabelTable, Numbering, encode_classes, id_at, make_ids
from demonet.data.readers import format_of
from demonet.data.readers.tables import Kind, Table, is_integer, is_number
from demonet.errors import DemonetError


class Labelled:
    """Labels by id, the table that they come from, and all its label columns if it has several."""

    def __init__(
        self, ids: Ids, labels: list[Any], table: Table | None = None, columns: list[list[str | None]] | None = None
    ) -> None:
        self.ids, self.labels, self.table, self.columns = ids, labels, table, columns or []

    @classmethod
    def read(cls, content: bytes, path: Path, kind: str) -> Labelled:
        """A table with ids in the first column, and labels in the others; an empty label means unlabelled."""
        table, ids, columns = _id_table(content, path, kind, "text", "labels")
        labels = columns[0]
        if all(label is None or is_integer(label) for label in labels):
            labels = [None if label is None else int(label) for label in labels]
        return cls(ids, labels, table, columns)

    def where(self, row: int) -> dict[str, Any]:
        """The file and line of a row, for an error."""
        return {} if self.table is None else {"file": self.table.file, "line": self.table.line(row)}

    def encode(self, numbering: Numbering) -> tuple[Tensor, list[Any]]:
        """The class index of each node, -1 for unlabelled, and the class names in order."""
        codes, names = encode_classes(self.labels)
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
        names = self.table.names or [f"label {number}" for number in range(len(self.columns) + 1)]
        rows = np.full((len(self.labels), len(self.columns)), np.nan)
        for place, cells in enumerate(self.columns):
            for row, cell in enumerate(cells):
                if cell and not (is_number(cell) and abs(float(cell)) != np.inf):
                    problem = f"{cell!r} is not a number, in column {place + 2}"
                    return LabelTable(names[1:], None, DemonetError(problem, **self.where(row)))
                rows[row, place] = float(cell) if cell else np.nan
        numbers = numbering.find(self.ids)
        values = np.full((numbering.node_ids.size, len(self.columns)), np.nan)
        values[numbers[::-1]] = rows[::-1]
        clash = np.flatnonzero(((values[numbers] != rows) & ~np.isnan(values[numbers] + rows)).any(1))
        if clash.size:
            row = int(clash[0])
            problem = f"{id_at(self.ids, row)!r} has other labels than before"
            return LabelTable(names[1:], None, DemonetError(problem, **self.where(row)))
        return LabelTable(names[1:], values)


def from_mapping(labels: Any) -> Labelled:
    """A dict, or anything with ``items()``, from id to label."""
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
        columns: The column names, if the features have names.
    """

    def __init__(self, ids: Ids, rows: Any, table: Table | None = None, file: Path | None = None) -> None:
        self.ids, self.rows, self.table, self.file = ids, rows, table, file
        self.columns = table.names[1:] if table is not None and table.names is not None else None

    def where(self, row: int) -> dict[str, Any]:
        """The file and line of a row, for an error."""
        return {"file": self.file} if self.table is None else {"file": self.table.file, "line": self.table.line(row)}

    def encode(self, numbering: Numbering) -> Tensor:
        """One float32 row per node; dense, or CSR if the matrix is sparse."""
        numbers = numbering.find(self.ids)
        times = np.bincount(numbers, minlength=numbering.node_ids.size)
        if (times > 1).any():
            node = int(np.argmax(times > 1))
            row = int(np.flatnonzero(numbers == node)[1])
            raise DemonetError(f"two feature rows for node {id_at(self.ids, row)!r}", **self.where(row))
        if (times == 0).any():
            node, missing = int(np.argmin(times)), int(np.count_nonzero(times == 0))
            name = numbering.node_ids.tolist()[node]
            problem = f"no feature row for node {name!r} ({missing} of {times.size} nodes have none)"
            raise DemonetError(problem, file=self.where(0).get("file"))
        order = np.empty(numbers.size, dtype=np.int64)
        order[numbers] = np.arange(numbers.size)
        if not isinstance(self.rows, np.ndarray):
            rows = sparse.csr_array(self.rows)[order]
            rows.eliminate_zeros()  # a stored zero would count as a term in tf-idf
            return to_torch(rows)
        return torch.from_numpy(np.ascontiguousarray(self.rows[order], dtype=np.float32))


def _id_table(content: bytes, path: Path, kind: str, values: Kind, what: str) -> tuple[Table, Ids, list[Any]]:
    """A table, its first column as ids, and all other columns as values of one kind."""
    table = open_table(content, path, words=kind == "str")
    if table.width < 2:
        hint = "separate columns with commas, tabs or spaces, not semicolons"
        raise DemonetError(f"one column, but ids and {what} are expected", file=path, hint=hint)
    kinds: list[Kind] = ["str id" if kind == "str" else "id", *[values] * (table.width - 1)]
    ids, *columns = table.columns(range(table.width), kinds)
    return table, ids, columns


def read_features(content: bytes, path: Path, kind: str, nodes: Ids) -> Featured:
    """Features from a matrix with one row per node, in the order of ``nodes``, or from a table of ids and numbers."""
    matrix = format_of(path).matrix
    if matrix is not None:
        return from_matrix_rows(matrix(content, path), nodes, file=path)
    table, ids, columns = _id_table(content, path, kind, "number", "features")
    return Featured(ids, np.stack(columns, axis=1, dtype=np.float32, casting="same_kind"), table)


def open_table(content: bytes, path: Path, header: bool | None = None, words: bool = False) -> Table:
    """The table of a file, by its suffix."""
    table = format_of(path).table
    if table is None:
        hint = "use .csv, .tsv or .parquet"
        raise DemonetError(f"a table is expected, not a {path.suffix} file", file=path, hint=hint)
    return table(content, path, header, words)


def from_matrix_rows(matrix: Any, nodes: Ids, file: Path | None = None) -> Featured:
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
    return Featured(nodes, matrix, file=file)
