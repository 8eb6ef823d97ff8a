r"""GraphWave (Donnat et al., KDD'18): nodes are alike when heat spreads from them in like amounts.

Where the heat of node u goes is not asked, only how much of it there is wherever it goes: the coefficients
:math:`\Psi_{mu}` over all m are taken as a sample, and its empirical characteristic function

.. math::
    \phi_u(t) = \frac1N \sum\nolimits_m e^{i t \Psi_{mu}}

is read, real and imaginary part, at evenly spaced points t, for each of a few scales.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from torch_geometric.data import Data

from demonet.baselines.embedding import Embedding, Float
from demonet.baselines.heat import heat_blocks, heat_exact, laplacian
from demonet.baselines.settings_structural import GRAPHWAVE, GraphWaveSettings
from demonet.baselines.structure import simple_adjacency


class GraphWave(Embedding):
    """Heat wavelets by Chebyshev polynomials, sparse, in blocks of nodes; ``exact=True`` by eigenvectors instead."""

    name = "graphwave"
    defaults = GRAPHWAVE
    settings: GraphWaveSettings

    def embed(self, data: Data, seed: int = 0) -> Float:
        """``[nodes, 2 * points * scales]``; nothing is drawn, so the seed makes no difference."""
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

        They leave heat neither where it was put nor everywhere alike (section 4 of the paper). As in the authors'
        program, 1 / N stands for the smallest eigenvalue above zero, and 2 for the largest.
        """
        root = np.sqrt(2 / matrix.shape[0])
        low, high = (-np.log(kept) / root for kept in self.settings.kept)
        return np.linspace(low, high, self.settings.scales).tolist()

    def characteristic(self, kernel: Float) -> Float:
        """``[columns, 2 * points]`` of a block of columns of the kernel."""
        # Points are multiples of one step, so that the exponentials are powers of one.
        step = np.exp(1j * self.settings.last / (self.settings.points - 1) * kernel)
        power = np.ones_like(step)
        values = np.empty((kernel.shape[1], self.settings.points), dtype=np.complex128)
        for point in range(self.settings.points):
            values[:, point] = power.mean(axis=0)
            power *= step
        return np.hstack([values.real, values.imag])
