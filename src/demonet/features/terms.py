"""Attributes that are words of a text, as rows of unit length: counts, or weights that were made of counts.

The kinds are those of :func:`~demonet.data.columns.matrix_kind`; node labels are counts of 0 and 1 here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize

from demonet.data.columns import MatrixKind


def document_weights(rows: Any, kind: MatrixKind) -> NDArray[np.float64]:
    r"""``[columns]`` inverse document frequencies :math:`\log((1 + n) / (1 + n_w)) + 1` of words that n_w texts have.

    Weights get them if their rows sum to one, as frequencies of words do; others, such as tf-idf, have theirs already.

    Args:
        rows: ``[n, columns]``, dense or CSR.
        kind: What they are.
    """
    rows = _sparse(rows)
    total = np.asarray(rows.sum(1)).ravel()
    if kind == "weights" and not np.allclose(total[total > 0], 1, atol=1e-3):
        return np.ones(rows.shape[1])
    seen = np.bincount(rows.indices, minlength=rows.shape[1])
    return np.log((1 + rows.shape[0]) / (1 + seen)) + 1


def term_rows(rows: Any, weights: NDArray[np.float64], kind: MatrixKind) -> sparse.csr_array:
    """Rows of unit length: 1 + log(count), or weights as they are, times :func:`document_weights`."""
    rows = _sparse(rows)
    if kind != "weights":
        rows.data = 1 + np.log(np.maximum(rows.data, 1))
    return normalize(sparse.csr_array(rows.multiply(weights)))


def _sparse(rows: Any) -> sparse.csr_array:
    """A copy without stored zeros."""
    rows = sparse.csr_array(rows, dtype=np.float64, copy=True)
    rows.eliminate_zeros()
    return rows
