"""GraphWave's wavelets against a dense eigendecomposition, and its characteristic function term by term."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from tests.reference.graphs import drawn_by_seed, graphs
from torch_geometric.data import Data

from demonet import DemonetError
from demonet.features.graph import simple_adjacency
from demonet_study.methods.graphwave import GraphWave, heat_blocks, heat_exact, laplacian


def data(graph):
    return Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes)


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
    adjacency = simple_adjacency(data(graph))
    matrix = laplacian(adjacency)
    scales = [0.3, 2.0, 7.5]
    blocks = list(heat_blocks(matrix, scales, order=40))
    for i, scale in enumerate(scales):
        expected = dense_heat(adjacency, scale)
        np.testing.assert_allclose(heat_exact(matrix, scales)[i], expected, atol=1e-12)
        np.testing.assert_allclose(np.hstack([kernels[i] for _, kernels in blocks]), expected, atol=1e-12)


def test_the_polynomials_and_the_eigenvectors_embed_alike():
    graph = data(drawn_by_seed(80, 200))
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
    matrix = laplacian(simple_adjacency(data(drawn_by_seed(50, 100))))
    assert GraphWave().scales(matrix) == pytest.approx([-5 * np.log(0.95), -5 * np.log(0.8)])
    assert GraphWave().embed(data(drawn_by_seed(50, 100))).shape == (50, 2 * 25 * 2)


def test_too_low_an_order_is_refused_not_used():
    graph = data(drawn_by_seed(2000, 4000))
    with pytest.raises(DemonetError, match=r"\b2\b.*order=\d+"):
        GraphWave(order=2).embed(graph)
