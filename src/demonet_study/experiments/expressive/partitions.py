"""Equality of vectors up to rounding, of partitions, and of what a layer makes of pairs over many draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import pdist, squareform
from torch import Tensor, nn

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


def collision_shares(
    build: Callable[[int], nn.Module],
    graph: tuple[Tensor, Tensor, Tensor],
    pairs: Sequence[tuple[Int, Int]],
    draws: range,
) -> list[Float]:
    """The share of draws of the weights in which a layer maps each pair of rows to one vector, for each list of pairs.

    Args:
        build: Makes the layer of a draw, whose number also seeds torch's generator.
        graph: Features, edges, and the nodes whose vectors are compared: the rows that the pairs number.
        pairs: Lists of pairs, as the indices of the first and of the second rows.
        draws: The numbers of the draws.
    """
    x, edge_index, nodes = graph
    counts = [np.zeros(len(left), dtype=np.int64) for left, _ in pairs]
    for draw in draws:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(draw)
            out = build(draw).double()(x, edge_index)[nodes].numpy()
        for count, (left, right) in zip(counts, pairs, strict=True):
            count += alike(out, left, right)
    return [count / len(draws) for count in counts]


def tally(share: Float) -> tuple[int, int]:
    """How many pairs collide in every draw, and how many in some draws and not in others."""
    always, never = int((share == 1).sum()), int((share == 0).sum())
    return always, len(share) - always - never
