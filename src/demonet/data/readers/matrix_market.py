"""Matrix Market files: a header, a line of sizes, and one entry per line.

SciPy reads these files too, but its compiled reader can crash the process on a damaged one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from demonet.checks import check_node_count
from demonet.data.readers.base import as_lines, numbered_lines
from demonet.data.readers.tables import Kind
from demonet.data.readers.text import TextTable
from demonet.errors import DemonetError


def read_matrix_market(content: bytes, path: Path) -> sparse.coo_array:
    """A ``.mtx`` file, coordinate or array; a symmetric one is expanded to both halves."""
    data = as_lines(content, path)
    banner, *_ = data.split(b"\n", 1)
    words = banner.decode("ascii", "replace").lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"] or words[2] not in ("coordinate", "array"):
        raise DemonetError("not a Matrix Market file: its first line is not a '%%MatrixMarket' header", file=path)
    layout, field, symmetry = words[2:]
    if field not in ("real", "integer", "pattern") or symmetry not in ("general", "symmetric", "skew-symmetric"):
        raise DemonetError(f"a {symmetry} matrix of {field} entries", file=path, line=1)
    sizes, body = _sizes(data, 3 if layout == "coordinate" else 2, path)
    shape = (sizes[0], sizes[1])
    if layout == "array":
        return _array(body, shape, symmetry, path)
    rows, columns, values = _entries(body, sizes[2], field == "pattern", path)
    check_node_count(max(shape), sizes[2], file=path)
    for index, side in ((rows, shape[0]), (columns, shape[1])):
        outside = np.flatnonzero((index < 1) | (index > side))
        if outside.size:
            line = TextTable(body, path, header=False).line(int(outside[0]))
            raise DemonetError(f"index {index[outside[0]]} in a matrix of {shape}", file=path, line=line)
    rows, columns = rows - 1, columns - 1
    if symmetry != "general":
        below = rows != columns
        sign = -1 if symmetry == "skew-symmetric" else 1
        rows, columns = np.concatenate([rows, columns[below]]), np.concatenate([columns, rows[below]])
        values = np.concatenate([values, sign * values[below]])
    return sparse.coo_array((values, (rows, columns)), shape=shape)


def _sizes(data: bytes, count: int, path: Path) -> tuple[list[int], bytes]:
    """The line of sizes, and the text below it with as many empty lines above as keep line numbers right."""
    for number, line in numbered_lines(data):
        fields = line[1].split()
        if fields and not fields[0].startswith(b"%"):
            if len(fields) != count or not all(field.isdigit() and len(field) < 19 for field in fields):
                raise DemonetError(f"not {count} sizes: {line[1][:60]!r}", file=path, line=number)
            return [int(field) for field in fields], b"\n" * number + data[line.end() + 1 :]
    raise DemonetError("no line of sizes", file=path)


def _entries(body: bytes, count: int, pattern: bool, path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    kinds: list[Kind] = ["int id", "int id"] if pattern else ["int id", "int id", "number"]
    columns = [np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)][: len(kinds)]
    if body.strip():
        table = TextTable(body, path, header=False)
        if table.width != len(kinds):
            raise DemonetError(f"{table.width} fields an entry, not {len(kinds)}", file=path, line=table.line(0))
        columns = table.columns(range(len(kinds)), kinds)
    if len(columns[0]) != count:
        raise DemonetError(f"{len(columns[0])} entries, but the header says {count}", file=path)
    return columns[0], columns[1], np.ones(count) if pattern else columns[2]


def _array(body: bytes, shape: tuple[int, int], symmetry: str, path: Path) -> sparse.coo_array:
    """Values one a line, column by column."""
    if symmetry != "general":
        raise DemonetError(f"a {symmetry} matrix as an array", file=path, hint="write it in coordinate form")
    if shape[0] * shape[1] > len(body):  # a value takes two bytes or more
        raise DemonetError(f"a header of {shape[0] * shape[1]} values above {len(body)} bytes", file=path)
    (values,) = TextTable(body, path, header=False).columns([0], ["number"])
    if values.size != shape[0] * shape[1]:
        raise DemonetError(f"{values.size} values for a matrix of {shape}", file=path)
    return sparse.coo_array(values.reshape(shape, order="F"))
