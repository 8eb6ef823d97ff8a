"""Structural features of the nodes of a graph: degrees around a node, triangles, centralities, diffusion.

All of them are functions of the graph alone, so that they have a value on any other graph. The groups ``"local"``
(linear in edges), ``"triangles"`` (walks of two steps) and ``"global"`` (all pairs of nodes) grow in cost;
:func:`affordable_groups` drops those that a large graph cannot afford.
"""

from __future__ import annotations

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from torch_geometric.data import Data

from demonet.kernels.nodes import over_neighbours, settled

Float = NDArray[np.float64]
GROUPS = ("local", "triangles", "global")
OCTAVES = 8  # neighbours by degree: 0 or 1, 2 to 3, 4 to 7, ..., 128 and above
HEAT_TIMES = (0.5, 1.0, 2.0, 4.0, 8.0)
PAIRS = 4_000_000  # pairs of edges that are looked at at once
WALKS = 3e8  # walks of two steps up to which triangles are counted
ALL_PAIRS = 2000  # nodes up to which all pairs are compared


def simple_adjacency(data: Data) -> sparse.csr_array:
    """Symmetric 0/1 adjacency matrix without loops."""
    source, target = data.edge_index.cpu().numpy()
    kept, n = source != target, int(data.num_nodes or 0)
    matrix = sparse.csr_array((np.ones(kept.sum()), (target[kept], source[kept])), shape=(n, n))
    matrix = sparse.csr_array(matrix + matrix.T)
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix


def neighbour_mean(adjacency: sparse.csr_array, value: Float) -> Float:
    """The mean of a value, or of rows, over the neighbours of each node; 0 where there are none."""
    share = sparse.diags_array(1 / np.maximum(np.diff(adjacency.indptr), 1))
    return share @ (adjacency @ value)


def affordable_groups(adjacency: sparse.csr_array) -> list[str]:
    """The groups of features that a graph of this size can afford."""
    degree = np.diff(adjacency.indptr).astype(np.float64)
    fits = {"local": True, "triangles": float(degree @ degree) <= WALKS, "global": len(degree) <= ALL_PAIRS}
    return [group for group in GROUPS if fits[group]]


def structural_features(adjacency: sparse.csr_array, groups: list[str]) -> Float:
    """``[nodes, features]`` of the groups, side by side; every column is finite."""
    make = {"local": _local, "triangles": _triangles, "global": _global}
    return settled(np.column_stack([make[group](adjacency) for group in groups]))


def _local(adjacency: sparse.csr_array) -> Float:
    degree = np.diff(adjacency.indptr).astype(np.float64)
    log_degree = np.log1p(degree)
    mean = neighbour_mean(adjacency, log_degree)
    second = neighbour_mean(adjacency, mean)
    octave = np.minimum(np.log2(np.maximum(degree, 1)).astype(int), OCTAVES - 1)
    return np.column_stack(
        [
            log_degree,
            mean,
            _deviation(adjacency, log_degree, mean),
            over_neighbours(np.minimum, adjacency, log_degree),
            over_neighbours(np.maximum, adjacency, log_degree),
            np.log1p(adjacency @ degree),
            second,
            _deviation(adjacency, mean, second),
            neighbour_mean(adjacency, second),
            neighbour_mean(adjacency, np.eye(OCTAVES)[octave]),
            np.log(pagerank(adjacency) * max(1, len(degree))),
        ]
    )


def triangle_counts(adjacency: sparse.csr_array) -> Float:
    """``[nodes]`` in how many triangles a node is, in O(m^1.5) time however large the hubs are.

    Every edge points to the end of higher degree, so no node has more than sqrt(2 m) outgoing edges; a triangle is a
    pair of outgoing edges of one node whose ends are joined.
    """
    n, degree = adjacency.shape[0], np.diff(adjacency.indptr)
    rank = np.empty(n, np.int64)
    rank[np.lexsort((np.arange(n), degree))] = np.arange(n)
    owner = np.repeat(np.arange(n), degree)
    up = rank[owner] < rank[adjacency.indices]
    tail, head = rank[owner[up]], rank[adjacency.indices[up]]
    order = np.lexsort((head, tail))
    tail, head = tail[order], head[order]
    known = tail * n + head  # ascending
    later = np.searchsorted(tail, tail, side="right") - np.arange(len(tail)) - 1  # further edges of the same tail
    found, total = np.zeros(n), np.cumsum(later)
    start = 0
    while start < len(tail):
        stop = max(start + 1, int(np.searchsorted(total, total[start] - later[start] + PAIRS, side="right")))
        first = np.repeat(np.arange(start, stop), later[start:stop])
        step = np.arange(len(first)) - np.repeat(np.cumsum(later[start:stop]) - later[start:stop], later[start:stop])
        second = first + 1 + step
        wanted = head[first] * n + head[second]
        joined = known[np.minimum(np.searchsorted(known, wanted), len(known) - 1)] == wanted
        for corner in (tail[first[joined]], head[first[joined]], head[second[joined]]):
            found += np.bincount(corner, minlength=n)
        start = stop
    return found[rank]


