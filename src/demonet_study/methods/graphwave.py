r"""``graphwave``: GraphWave of Donnat et al. (KDD'18).

Nodes are similar when heat spreads from them in a similar way. The heat kernel at scale s is

.. math::
    \Psi_s = U e^{-s \Lambda} U^\top, \qquad L = I - D^{-1/2} A D^{-1/2} = U \Lambda U^\top

The coefficients :math:`\Psi_{mu}` over all m are regarded as a sample, and node u is embedded by the real and imaginary
part of its empirical characteristic function at evenly spaced points t, for several scales:

.. math::
    \phi_u(t) = \frac1N \sum\nolimits_m e^{i t \Psi_{mu}}

Eigenvalues are in :math:`[0, 2]`. For :math:`x = \lambda - 1` in :math:`[-1, 1]` the exponential is

.. math::
    e^{-s (1 + x)} = e^{-s} \Big( I_0(s) + 2 \sum\nolimits_{k \ge 1} (-1)^k I_k(s) \, T_k(x) \Big)

with modified Bessel functions :math:`I_k` and Chebyshev polynomials :math:`T_k`, so only products with a sparse matrix
are needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse, special
from torch_geometric.data import Data

from demonet.errors import DemonetError
from demonet.features.graph import simple_adjacency
from demonet.methods.base import Settings, at_least, register
from demonet.methods.cost import Cost
from demonet_study.methods.embedding import Embedding, Float

_CELLS = 4_000_000  # entries of each dense block: 32 MB


@dataclass(frozen=True)
class GraphWaveSettings(Settings):
    """Settings of GraphWave."""

    scales: int = at_least(1, 2)
    points: int = at_least(2, 25)  # number of points at which the characteristic function is evaluated
    last: float = 100.0  # the last point; the first is 0
    # The gamma of the first and of the last scale, in the paper's equation for scales.
    kept: tuple[float, float] = (0.95, 0.80)
    order: int = at_least(1, 30)  # of the Chebyshev polynomials
    exact: bool = False  # use the dense eigendecomposition instead

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.kept[1] <= self.kept[0] < 1:
            raise DemonetError(f"kept must be two numbers in (0, 1), the larger first, got {self.kept}")
        if self.last <= 0:
            raise DemonetError(f"last must be positive, got {self.last}")


@register
class GraphWave(Embedding):
    """Characteristic functions of heat wavelets, by Chebyshev polynomials or, with ``exact=True``, by eigenvectors."""

    name = "graphwave"
    cost = Cost(0.2, product=0.035, nodes=0.3)
    defaults = GraphWaveSettings(
        "Donnat et al., KDD'18, sections 3 and 4; points, scales and order of the authors' program"
    )
    settings: GraphWaveSettings

    def embed(self, data: Data, seed: int = 0) -> Float:
        """``[nodes, 2 * points * scales]``; deterministic, the seed is ignored."""
        matrix = laplacian(simple_adjacency(data))
        scales = self.scales(matrix)
        n = matrix.shape[0]
        blocks = (
            iter([(slice(0, n), heat_exact(matrix, scales))])
            if self.settings.exact
            else heat_blocks(matrix, scales, self.settings.order)
        )
        z = np.empty((n, 2 * self.settings.points * len(scales)))
        for columns, kernels in blocks:
            z[columns] = np.hstack([self.characteristic(kernel) for kernel in kernels])
        return z

    def scales(self, matrix: sparse.csr_array) -> list[float]:
        r"""Evenly spaced between :math:`-\log(\gamma) / \sqrt{\lambda_2 \lambda_N}` for a large and a small gamma.

        At these scales heat neither stays at its source nor spreads evenly (section 4 of the paper). As in the authors'
        program, the smallest positive eigenvalue is replaced by 1 / N and the largest by 2.
        """
        root = np.sqrt(2 / matrix.shape[0])
        low, high = (-np.log(kept) / root for kept in self.settings.kept)
        return np.linspace(low, high, self.settings.scales).tolist()

    def characteristic(self, kernel: Float) -> Float:
        """``[columns, 2 * points]`` the characteristic function of a block of columns of the kernel."""
        # Points are multiples of one step, so the exponentials are powers of the first.
        step = np.exp(1j * self.settings.last / (self.settings.points - 1) * kernel)
        power = np.ones_like(step)
        values = np.empty((kernel.shape[1], self.settings.points), dtype=np.complex128)
        for point in range(self.settings.points):
            values[:, point] = power.mean(axis=0)
            power *= step
        return np.hstack([values.real, values.imag])


def laplacian(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Normalised Laplacian of a symmetric matrix; the row of a node without neighbours is zero."""
    degree = adjacency.sum(axis=1)
    root = np.sqrt(np.where(degree > 0, 1 / np.maximum(degree, 1e-300), 0.0))
    scale = sparse.diags_array(root)
    return sparse.csr_array(sparse.diags_array((degree > 0).astype(np.float64)) - scale @ adjacency @ scale)


def heat_exact(matrix: sparse.csr_array, scales: Sequence[float]) -> list[Float]:
    """The whole kernel at each scale, by dense eigendecomposition; for small graphs."""
    values, vectors = linalg.eigh(matrix.toarray())
    return [(vectors * np.exp(-scale * values)) @ vectors.T for scale in scales]


def heat_blocks(matrix: sparse.csr_array, scales: Sequence[float], order: int) -> Iterator[tuple[slice, list[Float]]]:
    """Blocks of columns of the kernel at each scale, by Chebyshev polynomials up to ``order``.

    Yields the slice of columns, and a ``[nodes, columns]`` array per scale.
    """
    coefficients = [chebyshev(scale, order) for scale in scales]
    n = matrix.shape[0]
    shifted = matrix - sparse.eye_array(n, format="csr")
    width = max(1, _CELLS // max(1, n))
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
    """``[order + 1]`` the coefficients of the polynomials; an error where the truncated ones matter."""
    k = np.arange(order + 1)
    truncated = 2 * special.ive(np.arange(order + 1, order + 100), scale).sum()
    if truncated > 1e-3:
        raise DemonetError(
            f"Chebyshev order {order} is too small for heat at scale {scale:.3g}: error up to {truncated:.1g}",
            hint=f"use order={int(4 * np.sqrt(scale) + scale) + 4}",
        )
    return np.where(k == 0, 1.0, 2.0) * (-1.0) ** k * special.ive(k, scale)
