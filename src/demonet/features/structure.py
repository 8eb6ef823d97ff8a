"""Numbers about the graph around each node: degrees, triangles, centralities, diffusion.

All of them are functions of the graph alone, so that they have a value on any other graph. They are chosen from
:data:`COLUMNS` by name. The :data:`GROUPS` of names grow in cost: ``"local"`` (linear in edges),
``"triangles"`` (walks of two steps) and ``"global"`` (all pairs of nodes); :func:`affordable_groups` drops those that
a large graph cannot afford.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from demonet.features.graph import Float, neighbour_mean, over_neighbours

OCTAVES = 8  # neighbours by degree: 0 or 1, 2 to 3, 4 to 7, ..., 128 and above
HEAT_TIMES = (0.5, 1.0, 2.0, 4.0, 8.0)
RADIAL = 12  # radial functions over log-degree
WALKS = 3e8  # walks of two steps up to which triangles are counted
WALKS_AT_ONCE = 1e7  # of which so many are in memory
DAMPING = 0.85  # of PageRank
ALL_PAIRS = 2000  # nodes up to which all pairs are compared


class Surroundings:
    """The graph around every node: what several :data:`COLUMNS` are made of, each computed once.

    Args:
        adjacency: Of 0 and 1, as :func:`~demonet.features.graph.simple_adjacency` gives it.

    Attributes:
        mean, second: The mean log-degree of neighbours, and over two hops.
        walks: The number of walks of two steps.
        triangles, within_two, paths: See :func:`triangle_counts`, :func:`within_two`, :func:`path_centralities`.
    """

    def __init__(self, adjacency: sparse.csr_array) -> None:
        self.adjacency, self.degree = adjacency, np.diff(adjacency.indptr).astype(np.float64)

    def columns(self, names: Iterable[str]) -> Float:
        """``[nodes, columns]`` the numbers of these names."""
        return np.column_stack([COLUMNS[name](self) for name in names])

    def around(self, value: Float) -> Float:
        """The mean over neighbours."""
        return (self.adjacency @ value) / np.maximum(self.degree, 1)

    def deviation(self, value: Float, mean: Float) -> Float:
        """The standard deviation over neighbours, of which the mean is known."""
        return np.sqrt(np.maximum(self.around(value**2) - mean**2, 0.0))

    def extreme(self, reduce: np.ufunc) -> Float:
        """Of the neighbours' log-degree."""
        return over_neighbours(reduce, self.adjacency, self.log_degree)

    log_degree = cached_property(lambda self: np.log1p(self.degree))
    mean = cached_property(lambda self: self.around(self.log_degree))
    second = cached_property(lambda self: self.around(self.mean))
    walks = cached_property(lambda self: self.adjacency @ self.degree)
    triangles: Any = cached_property(lambda self: triangle_counts(self.adjacency))
    within_two = cached_property(lambda self: within_two(self.adjacency))
    paths = cached_property(lambda self: path_centralities(self.adjacency))


class GivenSurroundings(Surroundings):
    """The same for edges as given: with directions, loops and duplicates.

    Args:
        adjacency: Row v has the edges that point at v; values are not read.
        degree: ``[nodes]`` how many these are, duplicates counted.
    """

    def __init__(self, adjacency: sparse.csr_array, degree: NDArray[np.int64]) -> None:
        pattern = adjacency.astype(np.float64)  # a copy
        pattern.sum_duplicates()
        pattern.data[:] = 1.0
        self.adjacency, self.degree = pattern, degree.astype(np.float64)

    triangles: Any = cached_property(lambda self: closed_walks(self.adjacency) / 2)


# [nodes] or [nodes, columns], finite; amounts as log(1 + amount).
COLUMNS: dict[str, Callable[[Surroundings], Float]] = {
    "log-degree": lambda s: s.log_degree,
    "log-degree of neighbours, mean": lambda s: s.mean,
    "log-degree of neighbours, deviation": lambda s: s.deviation(s.log_degree, s.mean),
    "log-degree of neighbours, minimum": lambda s: s.extreme(np.minimum),
    "log-degree of neighbours, maximum": lambda s: s.extreme(np.maximum),
    "log-degree of neighbours, two hops": lambda s: s.second,
    "log-degree of neighbours, three hops": lambda s: s.around(s.second),
    "deviation of neighbours' mean": lambda s: s.deviation(s.mean, s.second),
    "mean of neighbours' deviation": lambda s: s.around(s.deviation(s.log_degree, s.mean)),
    "walks of two steps": lambda s: np.log1p(s.walks),
    "neighbours by degree": lambda s: neighbour_mean(s.adjacency, np.eye(OCTAVES)[_octave(s.degree)]),
    "PageRank": lambda s: np.log(pagerank(s.adjacency) * max(1, len(s.degree))),
    "triangles": lambda s: np.log1p(s.triangles),
    "closed triangles": lambda s: s.triangles / np.maximum(s.degree * (s.degree - 1) / 2, 1),
    # The egonet is the node and its neighbours. Of the edges at these, one leads back and two per triangle stay inside.
    "edges inside the egonet": lambda s: np.log1p(s.degree + s.triangles),
    "edges leaving the egonet": lambda s: np.log1p(np.maximum(s.walks - s.degree - 2 * s.triangles, 0)),
    "nodes within two steps": lambda s: np.log1p(s.within_two),
    "others within two steps": lambda s: np.log1p(s.within_two - (s.degree > 0)),
    "closeness": lambda s: s.paths[0],
    "betweenness": lambda s: np.log1p(s.paths[1]),
    "core number": lambda s: np.log1p(core_numbers(s.adjacency)),
    "eigenvector centrality": lambda s: np.log(np.maximum(_eigenvector(s.adjacency), 1e-9)),
    "heat signatures": lambda s: heat_signatures(s.adjacency),
}
AROUND = (
    "log-degree",
    *(f"log-degree of neighbours, {what}" for what in ("mean", "deviation", "minimum", "maximum")),
)
GROUPS = {
    "local": (
        *AROUND,
        "walks of two steps",
        "log-degree of neighbours, two hops",
        "deviation of neighbours' mean",
        "log-degree of neighbours, three hops",
        "neighbours by degree",
        "PageRank",
    ),
    "triangles": ("closed triangles", "edges inside the egonet", "edges leaving the egonet", "nodes within two steps"),
    "global": ("closeness", "betweenness", "core number", "eigenvector centrality", "heat signatures"),
}


