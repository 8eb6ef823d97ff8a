"""An order of nodes that comes from the graph and not from their numbers: ranks by Weisfeiler-Lehman, ties broken."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array


def wl_ranks(arcs: csr_array) -> np.ndarray:
    """``[n]`` the rank of each node's stable 1-WL colour, 0 for the highest degrees; equal colours share a rank.

    Colours start as degrees. One that is split is split by the ranks of the neighbours, lower ones first, so two
    graphs that differ in the numbers of their nodes alone get the same ranks.

    >>> path = csr_array(np.diag([1, 1, 1], 1) + np.diag([1, 1, 1], -1))
    >>> wl_ranks(path).tolist()
    [1, 0, 0, 1]
    """
    neighbours = np.split(arcs.indices, arcs.indptr[1:-1])
    rank = _ranked([-len(near) for near in neighbours])
    while True:
        finer = _ranked([(rank[v], *np.sort(rank[near]).tolist()) for v, near in enumerate(neighbours)])
        if finer.max(initial=0) == rank.max(initial=0):
            return rank
        rank = finer


def _ranked(keys: list) -> np.ndarray:  # type: ignore[type-arg]
    places = {key: place for place, key in enumerate(sorted(set(keys)))}
    return np.array([places[key] for key in keys], dtype=np.int64)


def canonical_order(adj: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """``[graphs, k]`` the nodes of many graphs of k nodes in canonical order, which respects a rank where it decides.

    Ranks are refined by the ranks of the neighbours until nothing changes; if nodes are still tied, one of the first
    tied ones is set before the others, and so on. This is one path down the search tree of nauty: it is canonical
    where tied nodes are alike (an automorphism swaps them), as they nearly always are in so small a graph.

    Args:
        adj: ``[graphs, k, k]`` adjacency.
        rank: ``[graphs, k]`` numbers that come first; equal where they leave it open.
    """
    k = rank.shape[1]
    rank = _finer(rank, np.zeros_like(rank))
    weight = (k + 1) ** np.arange(k, dtype=np.int64)
    open_ = np.arange(len(rank))
    while open_.size:
        now, refined = rank[open_], None
        while refined is None or (refined != now).any():
            now = refined if refined is not None else now
            # How many neighbours of each rank, as the digits of one number.
            refined = _finer(now, (adj[open_] * weight[now][:, None, :]).sum(2))
        rank[open_] = refined
        tied = (refined[:, :, None] == refined[:, None, :]).sum(2) > 1
        open_ = open_[tied.any(1)]
        first = np.where(tied, refined, k)[tied.any(1)].argmin(1)
        chosen = rank[open_, first]
        later = rank[open_] == chosen[:, None]
        later[np.arange(open_.size), first] = False
        rank[open_] += later
    return rank.argsort(axis=1)


def _finer(rank: np.ndarray, key: np.ndarray) -> np.ndarray:
    """How many nodes of the same graph come before each: a smaller rank, or the same one and a smaller key."""
    before = rank[:, None, :] < rank[:, :, None]
    before |= (rank[:, None, :] == rank[:, :, None]) & (key[:, None, :] < key[:, :, None])
    return before.sum(2)
