"""ReFeX (Henderson et al., KDD'11): local features of a node, then sums and means over neighbours, again and again.

Binned features that agree on all nodes are one feature, and recursion ends when a round brings no other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import pdist, squareform

from demonet.baselines.structure import two_steps

Float = NDArray[np.float64]
Int = NDArray[np.int64]


def local_features(adjacency: sparse.csr_array) -> Float:
    """``[nodes, 3]`` degree, edges inside the egonet (a node and its neighbours), edges that leave it."""
    degree = np.diff(adjacency.indptr).astype(np.float64)
    triangles, _ = two_steps(adjacency)
    # Every edge of a neighbour is one of its arcs: one leads back to the node, two for each triangle stay inside.
    return np.column_stack([degree, degree + triangles, adjacency @ degree - degree - 2 * triangles])


def recursive_features(adjacency: sparse.csr_array, x: Float) -> Float:
    """``[nodes, 2 * features]`` the sum of each feature over a node's neighbours, then the mean (0 of none)."""
    total = adjacency @ x
    return np.hstack([total, total / np.maximum(np.diff(adjacency.indptr), 1)[:, None]])


def bins(x: Float, share: float) -> Int:
    """Vertical logarithmic bins of each column: the lowest share of all nodes, then of those left, and so on.

    Nodes of one value stay together, so a bin may take more than its share.

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
    """The first feature of each group: features whose bins differ by at most ``slack`` on every node are linked.

    The first ``settled`` features stay in any case.
    """
    near = squareform(pdist(binned.T, "chebyshev")) <= slack
    group = sparse.csgraph.connected_components(near.astype(np.float64), directed=False)[1]
    first = np.unique(group, return_index=True)[1]
    kept: Int = np.union1d(first, np.arange(settled))
    return kept


def refex(adjacency: sparse.csr_array, share: float = 0.5, rounds: int = 10) -> tuple[Float, Int]:
    """Features as they are and binned, simplest first.

    New features of recursion r, of 1, 2, ..., are left out when their bins differ by less than r, on all nodes, from
    those of a feature that is there, or are linked to such a feature through others. Recursion goes on from the
    features that are kept, as they are, not binned.

    Args:
        adjacency: Symmetric, 0 and 1, no loops.
        share: Of the nodes that are left, those that go to the next bin.
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