def affordable_groups(adjacency: sparse.csr_array) -> list[str]:
    """The groups of names that a graph of this size can afford."""
    degree = np.diff(adjacency.indptr).astype(np.float64)
    fits = {"local": True, "triangles": float(degree @ degree) <= WALKS, "global": len(degree) <= ALL_PAIRS}
    return [group for group in GROUPS if fits[group]]


def settled(values: Float) -> Float:
    """Values to six decimals: a sum in another order of edges is the same value, and a deviation of 1e-8 is none."""
    return np.round(values, 6)


def radial(value: Float, largest: float) -> Float:
    """``[n, 12]`` Gaussians of each value, centres evenly spaced from 0 to the largest, as wide as their spacing."""
    centre = np.linspace(0, largest, RADIAL)
    return np.exp(-0.5 * ((value[:, None] - centre) / (centre[1] or 1.0)) ** 2)


def _row_blocks(left: sparse.csr_array, right: sparse.csr_array) -> Iterator[slice]:
    """Rows of ``left`` whose product with ``right`` fits into memory: with a hub, such a product is not sparse."""
    walks = np.concatenate([[0], np.cumsum(left @ np.diff(right.indptr).astype(np.float64))])
    start = 0
    while start < left.shape[0]:
        stop = max(start + 1, int(np.searchsorted(walks, walks[start] + WALKS_AT_ONCE, side="right")) - 1)
        yield slice(start, stop)
        start = stop


def _masked_product(left: sparse.csr_array, right: sparse.csr_array, mask: sparse.csr_array) -> sparse.csr_array:
    """The entries of ``left @ right`` where ``mask`` has some, times those."""
    blocks = [(left[rows] @ right).multiply(mask[rows]) for rows in _row_blocks(left, right)]
    return sparse.csr_array(sparse.vstack(blocks)) if blocks else mask


def closed_walks(matrix: sparse.csr_array) -> Float:
    r"""``[n]`` for each row the sum of :math:`A^2 \circ A`: of a simple graph, twice the triangles of each node."""
    return np.asarray(_masked_product(matrix, matrix, matrix).sum(1), np.float64).ravel()


def triangle_counts(adjacency: sparse.csr_array) -> Float:
    """``[nodes]`` in how many triangles a node of a simple graph is, in O(m^1.5) time however large the hubs are.

    Every edge points to the end of higher degree, so no node has more than sqrt(2 m) outgoing edges. A triangle is
    counted at each of its ends: the lowest, the highest and the one between them.
    """
    n = adjacency.shape[0]
    order = np.lexsort((np.arange(n), np.diff(adjacency.indptr)))
    up = sparse.csr_array(sparse.triu(adjacency[order][:, order], format="csr"))
    ends, found = _masked_product(up, up, up), np.zeros(n)
    middle = _masked_product(sparse.csr_array(up.T), up, up)
    found[order] = ends.sum(1) + ends.sum(0) + middle.sum(1)
    return found


def within_two(adjacency: sparse.csr_array) -> Float:
    """``[nodes]`` how many nodes walks of one or two steps reach, the node itself among them if it has neighbours."""
    blocks = (adjacency[rows] @ adjacency + adjacency[rows] for rows in _row_blocks(adjacency, adjacency))
    return np.concatenate([np.zeros(0), *(np.diff(block.indptr) for block in blocks)])


def core_numbers(adjacency: sparse.csr_array) -> list[int]:
    """The largest k for which a node is in a subgraph of degrees of at least k."""
    core = nx.core_number(nx.from_scipy_sparse_array(adjacency))
    return [core[v] for v in range(adjacency.shape[0])]


def _octave(degree: Float) -> NDArray[Any]:
    return np.minimum(np.log2(np.maximum(degree, 1)).astype(int), OCTAVES - 1)


def pagerank(adjacency: sparse.csr_array) -> Float:
    """The stationary distribution of a random walk that restarts with probability 1 - :data:`DAMPING`.

    A node without neighbours passes its rank to all nodes equally.
    """
    n, degree = adjacency.shape[0], np.diff(adjacency.indptr)
    rank = np.full(n, 1 / max(1, n))
    for _ in range(1000):  # the error shrinks by the damping each time: 0.85 ** 142 < 1e-10
        after = DAMPING * (adjacency @ (rank / np.maximum(degree, 1)) + rank[degree == 0].sum() / n) + (1 - DAMPING) / n
        done, rank = np.abs(after - rank).sum() < 1e-10, after
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
