"""Models that know one graph, against their definitions; ensemble/test_identity.py has them on another graph."""

import numpy as np
import torch
from tests.methods.problems import labelled_of, roles, two_blocks

from demonet.features.views import NodeView
from demonet.methods.linear import DiffusedLinear, smoothed
from demonet.methods.propagation import STEPS, Propagation, target_rows, walk


def test_the_walk_is_the_power_series():
    data = roles()
    view, labelled = NodeView(data), labelled_of(data)
    degree = np.maximum(np.diff(view.adjacency.indptr), 1)
    step = view.adjacency.toarray() / np.sqrt(np.outer(degree, degree))
    start = np.zeros((view.num_items, labelled.outputs))
    start[labelled.train, labelled.y[labelled.train]] = 1
    mass = sum(0.85**k * np.linalg.matrix_power(step, k) @ start for k in range(1, STEPS + 1))
    mass = mass * np.sqrt(degree)[:, None]
    one_hot, known = target_rows("classify", labelled.y[labelled.train], labelled.outputs)
    found, count = walk(view, labelled.train, one_hot, known, 0.15)
    np.testing.assert_allclose(found / found.sum(), mass / mass.sum(), atol=1e-12)
    np.testing.assert_allclose(count[:, 0], found.sum(1), atol=1e-9)


def test_an_isolated_node_gets_the_shares_of_the_classes():
    data = two_blocks()
    data.num_nodes, data.y = 121, torch.cat([data.y, torch.tensor([0])])
    labelled = labelled_of(data)
    labelled = type(labelled)(labelled.y, 2, np.setdiff1d(labelled.train, [120]), np.setdiff1d(labelled.val, [120]))
    found = Propagation().fit_on(NodeView(data), labelled).outputs(NodeView(data))
    np.testing.assert_allclose(found[120], labelled.prior())


def test_diffused_attributes_and_smoothed_probabilities_are_their_recursions():
    data = roles()
    data.x = torch.randn(data.num_nodes, 3, generator=torch.Generator().manual_seed(0))
    view = NodeView(data)
    loops = view.adjacency.toarray() + np.eye(view.num_items)
    step = loops / np.sqrt(np.outer(loops.sum(1), loops.sum(1)))
    found = view.own
    for _ in range(10):
        found = 0.7 * step @ found + 0.3 * view.own
    np.testing.assert_allclose(view.diffused(0.3), found / np.linalg.norm(found, axis=1, keepdims=True), atol=1e-12)
    start = np.random.default_rng(0).dirichlet(np.ones(3), view.num_items)
    walk_step = view.adjacency.toarray() / np.maximum(np.diff(view.adjacency.indptr), 1)[:, None]
    found = start
    for _ in range(10):
        found = 0.4 * walk_step @ found + 0.6 * start
    np.testing.assert_allclose(smoothed(view, start, 0.4), found, atol=1e-12)
    np.testing.assert_array_equal(smoothed(view, start, 0.0), start)


def test_wide_attributes_are_projected_alike_on_another_graph():
    data, other = roles(0), roles(1)
    for graph in (data, other):
        rows = np.random.default_rng(3).random((graph.num_nodes, 300)) < 0.05
        graph.x = torch.from_numpy(rows).float()
    view = NodeView(data)
    member = DiffusedLinear().fit_on(view, labelled_of(data))
    beside = NodeView(other, (view.facts, view.arrays))
    assert view.diffused(0.15).shape[1] <= 256
    assert member.outputs(beside).shape == (other.num_nodes, member.facts["outputs"])