def _triangles(adjacency: sparse.csr_array) -> Float:
    degree = np.diff(adjacency.indptr).astype(np.float64)
    triangles, within_two = triangle_counts(adjacency), np.zeros(len(degree))
    step = max(1, int(2e7 * len(degree) / max(1.0, float(degree @ degree))))  # rows whose walks fit into memory
    for start in range(0, len(degree), step):
        rows = slice(start, start + step)
        walks = adjacency[rows] @ adjacency
        within_two[rows] = np.diff(sparse.csr_array(walks + adjacency[rows]).indptr)
    inside = degree + triangles
    leaving = np.maximum(adjacency @ degree - degree - 2 * triangles, 0)
    clustering = triangles / np.maximum(degree * (degree - 1) / 2, 1)
    return np.column_stack([clustering, np.log1p(inside), np.log1p(leaving), np.log1p(within_two)])


def _global(adjacency: sparse.csr_array) -> Float:
    closeness, betweenness = path_centralities(adjacency)
    core = nx.core_number(nx.from_scipy_sparse_array(adjacency))
    n = adjacency.shape[0]
    return np.column_stack(
        [
            closeness,
            np.log1p(betweenness),
            np.log1p([core[v] for v in range(n)]),
            np.log(np.maximum(_eigenvector(adjacency), 1e-9)),
            heat_signatures(adjacency),
        ]
    )


def pagerank(adjacency: sparse.csr_array, damping: float = 0.85) -> Float:
    """The stationary distribution of a random walk that restarts with probability 1 - damping."""
    n, degree = adjacency.shape[0], np.diff(adjacency.indptr)
    rank = np.full(n, 1 / max(1, n))
    for _ in range(100):
        after = damping * (adjacency @ (rank / np.maximum(degree, 1)) + rank[degree == 0].sum() / n) + (1 - damping) / n
        done, rank = np.abs(after - rank).sum() < 1e-8, after
        if done:
            break
    return rank


def path_centralities(adjacency: sparse.csr_array) -> tuple[Float, Float]:
    """Closeness (Wasserman and Faust, as NetworkX has it) and betweenness (pairs counted once) of every node.

    Brandes' algorithm for many sources at once: ``paths[v, s]`` counts shortest paths from s to v, level by level;
    dependencies go back the same way.
    """
    n = adjacency.shape[0]
    closeness, betweenness = np.zeros(n), np.zeros(n)
    for start in range(0, n, 500):
        source = np.arange(start, min(n, start + 500))
        column = np.arange(len(source))
        distance = np.full((n, len(source)), -1)
        paths = np.zeros((n, len(source)))
        distance[source, column], paths[source, column] = 0, 1.0
        level, front = 0, paths.copy()
        while front.any():
            level += 1
            front = (adjacency @ front) * (distance < 0)
            distance[front > 0] = level
            paths += front
        reached, total = (distance >= 0).sum(0) - 1, np.maximum(distance, 0).sum(0)
        closeness[source] = reached**2 / np.maximum(total * max(1, n - 1), 1)
        dependency = np.zeros_like(paths)
        for back in range(level - 1, 0, -1):
            here = distance == back
            share = np.where(distance == back + 1, (1 + dependency) / np.maximum(paths, 1), 0.0)
            dependency += here * paths * (adjacency @ share)
        betweenness += dependency.sum(1) / 2
    return closeness, betweenness


def heat_signatures(adjacency: sparse.csr_array) -> Float:
    """``log diag exp(-t L)`` of the normalised Laplacian, for five times t."""
    scale = 1 / np.sqrt(np.maximum(np.diff(adjacency.indptr), 1))
    laplacian = np.eye(adjacency.shape[0]) - adjacency.toarray() * scale[:, None] * scale
    value, vector = np.linalg.eigh(laplacian)
    return np.log(np.maximum(vector**2 @ np.exp(-np.outer(value, HEAT_TIMES)), 1e-12))


def _eigenvector(adjacency: sparse.csr_array) -> Float:
    """Eigenvector centrality, of length one: power iteration on A + I, which converges on bipartite graphs too."""
    vector = np.full(adjacency.shape[0], 1.0)
    for _ in range(200):
        vector = adjacency @ vector + vector
        vector /= np.linalg.norm(vector)
    return vector


def _deviation(adjacency: sparse.csr_array, value: Float, mean: Float) -> Float:
    return np.sqrt(np.maximum(neighbour_mean(adjacency, value**2) - mean**2, 0.0))
