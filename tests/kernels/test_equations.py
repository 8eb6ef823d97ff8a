"""Each kernel against its equation, written as loops over pairs of nodes; and what every kernel must satisfy."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from tests.kernels.graphs import drawn_graphs, lists_of, path, star
from tests.reference import kernels as reference
from torch_geometric.data import Data

from demonet.kernels import DegreeWLKernel, MeanWLKernel, WLSubtreeKernel

KERNELS = [
    pytest.param(WLSubtreeKernel, reference.wl_subtree, id="subtree"),
    pytest.param(MeanWLKernel, reference.mean_wl, id="mean"),
    pytest.param(DegreeWLKernel, reference.degree_wl, id="degree"),
]
CLASSES = pytest.mark.parametrize("kernel_class", [WLSubtreeKernel, MeanWLKernel, DegreeWLKernel])
FITTED = lists_of(drawn_graphs(values=(-1.5, 0.0, 0.25, 2.0)))
OTHERS = lists_of(drawn_graphs(max_nodes=9, values=(-1.5, 0.0, 3.0)))  # a label, and degrees, that fit cannot have seen
ROUNDS = st.integers(0, 3)


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def assert_same(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("kernel_class", "equation"), KERNELS)
@given(fitted=FITTED, others=OTHERS, h=ROUNDS, normalize=st.booleans())
def test_gram_matrices_are_the_equation(kernel_class, equation, fitted, others, h, normalize):
    kernel = kernel_class(n_iter=h, normalize=normalize)
    square = kernel.fit_transform(fitted)
    across = kernel.transform(others)
    assert_same(square, reference.gram(equation, fitted, fitted, h, normalize=normalize))
    assert_same(across, reference.gram(equation, others, fitted, h, normalize=normalize))
    assert_same(kernel.transform(fitted), square)
    assert_same(kernel.self_kernel(others), [equation(data, data, h) for data in others])
    np.testing.assert_array_equal(square, square.T)


@CLASSES
@given(fitted=FITTED, others=OTHERS, h=ROUNDS, normalize=st.booleans())
def test_features_are_the_explicit_map(kernel_class, fitted, others, h, normalize):
    kernel = kernel_class(n_iter=h, normalize=normalize).fit(fitted)
    fitted_features, features = dense(kernel.features(fitted)), dense(kernel.features(others))
    assert_same(fitted_features @ fitted_features.T, kernel.fit_transform(fitted))
    assert_same(features @ fitted_features.T, kernel.transform(others))


def test_degree_by_hand():
    """The same path: degree 1 holds nodes 0 and 2, degree 2 holds node 1."""
    data = path(3, [[1], [0], [0]])
    kernel = DegreeWLKernel(n_iter=1)
    assert kernel.fit_transform([data]) == [[1 + 1 / 4 + 1 / 16]]
    np.testing.assert_array_equal(kernel.degrees_, [1, 2])
    np.testing.assert_array_equal(kernel.features([data]), [[1, 0, 1 / 2, 1 / 4]])


def test_degree_counts_the_arcs_that_end_in_a_node():
    """Arcs 0 -> 1 and 0 -> 2: one node of degree 0, two of degree 1: 1 + 4 pairs; h^1 = (1/2, 1, 1)."""
    data = Data(edge_index=torch.tensor([[0, 0], [1, 2]]), num_nodes=3)
    kernel = DegreeWLKernel(n_iter=1)
    assert kernel.fit_transform([data]) == [[1 + 4 + 1 / 4 + 4]]
    np.testing.assert_array_equal(kernel.degrees_, [0, 1])


def test_features_are_level_by_level_then_degree_by_degree():
    graphs = [star(3, np.ones((4, 5))), path(4, np.ones((4, 5)))]
    assert MeanWLKernel(n_iter=2).fit(graphs).features(graphs).shape == (2, 3 * 5)
    assert DegreeWLKernel(n_iter=2).fit(graphs).features(graphs).shape == (2, 3 * 3 * 5)
    subtree = WLSubtreeKernel(n_iter=1).fit(graphs).features(graphs)
    assert subtree.format == "csr"
    assert subtree.shape == (2, 1 + 3)
