"""What defines a structural embedding: mirrored nodes together. And graphs that are hardly graphs."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from hypothesis import given
from scipy import sparse
from sklearn.preprocessing import StandardScaler
from tests.reference.graphs import drawn_by_seed, from_arcs, graphs
from torch_geometric.data import Data

from demonet import DemonetError, methods
from demonet.data.splits import thirds
from demonet.data.synthetic import mirrored_karate, role_graph, small_graphs
from demonet.features.graph import simple_adjacency
from demonet_study.methods.graphwave import GraphWave, heat_blocks, heat_exact, laplacian
from demonet_study.methods.rolx import RolX, refex
from demonet_study.methods.struc2vec import Struc2vec

NAMES = ["rolx", "struc2vec", "graphwave"]


def quick(name):
    return Struc2vec(walks=5, length=40, dimensions=16) if name == "struc2vec" else methods.get(name)()


def distances(z):
    z = StandardScaler().fit_transform(z)
    return np.linalg.norm(z[:, None] - z[None], axis=-1)


@pytest.mark.parametrize(
    ("method", "ratio"), [(RolX(), 1e-6), (GraphWave(), 1e-6), (Struc2vec(neighbours=0, dimensions=16), 0.5)]
)
def test_mirrored_nodes_land_together(method, ratio):
    """RolX and GraphWave cannot tell them apart; struc2vec draws its walks, and the paper compares all pairs here."""
    graph = mirrored_karate()
    apart = distances(method.embed(graph, seed=0))
    mirrored = apart[np.arange(68), graph.mirror.numpy()].mean()
    others = apart[~np.eye(68, dtype=bool)].mean()
    assert mirrored < ratio * others


@pytest.mark.parametrize("name", NAMES)
def test_renumbered_nodes_keep_their_vectors(name):
    """Nothing is known of a node but its place; struc2vec draws anew, so only its kind of vectors is asked for."""
    graph = role_graph(0, motifs=8)
    order = torch.from_numpy(np.random.default_rng(0).permutation(graph.num_nodes))
    moved = Data(edge_index=order[graph.edge_index], num_nodes=graph.num_nodes)
    before, after = quick(name).embed(graph), quick(name).embed(moved)
    assert after.shape == before.shape
    if name != "struc2vec":
        np.testing.assert_allclose(after[order.numpy()], before, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("n", "edges"),
    [
        (1, []),
        (4, []),
        (2, [(0, 1)]),
        (7, [(0, 1), (1, 2), (3, 4)]),  # two components and two nodes alone
        (3, [(0, 0), (0, 1)]),  # a loop
    ],
)
def test_small_and_broken_graphs(name, n, edges):
    graph = from_arcs(n, edges, undirected=True)
    z = quick(name).embed(graph.data)
    assert len(z) == n
    assert np.isfinite(z).all()


@pytest.mark.parametrize("name", NAMES)
def test_fitted_as_every_baseline(name):
    graph = role_graph(0, motifs=12)
    split = thirds(graph.y, 0, stratified=True)
    method = quick(name).fit(graph, split, seed=1)
    majority = methods.get("majority")().fit(graph, split)
    assert method.score(split.test, graph.y) > majority.score(split.test, graph.y) + 0.05
    assert np.array_equal(method.embeddings().numpy(), quick(name).embed(graph, seed=1))
    with pytest.raises(DemonetError, match=rf"^{name}\b.*graphs"):
        quick(name).fit(small_graphs(10), split)


def dense_heat(adjacency, scale):
    """U exp(-s Lambda) U^T of I - D^-1/2 A D^-1/2, whose rows are zero where there are no neighbours."""
    a = adjacency.toarray()
    degree = a.sum(1)
    matrix = np.zeros_like(a)
    for u in range(len(a)):
        for v in range(len(a)):
            if degree[u] and degree[v]:
                matrix[u, v] = (u == v) - a[u, v] / np.sqrt(degree[u] * degree[v])
    values, vectors = np.linalg.eigh(matrix)
    return vectors @ np.diag(np.exp(-scale * values)) @ vectors.T


@given(graphs())
def test_wavelets_are_those_of_the_eigendecomposition(graph):
    adjacency = simple_adjacency(graph.data)
    matrix = laplacian(adjacency)
    scales = [0.3, 2.0, 7.5]
    blocks = list(heat_blocks(matrix, scales, order=40))
    for i, scale in enumerate(scales):
        expected = dense_heat(adjacency, scale)
        np.testing.assert_allclose(heat_exact(matrix, scales)[i], expected, atol=1e-12)
        np.testing.assert_allclose(np.hstack([kernels[i] for _, kernels in blocks]), expected, atol=1e-12)


def test_the_polynomials_and_the_eigenvectors_embed_alike():
    graph = drawn_by_seed(80, 200).data
    np.testing.assert_allclose(GraphWave().embed(graph), GraphWave(exact=True).embed(graph), atol=1e-8)


def test_the_characteristic_function_term_by_term():
    """(1 / N) sum_m cos(t psi_mu), then the sines, at t = 0, 10, ..., 40."""
    kernel = np.random.default_rng(0).random((6, 3))
    found = GraphWave(points=5, last=40.0).characteristic(kernel)
    for u in range(3):
        for i, t in enumerate([0, 10, 20, 30, 40]):
            assert found[u, i] == pytest.approx(sum(np.cos(t * kernel[m, u]) for m in range(6)) / 6)
            assert found[u, 5 + i] == pytest.approx(sum(np.sin(t * kernel[m, u]) for m in range(6)) / 6)


def test_the_scales():
    """-log(.95) and -log(.8) over sqrt(2 / N): with 50 nodes over 1/5."""
    matrix = laplacian(simple_adjacency(drawn_by_seed(50, 100).data))
    assert GraphWave().scales(matrix) == pytest.approx([-5 * np.log(0.95), -5 * np.log(0.8)])
    assert GraphWave().embed(drawn_by_seed(50, 100).data).shape == (50, 2 * 25 * 2)


def test_too_low_an_order_is_refused_not_used():
    graph = drawn_by_seed(2000, 4000).data
    with pytest.raises(DemonetError, match=r"\b2\b.*order=\d+"):
        GraphWave(order=2).embed(graph)


NODES, EDGES = 7_575, 239_738
DENSE = NODES * NODES * 8  # bytes of one dense matrix of nodes by nodes: 459 MB


@pytest.fixture(scope="module")
def adjacency() -> sparse.csr_array:
    """As many nodes and edges as Flickr has, with degrees as uneven."""
    generator = np.random.default_rng(0)
    share = generator.pareto(1.5, NODES) + 1
    ends = generator.choice(NODES, (2, EDGES), p=share / share.sum())
    arcs = np.unique(np.hstack([ends, ends[::-1]])[:, np.tile(ends[0] != ends[1], 2)], axis=1)
    return sparse.csr_array((np.ones(arcs.shape[1]), (arcs[0], arcs[1])), shape=(NODES, NODES))


@contextmanager
def at_most(size: float) -> Iterator[None]:
    """Memory that is taken inside, at its peak, is at most so many bytes."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size


def test_recursive_features(adjacency):
    with at_most(DENSE):
        x, _ = refex(adjacency, rounds=2)
    assert x.shape[1] > 3


def test_wavelets(adjacency):
    """Blocks of columns, one after the other: the first is as large as any."""
    method = GraphWave(points=3)
    matrix = laplacian(adjacency)
    with at_most(DENSE):
        columns, kernels = next(heat_blocks(matrix, [1.0, 2.0], order=10))
        z = np.hstack([method.characteristic(kernel) for kernel in kernels])
    assert z.shape == (columns.stop, 2 * 3 * 2)
