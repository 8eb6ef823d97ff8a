"""Equality of vectors up to rounding, and of partitions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import pdist, squareform

TOLERANCE = 1e-9  # relative to the largest entry; float64 rounding is a million times smaller

Int = NDArray[np.int64]
Float = NDArray[np.float64]


def alike(vectors: Float, left: Int, right: Int) -> NDArray[np.bool_]:
    """Whether rows ``left`` and ``right`` are equal up to a billionth of the largest entry."""
    result: NDArray[np.bool_] = np.abs(vectors[left] - vectors[right]).max(axis=1) < TOLERANCE * np.abs(vectors).max()
    return result


def classes(vectors: Float) -> tuple[Int, float, float]:
    """Which rows are equal: the class of each, the largest distance inside a class, the least between two.

    Distances are those of the coordinate that differs most, relative to the largest entry. Rows closer than 1e-9 are
    connected, and classes are connected components; the two distances show how clear the answer is.
    """
    distance = squareform(pdist(vectors, "chebyshev")) / np.abs(vectors).max()
    _, label = connected_components(distance < TOLERANCE, directed=False)
    together = label[:, None] == label[None, :]
    return label.astype(np.int64), float(distance[together].max()), float(distance[~together].min(initial=np.inf))


def same_partition(one: Int, other: Int) -> bool:
    """Whether two labellings group the same elements together, whatever their labels are."""
    both = len(set(zip(one.tolist(), other.tolist(), strict=True)))
    return both == len(set(one.tolist())) == len(set(other.tolist()))
