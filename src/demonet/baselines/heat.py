r"""Heat kernels of a graph, column by column: what heat put on one node has become of by time s.

.. math::
    \Psi_s = U e^{-s \Lambda} U^\top, \qquad L = I - D^{-1/2} A D^{-1/2} = U \Lambda U^\top

With eigenvalues in :math:`[0, 2]` the exponential is, for :math:`x = \lambda - 1` in :math:`[-1, 1]`,

.. math::
    e^{-s (1 + x)} = e^{-s} \Big( I_0(s) + 2 \sum\nolimits_{k \ge 1} (-1)^k I_k(s) \, T_k(x) \Big)

with modified Bessel functions :math:`I_k` and Chebyshev polynomials :math:`T_k`: products with a sparse matrix only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse, special

from demonet.errors import DemonetError

Float = NDArray[np.float64]

CELLS = 4_000_000  # of each of the dense blocks that are held at once: 32 MB


def laplacian(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Normalised Laplacian of a symmetric matrix; the row of a node without neighbours is zero."""
    degree = adjacency.sum(axis=1)
    root = np.sqrt(np.where(degree > 0, 1 / np.maximum(degree, 1e-300), 0.0))
    scale = sparse.diags_array(root)
    return sparse.csr_array(sparse.diags_array((degree > 0).astype(np.float64)) - scale @ adjacency @ scale)


def heat_exact(matrix: sparse.csr_array, scales: Sequence[float]) -> list[Float]:
    """The whole kernel at each scale, from the dense eigendecomposition: for small graphs."""
    values, vectors = linalg.eigh(matrix.toarray())
    return [(vectors * np.exp(-scale * values)) @ vectors.T for scale in scales]


def heat_blocks(matrix: sparse.csr_array, scales: Sequence[float], order: int) -> Iterator[tuple[slice, list[Float]]]:
    """Blocks of columns of the kernel at each scale, by Chebyshev polynomials up to an order.

    Yields which columns they are, and for each scale a ``[nodes, columns]`` array.
    """
    coefficients = [chebyshev(scale, order) for scale in scales]
    n = matrix.shape[0]
    shifted = matrix - sparse.eye_array(n, format="csr")
    width = max(1, CELLS // max(1, n))
    for start in range(0, n, width):
        columns = slice(start, min(n, start + width))
        before = np.zeros((n, columns.stop - start))
        before[np.arange(start, columns.stop), np.arange(columns.stop - start)] = 1.0
        current = shifted @ before
        kernels = [c[0] * before + c[1] * current for c in coefficients]
        for k in range(2, order + 1):
            before, current = current, 2 * (shifted @ current) - before
            for kernel, c in zip(kernels, coefficients, strict=True):
                kernel += c[k] * current
        yield columns, kernels


def chebyshev(scale: float, order: int) -> Float:
    """``[order + 1]`` the coefficients of the polynomials; refused where those left out are felt."""
    k = np.arange(order + 1)
    left_out = 2 * special.ive(np.arange(order + 1, order + 100), scale).sum()
    if left_out > 1e-3:
        raise DemonetError(
            f"a Chebyshev order of {order} for heat at scale {scale:.3g}: off by up to {left_out:.1g}",
            hint=f"an order of {int(4 * np.sqrt(scale) + scale) + 4} would do",
        )
    return np.where(k == 0, 1.0, 2.0) * (-1.0) ** k * special.ive(k, scale)
