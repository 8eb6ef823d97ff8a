"""The shape of a node's surroundings in ten numbers, vectorised over all nodes of a graph or of many graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch_geometric.data import Data

Float = NDArray[np.float64]

NAMES = (
    "log degree",
    "mean log degree of neighbours",
    "least log degree of neighbours",
    "largest log degree of neighbours",
    "clustering coefficient",
    "log edges inside the egonet",
    "log edges that leave the egonet",
    "log nodes within two steps",
    "log core number",
    "log PageRank",
)
PAIRS = 20_000_000  # walks of two steps that are held at once


def simple_adjacency(data: Data | Sequence[Data]) -> sparse.csr_array:
    """Symmetric 0/1 adjacency matrix of a graph, or of the disjoint union of graphs: no loops, no directions."""
    graphs = [data] if isinstance(data, Data) else list(data)
    sizes = np.array([int(graph.num_nodes or 0) for graph in graphs])
    first = np.cumsum(sizes) - sizes
    arcs = torch.cat([graph.edge_index.cpu() + int(start) for graph, start in zip(graphs, first, strict=True)], 1)
    source, target = arcs.numpy()
    kept = source != target
    source, target = np.concatenate([[source[kept], target[kept]], [target[kept], source[kept]]], axis=1)
    n = int(sizes.sum())
    matrix = sparse.csr_array((np.ones(source.size), (source, target)), shape=(n, n))
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix


def structural_features(adjacency: sparse.csr_array) -> Float:
    """``[nodes, 10]`` the numbers of `NAMES`, for a matrix as :func:`simple_adjacency` gives it."""
    degree = np.diff(adjacency.indptr)
    log_degree = np.log1p(degree)
    triangles, within_two = two_steps(adjacency)
    possible = degree * (degree - 1) / 2
    inside = degree + triangles
    # Every edge at a neighbour is an arc out of it: one goes to the node itself, two for each triangle stay inside.
    leaving = adjacency @ degree.astype(np.float64) - degree - 2 * triangles
    core = nx.core_number(nx.from_scipy_sparse_array(adjacency))
    return np.column_stack(
        [
            log_degree,
            (adjacency @ log_degree) / np.maximum(degree, 1),
            _over_neighbours(np.minimum, adjacency, log_degree),
            _over_neighbours(np.maximum, adjacency, log_degree),
            triangles / np.maximum(possible, 1),
            np.log1p(inside),
            np.log1p(leaving),
            np.log1p(within_two),
            np.log1p([core[v] for v in range(len(degree))]),
            np.log(pagerank(adjacency) * max(1, len(degree))),
        ]
    )


def two_steps(adjacency: sparse.csr_array) -> tuple[Float, Float]:
    """How many triangles each node is in, and how many other nodes are one or two steps away."""
    n = adjacency.shape[0]
    triangles, within = np.zeros(n), np.zeros(n)
    for rows in _blocks(adjacency):
        near = adjacency[rows]
        walks = near @ adjacency
        triangles[rows] = walks.multiply(near).sum(axis=1) / 2
        # The walks there and back make every node that has a neighbour two steps away from itself.
        within[rows] = np.diff((walks + near).indptr) - (np.diff(near.indptr) > 0)
    return triangles, within


def pagerank(adjacency: sparse.csr_array, damping: float = 0.85, tolerance: float = 1e-10) -> Float:
    """The stationary distribution of a walk that starts afresh with chance 1 - damping, or where there is no edge."""
    n = adjacency.shape[0]
    degree = np.diff(adjacency.indptr)
    share = np.where(degree > 0, 1 / np.maximum(degree, 1), 0.0)
    rank = np.full(n, 1 / max(1, n))
    for _ in range(1000):  # the error falls by the damping each time: 0.85 ** 142 < 1e-10
        stranded = rank[degree == 0].sum()
        after = damping * (adjacency @ (share * rank) + stranded / n) + (1 - damping) / n
        rank, before = after, rank
        if np.abs(rank - before).sum() < tolerance:
            break
    return rank


def _over_neighbours(reduce: np.ufunc, adjacency: sparse.csr_array, value: Float) -> Float:
    """The reduction of a value over each node's neighbours; 0 where there are none."""
    result = np.zeros(len(value))
    some = np.flatnonzero(np.diff(adjacency.indptr))
    if some.size:
        result[some] = reduce.reduceat(value[adjacency.indices], adjacency.indptr[some])
    return result


def _blocks(adjacency: sparse.csr_array) -> Iterator[slice]:
    """Consecutive rows, as many as keep the walks of two steps from them in bounds, at least one."""
    walks = np.cumsum(adjacency @ np.diff(adjacency.indptr).astype(np.float64))
    start, n = 0, adjacency.shape[0]
    while start < n:
        done = walks[start - 1] if start else 0.0
        stop = max(start + 1, int(np.searchsorted(walks, done + PAIRS, side="right")))
        yield slice(start, stop)
        start = stop
