"""Between SciPy's sparse matrices, in which features are made, and torch's CSR tensors, in which they leave."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from scipy import sparse
from torch import Tensor


def to_scipy(x: Tensor) -> sparse.csr_array:
    """A dense or CSR tensor as a SciPy CSR array of float32."""
    x = x.detach().cpu()
    if x.layout != torch.sparse_csr:
        return sparse.csr_array(x.numpy().astype(np.float32))
    parts = x.values().numpy().astype(np.float32), x.col_indices().numpy(), x.crow_indices().numpy()
    return sparse.csr_array(parts, shape=(x.size(0), x.size(1)))


def to_torch(matrix: sparse.csr_array) -> Tensor:
    """A SciPy sparse matrix as a float32 ``torch.sparse_csr`` tensor with sorted, distinct columns."""
    matrix = sparse.csr_array(matrix)
    matrix.sum_duplicates()
    with warnings.catch_warnings():  # torch calls its CSR layout beta, once a process; there is nothing to do about it
        warnings.filterwarnings("ignore", message=".*Sparse CSR tensor support is in beta state")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int64)),
            torch.from_numpy(matrix.indices.astype(np.int64)),
            torch.from_numpy(matrix.data.astype(np.float32)),
            size=tuple(int(side) for side in matrix.shape),
            check_invariants=False,  # SciPy has just built them
        )
