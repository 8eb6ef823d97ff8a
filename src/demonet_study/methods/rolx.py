r"""``rolx``: RolX of Henderson et al. (KDD'12), on ReFeX features (Henderson et al., KDD'11).

Features V are factored into nodes by roles and roles by features, :math:`V \approx G F`, both non-negative. The number
of roles minimises the description length of V. The description measures errors by their Kullback-Leibler divergence,
and so does the factorisation: features of a node span four orders of magnitude, and squared errors would depend on the
largest alone.
"""

from __future__ import annotations

import heapq
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special
from scipy.spatial.distance import pdist, squareform
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from torch_geometric.data import Data

from demonet.errors import DemonetError
from demonet.features.graph import simple_adjacency
from demonet.features.structure import triangle_counts
from demonet.methods.base import Settings, at_least, register
from demonet.methods.cost import Cost
from demonet_study.methods.embedding import Embedding, Float

Int = NDArray[np.int64]

_SWEEPS = 50  # of Lloyd-Max quantisation


@dataclass(frozen=True)
class RolXSettings(Settings):
    """Settings of RolX."""

    roles: int | None = at_least(1, None)  # number of roles; None for that of the shortest description
    most_roles: int = at_least(1, 20)  # the largest candidate number of roles
    bits: tuple[int, ...] = at_least(1, (1, 2, 3, 4, 5, 6, 7, 8))  # candidate code lengths
    share: float = 0.5  # the share of the remaining nodes that goes to the next bin
    rounds: int = at_least(0, 10)  # the largest number of recursions
    iterations: int = at_least(1, 500)  # of the factorisation

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.share < 1:
            raise DemonetError(f"share must be in (0, 1), got {self.share!r}")


@register
class RolX(Embedding):
    """Node roles by non-negative factorisation of recursive features.

    The paper prunes all features again in every recursion, and minimises squared errors.
    """

    name = "rolx"
    cost = Cost(0.4, 0.1)
    defaults = RolXSettings(
        "Henderson et al., KDD'12 (roles) and KDD'11 (ReFeX, bins of one half); here a feature that was kept once "
        "stays, and both factors and their description use the Kullback-Leibler divergence"
    )
    settings: RolXSettings
    lengths: dict[int, float]  # after embed, the shortest description length for each number of roles

    def embed(self, data: Data, seed: int = 0) -> Float:
        """``[nodes, roles]`` the unnormalised share of each role in every node."""
        V, _ = refex(simple_adjacency(data), self.settings.share, self.settings.rounds)
        n, features = V.shape
        if self.settings.roles is not None:
            if self.settings.roles > min(n, features):
                raise DemonetError(
                    f"roles={self.settings.roles} is larger than the number of nodes ({n}) or features ({features})"
                )
            return self._factor(V, self.settings.roles, seed)[0]
        self.lengths = {}
        best, G = np.inf, np.ones((n, 1))
        if not V.any():  # no edges, one role
            return G
        for roles in range(1, min(n, features, self.settings.most_roles) + 1):
            factors = self._factor(V, roles, seed)
            self.lengths[roles] = min(description_length(V, *factors, bits) for bits in self.settings.bits)
            if self.lengths[roles] < best:
                best, G = self.lengths[roles], factors[0]
        return G

    def _factor(self, V: Float, roles: int, seed: int) -> tuple[Float, Float]:
        model = NMF(
            roles,
            init="nndsvda",
            solver="mu",
            beta_loss="kullback-leibler",
            max_iter=self.settings.iterations,
            random_state=seed,
        )
        with warnings.catch_warnings():  # a factorisation that has not converged is a candidate as well
            warnings.simplefilter("ignore", ConvergenceWarning)
            G = model.fit_transform(V)
        return G, model.components_


def local_features(adjacency: sparse.csr_array) -> Float:
    """``[nodes, 3]`` degree, edges inside the egonet (the node and its neighbours), edges that leave it."""
    degree = np.diff(adjacency.indptr).astype(np.float64)
    triangles = triangle_counts(adjacency)
    # Of the edges at the neighbours, one leads back to the node and two per triangle stay inside the egonet.
    return np.column_stack([degree, degree + triangles, adjacency @ degree - degree - 2 * triangles])


def recursive_features(adjacency: sparse.csr_array, x: Float) -> Float:
    """``[nodes, 2 * features]`` the sum of each feature over the neighbours, then the mean (0 without neighbours)."""
    total = adjacency @ x
    return np.hstack([total, total / np.maximum(np.diff(adjacency.indptr), 1)[:, None]])


