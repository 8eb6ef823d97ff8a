"""Matrices from NumPy and SciPy files, and adjacency matrices as edges.

Entry (i, j) is an edge from node i to node j. Sizes in a header are checked against the size of the file, and indices
before any compiled code uses them, so that a damaged file cannot exhaust the memory or crash the process.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from demonet.checks import check_node_count
from demonet.data.readers.base import Listing, check_expansion
from demonet.data.rows import is_sparse
from demonet.errors import DemonetError


def read_npy(content: bytes, path: Path) -> np.ndarray:
    """An array that ``numpy.save`` wrote."""
    try:
        return parse_npy(content)
    except Exception as error:  # NumPy parses the header as Python, and raises what the parser does
        raise DemonetError(f"not a .npy array: {error}", file=path) from None


def read_npz(data: bytes, path: Path) -> sparse.coo_array:
    """A matrix that ``scipy.sparse.save_npz`` wrote."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            check_expansion(len(data), sum(member.file_size for member in archive.infolist()), path)
            parts = {name.removesuffix(".npy"): parse_npy(archive.read(name)) for name in archive.namelist()}
        kind = parts["format"].item()
        kind = kind.decode("ascii") if isinstance(kind, bytes) else str(kind)
        rows, columns = (int(side) for side in parts["shape"])
        check_node_count(max(rows, columns), parts["data"].size, file=path)
        matrix: Any
        if kind == "coo":
            pairs = (parts["row"], parts["col"]) if "row" in parts else tuple(parts["coords"])
            matrix = sparse.coo_array((parts["data"], pairs), shape=(rows, columns))
        elif kind in ("csr", "csc"):
            build: Any = sparse.csr_array if kind == "csr" else sparse.csc_array
            matrix = build((parts["data"], parts["indices"], parts["indptr"]), shape=(rows, columns))
        else:
            raise DemonetError(f"a sparse matrix in format {kind!r}", file=path, hint="save it as csr, csc or coo")
        return checked_matrix(matrix, path)
    except DemonetError:
        raise
    except Exception as error:  # zipfile, zlib and numpy each have a dozen ways to refuse damaged bytes
        hint = "write it with scipy.sparse.save_npz"
        raise DemonetError(f"not a sparse .npz matrix: {error!r}", file=path, hint=hint) from None


def from_matrix(matrix: Any, file: Path | None = None, inside: dict[str, Any] | None = None) -> Listing:
    """A SciPy sparse matrix or array, or a NumPy matrix, as edges."""
    if not is_square(matrix):
        raise DemonetError(f"an adjacency matrix of shape {matrix.shape}", file=file, hint="it must be square")
    coo = checked_matrix(matrix, file)
    n = coo.shape[0]
    check_node_count(n, coo.nnz, file=file)
    stored = coo.data != 0
    source, target = coo.row[stored].astype(np.int64), coo.col[stored].astype(np.int64)
    if np.iscomplexobj(coo.data):
        raise DemonetError("complex edge weights", file=file)
    weight = coo.data[stored].astype(np.float64)
    if not np.isfinite(weight).all():
        at = int(np.flatnonzero(~np.isfinite(weight))[0])
        raise DemonetError(f"{weight[at]} at entry ({source[at]}, {target[at]})", file=file, hint="weights are finite")
    return Listing(source, target, weight, nodes=np.arange(n), inside=inside or {}, file=file)


def checked_matrix(matrix: Any, file: Path | None) -> sparse.coo_array:
    """A matrix in coordinate form, its type and indices checked."""
    try:
        if matrix.dtype.kind not in "biufc":
            raise ValueError(f"entries of type {matrix.dtype}")
        if is_sparse(matrix) and matrix.format in ("csr", "csc", "bsr"):
            matrix.check_format(full_check=True)
        coo = sparse.coo_array(matrix)
        for index, side in zip(coo.coords, coo.shape, strict=True):
            if coo.nnz and (index.min() < 0 or index.max() >= side):
                raise ValueError("an index outside the matrix")
    except (ValueError, TypeError, IndexError) as error:
        raise DemonetError(f"not a matrix of numbers: {error}", file=file) from None
    return coo


def is_square(value: Any) -> bool:
    """Whether a value is a square matrix with at least one row."""
    is_matrix = is_sparse(value) or isinstance(value, np.ndarray)
    return bool(is_matrix and value.ndim == 2 and value.shape[0] == value.shape[1] and value.shape[0] > 0)


def parse_npy(content: bytes) -> np.ndarray:
    """An array from the bytes of a ``.npy`` file.

    NumPy allocates memory for the shape in the header, so the shape is checked against the size first. A damaged header
    can raise any exception.
    """
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(stream)
    if int(np.prod(shape, dtype=object)) * dtype.itemsize > len(content):
        raise ValueError(f"shape {shape} claims more than {len(content)} bytes")
    stream.seek(0)
    return np.lib.format.read_array(stream, allow_pickle=False)
