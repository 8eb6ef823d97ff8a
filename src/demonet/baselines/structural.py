"""``structural-lr`` and ``structural-rf``: simple baselines on ten structural features of a node.

The features are degree, degrees of the neighbours, clustering, egonet, two-step neighbourhood, core number and
PageRank, computed for all nodes of a graph or of many graphs at once. A graph is described by the mean and standard
deviation of each feature over its nodes, and by the logarithms of its numbers of nodes and edges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch_geometric.data import Data

from demonet.baselines.base import Baseline, Items, Settings, register
from demonet.baselines.selection import logistic, select
from demonet.data.splits import Split

Float = NDArray[np.float64]

_TREES = 200
_LEAF_SIZES = (10, 5, 2, 1)  # the smallest number of training items in a leaf
_PAIRS = 20_000_000  # walks of two steps held in memory at once


@register
class StructuralLR(Baseline):
    """Multinomial logistic regression on ten structural features and their squares; C is selected on validation."""

    name = "structural-lr"
    defaults = Settings("simple baseline of this project")

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> Tensor:
        x = StandardScaler().fit_transform(structural_rows(data))
        x = StandardScaler().fit_transform(np.hstack([x, x**2]))
        selected = logistic(x, y, split, kept=self.chosen)
        self.chosen = selected.model
        return selected.predict(x)


@register
class StructuralRF(Baseline):
    """Random forest of 200 trees on ten structural features; the size of leaves is selected on validation."""

    name = "structural-rf"
    defaults = Settings("simple baseline of this project")

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> Tensor:
        x = structural_rows(data)
        models = [_forest(leaf, seed) for leaf in _LEAF_SIZES]
        selected = select(models, x, y, split, default=_forest(2, seed), kept=self.chosen)
        self.chosen = selected.model
        return selected.predict(x)


def _forest(leaf: int, seed: int) -> RandomForestClassifier:
    return RandomForestClassifier(_TREES, min_samples_leaf=leaf, random_state=seed)


def structural_rows(data: Items) -> Float:
    """One row per node of a graph, or one row per graph of a sequence."""
    x = structural_features(simple_adjacency(data))
    return x if isinstance(data, Data) else _pool(x, data)


def _pool(x: Float, graphs: Sequence[Data]) -> Float:
    sizes = np.array([int(graph.num_nodes or 0) for graph in graphs])
    edges = np.array([graph.edge_index.size(1) for graph in graphs])
    rows = [
        np.concatenate([part.mean(0), part.std(0)]) if len(part) else np.zeros(2 * x.shape[1])
        for part in np.split(x, np.cumsum(sizes)[:-1])
    ]
    return np.column_stack([np.stack(rows), np.log1p(sizes), np.log1p(edges)])


def simple_adjacency(data: Items) -> sparse.csr_array:
    """Symmetric 0/1 adjacency matrix of a graph, or of the disjoint union of graphs, without loops and directions."""
    graphs = [data] if isinstance(data, Data) else list(data)
    sizes = np.array([int(graph.num_nodes or 0) for graph in graphs])
    first = np.cumsum(sizes) - sizes
    edges = torch.cat([graph.edge_index.cpu() + int(start) for graph, start in zip(graphs, first, strict=True)], 1)
    source, target = edges.numpy()
    proper = source != target
    source, target = np.concatenate([[source[proper], target[proper]], [target[proper], source[proper]]], axis=1)
    n = int(sizes.sum())
    matrix = sparse.csr_array((np.ones(source.size), (source, target)), shape=(n, n))
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix


def structural_features(adjacency: sparse.csr_array) -> Float:
    """``[nodes, 10]`` the features of each node, given a matrix from :func:`simple_adjacency`."""
    degree = np.diff(adjacency.indptr)
    log_degree = np.log1p(degree)
    triangles, within_two = two_steps(adjacency)
    possible = degree * (degree - 1) / 2
    inside = degree + triangles
    # Of the edges at the neighbours, one leads back to the node and two per triangle stay inside the egonet.
    leaving = adjacency @ degree.astype(np.float64) - degree - 2 * triangles
    core = nx.core_number(nx.from_scipy_sparse_array(adjacency))
    return np.column_stack(
        [
            log_degree,
            (adjacency @ log_degree) / np.maximum(degree, 1),
            _over_neighbours(np.minimum, adjacency, log_degree),
            _over_neighbours(np.maximum, adjacency, log_degree),
            triangles / np.maximum(possible, 1),  # clustering coefficient
            np.log1p(inside),  # edges inside the egonet: the node and its neighbours
            np.log1p(leaving),  # edges that leave the egonet
            np.log1p(within_two),
            np.log1p([core[v] for v in range(len(degree))]),
            np.log(pagerank(adjacency) * max(1, len(degree))),
        ]
    )


def two_steps(adjacency: sparse.csr_array) -> tuple[Float, Float]:
    """The number of triangles at each node, and the number of other nodes at most two steps away."""
    n = adjacency.shape[0]
    triangles, within = np.zeros(n), np.zeros(n)
    for rows in _blocks(adjacency):
        near = adjacency[rows]
        walks = near @ adjacency
        triangles[rows] = walks.multiply(near).sum(axis=1) / 2
        # A walk to a neighbour and back counts the node itself, which is not another node.
        within[rows] = np.diff((walks + near).indptr) - (np.diff(near.indptr) > 0)
    return triangles, within


def pagerank(adjacency: sparse.csr_array, damping: float = 0.85, tolerance: float = 1e-10) -> Float:
    """PageRank; a node without neighbours passes its rank to all nodes equally."""
    n = adjacency.shape[0]
    degree = np.diff(adjacency.indptr)
    share = np.where(degree > 0, 1 / np.maximum(degree, 1), 0.0)
    rank = np.full(n, 1 / max(1, n))
    for _ in range(1000):  # the error shrinks by the damping each time: 0.85 ** 142 < 1e-10
        stranded = rank[degree == 0].sum()
        after = damping * (adjacency @ (share * rank) + stranded / n) + (1 - damping) / n
        rank, before = after, rank
        if np.abs(rank - before).sum() < tolerance:
            break
    return rank


def _over_neighbours(reduce: np.ufunc, adjacency: sparse.csr_array, value: Float) -> Float:
    """A reduction of the neighbours' values at each node; 0 without neighbours."""
    result = np.zeros(len(value))
    some = np.flatnonzero(np.diff(adjacency.indptr))
    if some.size:
        result[some] = reduce.reduceat(value[adjacency.indices], adjacency.indptr[some])
    return result


def _blocks(adjacency: sparse.csr_array) -> Iterator[slice]:
    """Slices of consecutive rows with at most ``_PAIRS`` walks of two steps each, or of a single row."""
    walks = np.cumsum(adjacency @ np.diff(adjacency.indptr).astype(np.float64))
    start, n = 0, adjacency.shape[0]
    while start < n:
        done = walks[start - 1] if start else 0.0
        stop = max(start + 1, int(np.searchsorted(walks, done + _PAIRS, side="right")))
        yield slice(start, stop)
        start = stop