def bins(x: Float, share: float) -> Int:
    """Vertical logarithmic bins of each column: the lowest share of all nodes, then of the remaining nodes, and so on.

    Equal values share a bin, so a bin may take more than its share.

    >>> bins(np.array([[5.0], [1.0], [7.0], [5.0]]), 0.5).ravel().tolist()
    [0, 0, 1, 0]
    """
    n = len(x)
    binned = np.empty(x.shape, dtype=np.int64)
    for column, values in enumerate(x.T):
        ascending = np.sort(values)
        ends, start = [], 0
        while start < n:
            start += max(1, round(share * (n - start)))
            start = int(np.searchsorted(ascending, ascending[start - 1], side="right"))
            ends.append(start)
        place = np.searchsorted(ascending, values)
        binned[:, column] = np.searchsorted(ends, place, side="right")
    return binned


def distinct(binned: Int, slack: int, settled: int = 0) -> Int:
    """The first feature of each group of linked features: those whose bins differ by at most ``slack`` on every node.

    The first ``settled`` features are always kept.
    """
    near = squareform(pdist(binned.T, "chebyshev")) <= slack
    group = sparse.csgraph.connected_components(near.astype(np.float64), directed=False)[1]
    first = np.unique(group, return_index=True)[1]
    kept: Int = np.union1d(first, np.arange(settled))
    return kept


def refex(adjacency: sparse.csr_array, share: float = 0.5, rounds: int = 10) -> tuple[Float, Int]:
    """ReFeX (Henderson et al., KDD'11): the features and their bins, simplest first.

    Local features are summed and averaged over neighbours, recursively. A new feature of recursion r is dropped when
    it is linked, directly or through others, to an existing one: when their bins differ by less than r on all nodes.
    Recursion continues from the new features, not from their bins, and ends when there are none.

    Args:
        adjacency: Symmetric 0/1 matrix without loops.
        share: The share of the remaining nodes that goes to the next bin.
        rounds: The largest number of recursions.
    """
    x = local_features(adjacency)
    x = x[:, distinct(bins(x, share), 0)]
    fresh = x
    for slack in range(rounds):
        old = x.shape[1]
        x = np.hstack([x, recursive_features(adjacency, fresh)])
        kept = distinct(bins(x, share), slack, settled=old)
        x, fresh = x[:, kept], x[:, kept[kept >= old]]
        if not fresh.shape[1]:
            break
    return x, bins(x, share)


def description_length(V: Float, G: Float, F: Float, bits: int) -> float:
    r"""Bits that a factorisation takes, with the factors rounded to :math:`2^b` levels (section 2.3 of the paper).

    .. math::
        \mathcal L = \bar b \, r \, (n + f) + \sum\nolimits_{ij}
        V_{ij} \log_2 \frac{V_{ij}}{(GF)_{ij}} + \frac{(GF)_{ij} - V_{ij}}{\ln 2}

    :math:`\bar b` is the mean length of the Huffman codes of the levels. Errors are far from normal, so they are
    measured by the Kullback-Leibler divergence.
    """
    (G, length_G), (F, length_F) = quantised(G, bits), quantised(F, bits)
    return length_G + length_F + divergence(V, G @ F)


def quantised(values: Float, bits: int) -> tuple[Float, float]:
    """The values rounded to ``2 ** bits`` levels, and the bits of their Huffman code."""
    level, levels = lloyd_max(values.ravel(), 2**bits)
    counts = np.bincount(level)
    return levels[level].reshape(values.shape), huffman(counts[counts > 0])


def lloyd_max(values: Float, size: int) -> tuple[NDArray[np.int64], Float]:
    """Lloyd-Max quantisation: the level of each value, and the levels; initial levels are quantiles."""
    levels = np.unique(np.quantile(values, (np.arange(size) + 0.5) / size))
    for _ in range(_SWEEPS):
        level = np.searchsorted((levels[1:] + levels[:-1]) / 2, values)
        counts = np.bincount(level, minlength=len(levels))
        means = np.bincount(level, values, minlength=len(levels)) / np.maximum(counts, 1)
        moved = np.where(counts > 0, means, levels)
        if np.array_equal(moved, levels):
            break
        levels = np.sort(moved)
    return np.searchsorted((levels[1:] + levels[:-1]) / 2, values), levels


def huffman(counts: NDArray[np.int64]) -> float:
    """Bits of the Huffman code of symbols with these counts: the sum of all merged counts.

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
    return float(special.kl_div(V, np.maximum(product, 1e-9)).sum() / np.log(2))
