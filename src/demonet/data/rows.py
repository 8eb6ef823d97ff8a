"""Rows of numbers, dense or sparse, between PyTorch and SciPy."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from demonet.schema import checked_csr

Rows = Any  # [items, columns]: a NumPy array, or a SciPy CSR array where most values are zero
_PARTS = ("data", "indices", "indptr", "shape")


def is_sparse(rows: Any) -> bool:
    """Whether rows are a SciPy sparse matrix or array."""
    return bool(sparse.issparse(rows))


def to_scipy(x: Tensor, dtype: Any = np.float32) -> sparse.csr_array:
    """A dense or sparse tensor as a SciPy CSR array."""
    x = x.detach().cpu()
    if x.layout == torch.strided:
        rows, width = x.shape
        if not width or 2 * int(x.count_nonzero()) < x.numel():
            return sparse.csr_array(x.numpy().astype(dtype))
        column, start = np.tile(np.arange(width, dtype=np.int32), rows), np.arange(0, rows * width + 1, width)
        return sparse.csr_array((x.numpy().astype(dtype).ravel(), column, start), shape=(rows, width))
    x = x.to_sparse_csr() if x.layout != torch.sparse_csr else x
    parts = x.values().numpy().astype(dtype), x.col_indices().numpy(), x.crow_indices().numpy()
    return sparse.csr_array(parts, shape=(x.size(0), x.size(1)))


def to_rows(x: Tensor) -> Rows:
    """A tensor in float64: an array if it is dense, otherwise a SciPy CSR array without stored zeros."""
    if x.layout == torch.strided:
        return x.detach().cpu().double().numpy()
    rows = to_scipy(x, np.float64)
    rows.eliminate_zeros()
    return rows


def to_torch(matrix: Rows, dtype: torch.dtype = torch.float32) -> Tensor:
    """A SciPy sparse matrix as a ``torch.sparse_csr`` tensor with sorted, distinct columns."""
    matrix = sparse.csr_array(matrix)
    matrix.sum_duplicates()
    with warnings.catch_warnings():  # torch warns once that its CSR layout is in beta
        warnings.filterwarnings("ignore", message=".*Sparse CSR tensor support is in beta state")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int64)),
            torch.from_numpy(matrix.indices.astype(np.int64)),
            torch.from_numpy(matrix.data).to(dtype),
            size=tuple(int(side) for side in matrix.shape),
            check_invariants=False,  # SciPy has built them
        )


def pack(rows: Mapping[str, Rows], prefix: str = "") -> dict[str, NDArray[Any]]:
    """Named rows as plain arrays, names after a prefix; a CSR array as its three parts and its shape."""
    packed: dict[str, NDArray[Any]] = {}
    for name, value in rows.items():
        if isinstance(value, np.ndarray):
            packed[prefix + name] = value
        else:
            packed |= {f"{prefix}{name}.{part}": np.asarray(getattr(value, part)) for part in _PARTS}
    return packed


def unpack(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Rows]:
    """The rows that :func:`pack` took apart, of names without its prefix."""
    rows: dict[str, Rows] = {}
    for name in dict.fromkeys(key.partition(".")[0] for key in arrays):
        if name in arrays:
            rows[name] = arrays[name]
        else:
            values, column, pointer, shape = (arrays[f"{name}.{part}"] for part in _PARTS)
            rows[name] = checked_csr(values, column, pointer, tuple(shape.tolist()))
    return rows
