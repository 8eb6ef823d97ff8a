r"""How many bits a factorisation takes to write down, as RolX counts them (Henderson et al., KDD'12, section 2.3).

.. math::
    \mathcal L = \bar b \, r \, (n + f) + \sum\nolimits_{ij}
    V_{ij} \log_2 \frac{V_{ij}}{(GF)_{ij}} + \frac{(GF)_{ij} - V_{ij}}{\ln 2}

G and F are rounded to :math:`2^b` levels (Lloyd and Max), :math:`\bar b` is the mean length of their Huffman codes,
and the errors are counted by the Kullback-Leibler divergence, as they are far from normal.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

SWEEPS = 50


def description_length(V: Float, G: Float, F: Float, bits: int) -> float:
    """Bits for the two factors, each at ``2 ** bits`` levels, and for what their product misses."""
    (G, length_G), (F, length_F) = quantised(G, bits), quantised(F, bits)
    return length_G + length_F + divergence(V, G @ F)


def quantised(values: Float, bits: int) -> tuple[Float, float]:
    """The values at ``2 ** bits`` levels, and their bits under the Huffman code of the levels."""
    level, levels = lloyd_max(values.ravel(), 2**bits)
    counts = np.bincount(level)
    return levels[level].reshape(values.shape), huffman(counts[counts > 0])


def lloyd_max(values: Float, size: int) -> tuple[NDArray[np.int64], Float]:
    """The level of each value and the levels, each the mean of the values nearest to it; started at quantiles."""
    levels = np.unique(np.quantile(values, (np.arange(size) + 0.5) / size))
    for _ in range(SWEEPS):
        level = np.searchsorted((levels[1:] + levels[:-1]) / 2, values)
        counts = np.bincount(level, minlength=len(levels))
        means = np.bincount(level, values, minlength=len(levels)) / np.maximum(counts, 1)
        moved = np.where(counts > 0, means, levels)
        if np.array_equal(moved, levels):
            break
        levels = np.sort(moved)
    return np.searchsorted((levels[1:] + levels[:-1]) / 2, values), levels


def huffman(counts: NDArray[np.int64]) -> float:
    """Bits that the best prefix code takes for symbols that occur so often: the sum of all merged counts.

    >>> huffman(np.array([4, 2, 1, 1]))  # codes of 1, 2, 3 and 3 bits
    14.0
    """
    heap = counts.tolist()
    heapq.heapify(heap)
    total = 0.0
    while len(heap) > 1:
        merged = heapq.heappop(heap) + heapq.heappop(heap)
        total += merged
        heapq.heappush(heap, merged)
    return total


def divergence(V: Float, product: Float) -> float:
    """Generalised Kullback-Leibler divergence in bits."""
    product = np.maximum(product, 1e-9)
    some = V > 0
    return float((V[some] * np.log2(V[some] / product[some])).sum() + (product - V).sum() / np.log(2))
