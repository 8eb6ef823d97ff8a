"""Features that a user brings: a table with ids, or a matrix with one row a node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from demonet.data.ids import Ids, Numbering, id_at
from demonet.data.readers.columns import Kind, Table
from demonet.data.readers.edge_list import open_table
from demonet.data.readers.matrix import parse_npy, read_npz
from demonet.data.readers.matrix_market import read_matrix_market
from demonet.data.readers.raw import read_bytes
from demonet.data.sparse import to_torch
from demonet.errors import DemonetError


class Featured:
    """Which ids have which row of features."""

    def __init__(self, ids: Ids, rows: Any, table: Table | None = None, file: Path | None = None) -> None:
        self.ids, self.rows, self.table, self.file = ids, rows, table, file

    def where(self, row: int) -> dict[str, Any]:
        """The file and line of a row, for an error."""
        return {"file": self.file} if self.table is None else {"file": self.table.file, "line": self.table.line(row)}

    def encode(self, numbering: Numbering) -> Tensor:
        """One row a node, float32; dense, or CSR where the matrix is sparse."""
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
            return to_torch(sparse.csr_array(self.rows)[order])
        return torch.from_numpy(np.ascontiguousarray(self.rows[order], dtype=np.float32))


def read_features(path: Path, kind: str, nodes: Ids) -> Featured:
    """Features by the ending of the name.

    ``.npz`` and ``.mtx`` are sparse and ``.npy`` is dense, one row a node in the order of ``nodes``; all else is a
    table, text or Parquet, with an id in its first column and numbers in the others.
    """
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if suffix in (".npz", ".mtx"):
        matrix = read_npz(path) if suffix == ".npz" else read_matrix_market(path)
        return from_matrix_rows(matrix, nodes, file=path)
    if suffix == ".npy":
        try:
            array = parse_npy(read_bytes(path))
        except DemonetError:
            raise
        except Exception as error:  # NumPy parses the header as Python, and raises what the parser does
            raise DemonetError(f"not a .npy array: {error}", file=path) from None
        return from_matrix_rows(array, nodes, file=path)
    table = open_table(path, words=kind == "str")
    if table.width < 2:
        raise DemonetError("one column, where an id and features belong", file=path)
    kinds: list[Kind] = ["str id" if kind == "str" else "id"]
    kinds += ["number"] * (table.width - 1)
    ids, *columns = table.columns(range(table.width), kinds)
    return Featured(ids, np.stack(columns, axis=1, dtype=np.float32, casting="same_kind"), table)


def from_matrix_rows(matrix: Any, nodes: Ids, file: Path | None = None) -> Featured:
    """An array, tensor or sparse matrix, one row a node in the order of the nodes."""
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
