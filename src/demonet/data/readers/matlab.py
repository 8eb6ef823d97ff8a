"""MATLAB files, version 5 to 7: their numeric arrays and sparse matrices.

SciPy reads these files too, but its compiled reader can crash the process on a damaged one. The format is simple, so
this module reads it with NumPy and checks every length against the bytes that are left.

A file is a header of 128 bytes and elements, each a tag (type, length) and data padded to 8 bytes. Variables are matrix
elements, mostly compressed: flags, dimensions and name, then values; of a sparse matrix rows, column starts and values.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from demonet.data.readers.base import Listing, ReadOptions, check_expansion
from demonet.data.readers.matrix import checked_matrix, from_matrix, is_square
from demonet.data.rows import is_sparse
from demonet.errors import DemonetError

_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_MATRIX, _COMPRESSED = 14, 15
_SPARSE = 5
_NUMERIC = range(6, 16)
_COMPLEX = 0x0800
_HEADER = 128
_Element = tuple[int, memoryview]


class _DamagedError(Exception):
    """The bytes are not what the format says."""


def read_mat(content: bytes, path: Path, options: ReadOptions) -> Listing:
    """The adjacency matrix of a MATLAB file, and its other variables that have one row per node."""
    found, matrix = read_variables(content, path), options.matrix
    square = [name for name, value in found.items() if is_square(value)]
    if matrix is None and len(square) == 1:
        matrix = square[0]
    if matrix is None or matrix not in square:
        problem = f"{matrix!r} is not" if matrix else "choose"
        variables, squares = ", ".join(found) or "none", ", ".join(square) or "none"
        raise DemonetError(
            f"{problem} a square matrix in the file (square: {squares}; all variables: {variables})",
            argument="matrix",
            file=path,
        )
    network = checked_matrix(found[matrix], path)
    n = network.shape[0]
    inside: dict[str, Any] = {}
    for name, value in found.items():
        if name != matrix and is_sparse(value) and value.shape[0] == n:
            inside[name] = checked_matrix(value, path).tocsr()
        elif name != matrix and isinstance(value, np.ndarray) and n in value.shape[:2]:
            inside[name] = value.ravel() if value.size == n else value
    return from_matrix(network, path, inside)


def read_variables(data: bytes, path: Path) -> dict[str, Any]:
    """Variables by name: NumPy arrays and ``scipy.sparse.csc_array``; text, cells and structures are skipped."""
    if data.startswith((b"\x89HDF", b"MATLAB 7.3")):
        raise DemonetError("a MATLAB 7.3 file", file=path, hint="save it with -v7 in MATLAB")
    order = {b"IM": "<", b"MI": ">"}.get(data[126:_HEADER])
    if order is None:
        raise DemonetError("not a MATLAB file, or one of version 4", file=path, hint="save it with -v7 in MATLAB")
    variables: dict[str, Any] = {}
    try:
        for kind, body in _elements(memoryview(data)[_HEADER:], order):
            for inner_kind, inner in _unpacked(kind, body, order, path):
                if inner_kind == _MATRIX:
                    variables.update(_variable(inner, order))
    except (_DamagedError, zlib.error) as error:
        raise DemonetError(f"damaged MATLAB file: {error}", file=path) from None
    return variables


def _elements(data: memoryview, order: str) -> Iterator[_Element]:
    while len(data) >= 8:
        first, second = (int(word) for word in np.frombuffer(data[:8], dtype=f"{order}u4"))
        if first >> 16:  # a short element: length, type and at most four bytes of data in the tag itself
            kind, length, start, whole = first & 0xFFFF, first >> 16, 4, 8
        else:
            kind, length, start = first, second, 8
            whole = 8 + (length if kind == _COMPRESSED else -(-length // 8) * 8)
        if start + length > min(len(data), 8 if first >> 16 else len(data)):
            raise _DamagedError(f"an element of {length} bytes where {len(data) - start} are left")
        yield kind, data[start : start + length]
        data = data[whole:]
    if len(data):
        raise _DamagedError(f"{len(data)} bytes left over")


def _unpacked(kind: int, body: memoryview, order: str, path: Path) -> Iterator[_Element]:
    if kind != _COMPRESSED:
        yield kind, body
        return
    unpacker, unpacked, packed = zlib.decompressobj(), bytearray(), bytes(body)
    while packed and not unpacker.eof:
        unpacked += unpacker.decompress(packed, 1 << 22)
        packed = unpacker.unconsumed_tail
        check_expansion(len(body), len(unpacked), path)
    if not unpacker.eof:
        raise _DamagedError("a compressed variable is cut short")
    yield from _elements(memoryview(bytes(unpacked)), order)


def _variable(body: memoryview, order: str) -> Iterator[tuple[str, Any]]:
    """The name and value of a matrix element, if it is numeric."""
    parts = _elements(body, order)
    flags = _numbers(next(parts, None), order)
    if flags.size != 2 or flags.dtype.kind != "u":
        raise _DamagedError("a variable without flags")
    kind = int(flags[0]) & 0xFF
    if kind != _SPARSE and kind not in _NUMERIC:
        return
    shape = tuple(int(side) for side in _numbers(next(parts, None), order))
    name = _numbers(next(parts, None), order).tobytes().decode("ascii", "replace")
    if len(shape) < 2 or min(shape) < 0:
        raise _DamagedError(f"variable {name!r} has shape {shape}")
    if int(flags[0]) & _COMPLEX:
        return
    if kind == _SPARSE:
        yield name, _sparse(name, shape, *(_numbers(next(parts, None), order) for _ in range(3)))
        return
    values = _numbers(next(parts, None), order)
    if values.size != math.prod(shape):
        raise _DamagedError(f"variable {name!r} has {values.size} values for shape {shape}")
    yield name, values.reshape(shape, order="F")


def _sparse(name: str, shape: tuple[int, ...], rows: np.ndarray, starts: np.ndarray, values: np.ndarray) -> Any:
    """Every index is checked before compiled code follows it."""
    count = int(starts[-1]) if starts.size else -1
    if len(shape) != 2 or starts.size != shape[1] + 1 or not 0 <= count <= min(rows.size, values.size):
        raise _DamagedError(f"sparse variable {name!r} has parts that do not fit its shape {shape}")
    rows, starts = rows[:count].astype(np.int64), starts.astype(np.int64)  # more may be set aside than used
    if starts[0] != 0 or (np.diff(starts) < 0).any() or (count and not (rows.min() >= 0 and rows.max() < shape[0])):
        raise _DamagedError(f"sparse variable {name!r} has an index outside its shape {shape}")
    return sparse.csc_array((values[:count].copy(), rows, starts), shape=(shape[0], shape[1]))


def _numbers(element: _Element | None, order: str) -> np.ndarray:
    if element is None:
        raise _DamagedError("a variable is cut short")
    kind, body = element
    if kind not in _TYPES:
        raise _DamagedError(f"data of type {kind} where numbers belong")
    dtype = np.dtype(f"{order}{_TYPES[kind]}")
    if len(body) % dtype.itemsize:
        raise _DamagedError(f"{len(body)} bytes of {dtype.itemsize}-byte numbers")
    return np.frombuffer(body, dtype=dtype).astype(dtype.newbyteorder("="))
