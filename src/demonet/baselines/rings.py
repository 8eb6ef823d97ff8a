r"""How unlike the surroundings of two nodes are: struc2vec's structural distance (Ribeiro et al., KDD'17, section 3.1).

:math:`R_k(u)` are the nodes at k steps from u, :math:`s(R)` their degrees in order, and g compares two such sequences
by dynamic time warping with the cost :math:`d(a, b) = \max(a, b) / \min(a, b) - 1`:

.. math::
    f_k(u, v) = f_{k-1}(u, v) + g(s(R_k(u)), s(R_k(v))), \qquad f_{-1} = 0

where both rings have nodes. Compressed, a sequence lists each degree once, with its number, and the cost is
:math:`d((a, a'), (b, b')) = d(a, b) \max(a', b')`. A node without neighbours has degree ½ here, as 0 has no ratio.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Float = NDArray[np.float64]
Int = NDArray[np.int64]

CELLS = 50_000  # of the arrays that are worked on at once: few enough for the cache


class Sequences(NamedTuple):
    """A sequence a node, one after the other: ``pointer[u] : pointer[u + 1]`` are those of node u."""

    pointer: Int
    degree: Float
    times: Float


def rings(adjacency: sparse.csr_array, layers: int, *, compressed: bool = True) -> Iterator[Sequences]:
    """The ordered degrees of the rings R_0, R_1 and so on, for ``layers`` of them or until all are empty."""
    n = adjacency.shape[0]
    degree = np.diff(adjacency.indptr)
    values, place = np.unique(degree, return_inverse=True)
    by_degree = sparse.csr_array((np.ones(n), (np.arange(n), place)), shape=(n, len(values)))
    ring = seen = sparse.eye_array(n, format="csr")
    for _ in range(layers):
        counts = sparse.csr_array(ring @ by_degree)  # its rows are the compressed sequences
        counts.sort_indices()
        listed = np.where(values == 0, 0.5, values)[counts.indices]
        if compressed:
            yield Sequences(counts.indptr.astype(np.int64), listed, counts.data)
        else:
            repeats = counts.data.astype(np.int64)
            ends = np.concatenate([[0], np.cumsum(repeats)])[counts.indptr]
            yield Sequences(ends, np.repeat(listed, repeats), np.ones(int(repeats.sum())))
        reached = ring @ adjacency
        reached.data[:] = 1.0
        ring = sparse.csr_array(reached - reached.multiply(seen))
        ring.eliminate_zeros()
        if not ring.nnz:
            return
        seen = seen + ring


def warping(sequences: Sequences, u: Int, v: Int) -> Float:
    """The dynamic time warping distance of the sequences of each pair; NaN where one of the two is empty."""
    length = np.diff(sequences.pointer)
    found = np.full(len(u), np.nan)
    pairs = np.flatnonzero((length[u] > 0) & (length[v] > 0))
    pairs = pairs[np.argsort(np.maximum(length[u], length[v])[pairs], kind="stable")]  # alike in length: little padding
    while pairs.size:
        # From the longest on, as many as fit: all are as wide as the first of them.
        width = int(max(length[u[pairs[-1]]], length[v[pairs[-1]]]))
        batch = pairs[-max(1, CELLS // width) :]
        found[batch] = _warped(_padded(sequences, u[batch], width), _padded(sequences, v[batch], width))
        pairs = pairs[: -len(batch)]
    return found


class _Padded(NamedTuple):
    degree: Float
    times: Float
    length: Int


def _padded(sequences: Sequences, nodes: Int, width: int) -> _Padded:
    """``[nodes, width]``, each sequence at the beginning of its row."""
    start, length = sequences.pointer[nodes], np.diff(sequences.pointer)[nodes]
    place = np.minimum(start[:, None] + np.minimum(np.arange(width), length[:, None] - 1), len(sequences.degree) - 1)
    return _Padded(sequences.degree[place], sequences.times[place], length)


def _warped(a: _Padded, b: _Padded) -> Float:
    """All tables at once, one antidiagonal after the other: cells of one do not depend on each other."""
    pairs, width = a.degree.shape
    last = a.length + b.length - 2  # the antidiagonal of each table's last cell
    found = np.empty(pairs)
    # Column i + 1 of these holds row i of the table; column 0 and those outside the table cost infinitely much.
    before, current = (np.full((pairs, width + 1), np.inf) for _ in range(2))
    before[:, 0] = 0.0  # from where the first cell is entered
    for diagonal in range(int(last.max()) + 1):
        low, high = max(0, diagonal - width + 1), min(diagonal, width - 1) + 1
        here, there = slice(low, high), slice(diagonal - high + 1, diagonal - low + 1)
        x, y = a.degree[:, here], b.degree[:, there][:, ::-1]
        cost = np.maximum(x, y) / np.minimum(x, y) - 1
        cost *= np.maximum(a.times[:, here], b.times[:, there][:, ::-1])
        after = np.full((pairs, width + 1), np.inf)
        best = np.minimum(current[:, low:high], current[:, low + 1 : high + 1])
        after[:, low + 1 : high + 1] = cost + np.minimum(best, before[:, low:high])
        before, current = current, after
        done = np.flatnonzero(last == diagonal)
        found[done] = current[done, a.length[done]]
    return found
