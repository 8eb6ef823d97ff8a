"""The degree-specific kernel between graphs against its definition: a sum over all pairs of nodes, in float64."""

from dataclasses import replace
from math import exp, sqrt

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.closedform.test_nodes import shared_of
from tests.kernels.graphs import drawn_graphs, graph, lists_of, path, permuted, star

from demonet.closedform.pooled import GraphInputs, GraphSetting
from demonet.kernels import DegreeWLKernel, wl_colours

POOLED = GraphSetting(seed=0.7, shared=0.3, degree=0.4, bias=0.2, pooling=0.6, wl=0.0, structure=0.0, constant=0.0)
BESIDE = GraphSetting(pooled=0.0, wl=0.8, rounds=2, reach=0.7, structure=0.5, constant=0.3)


def gram(left, right, setting):
    return left.pair(right, torch.float64, "cpu").gram(setting).numpy()


def pooled_of(left, g, right, h, s):
    """The sum over pairs of nodes, before normalisation."""
    total, a, b = 0.0, left.nodes, right.nodes
    for u in np.flatnonzero(left.owner == g):
        for v in np.flatnonzero(right.owner == h):
            k = shared_of(int(a.degree[u]), int(b.degree[v]), s)
            near = (s.shared + s.degree * k) * (a.near[0][u] @ b.near[0][v])
            total += (1 - s.pooling + s.pooling * k) * (s.seed * (a.own[u] @ b.own[v]) + near + s.bias * k)
    return total


def some_graphs(seed=0):
    rng = np.random.default_rng(seed)
    shapes = [(5, [(0, 1), (0, 2), (0, 3)]), (3, [(0, 1)]), (4, [(0, 1), (1, 2), (2, 3), (3, 0)])]
    return [graph(n, edges, np.eye(2)[rng.integers(2, size=n)]) for n, edges in shapes]


@pytest.mark.parametrize("scheme", ["smooth", "weight", "hash"])
def test_the_pooled_kernel_is_the_sum_over_pairs_of_nodes(scheme):
    train, other = some_graphs(), [star(7, np.eye(2)[[0, 1] * 4]), path(2, [[1, 0], [0, 1]])]  # degree 7 is unseen
    inputs = GraphInputs().fit(train)
    left, right = inputs.transform(other), inputs.transform(train)
    s = replace(POOLED, scheme=scheme, hash_size=4)
    norms = [[sqrt(pooled_of(view, g, view, g, s)) for g in range(len(view))] for view in (left, right)]
    naive = [
        [pooled_of(left, g, right, h, s) / norms[0][g] / norms[1][h] for h in range(len(right))]
        for g in range(len(left))
    ]
    np.testing.assert_allclose(gram(left, right, s), naive, rtol=1e-9)


def test_the_map_is_the_exponential_of_the_distance():
    view = GraphInputs().fit(some_graphs()).transform(some_graphs())
    k = np.array([[pooled_of(view, g, view, h, POOLED) for h in range(3)] for g in range(3)])
    norm = k.diagonal()
    gaps = [[sqrt(max(0, norm[g] + norm[h] - 2 * k[g, h]) / norm.mean()) for h in range(3)] for g in range(3)]
    expected = np.exp(-np.array(gaps) / 0.4)
    np.testing.assert_allclose(gram(view, view, replace(POOLED, height=0.4)), expected, atol=1e-6)


def test_degree_pooling_of_the_attributes_is_the_papers_kernel():
    """With the seed term alone, p = 1 and the delta kernel it is Eq. 13 at level 0, normalised."""
    train = some_graphs()
    s = GraphSetting(shared=0, degree=0, bias=0, pooling=1.0, scheme="weight", wl=0, structure=0, constant=0)
    view = GraphInputs().fit(train).transform(train)
    np.testing.assert_allclose(gram(view, view, s), DegreeWLKernel(n_iter=0, normalize=True).fit_transform(train))


def test_wl_histograms_meet_in_the_l1_distance():
    graphs = some_graphs() + some_graphs(1)
    view = GraphInputs().fit(graphs[:3]).transform(graphs)
    left, right = view, view.take(np.arange(3))
    sizes = [g.num_nodes for g in graphs]
    owner = np.repeat(np.arange(6), sizes)
    counts = [
        np.array([np.bincount(colour[owner == g], minlength=colour.max() + 1) for g in range(6)])
        for colour in wl_colours(graphs, 2)
    ]
    unit = 3 * np.mean(sizes[:3])
    naive = [[exp(-sum(np.abs(c[g] - c[h]).sum() for c in counts) / unit / 0.7) for h in range(3)] for g in range(6)]
    s = replace(BESIDE, structure=0.0, constant=0.0)
    np.testing.assert_allclose(gram(left, right, s), 0.8 * np.array(naive))


@settings(max_examples=8)
@given(lists_of(drawn_graphs(min_nodes=1, max_nodes=5), min_size=2), st.randoms(use_true_random=False))
def test_the_order_of_nodes_and_graphs_does_not_matter_nor_does_batching(graphs, random):
    s = replace(BESIDE, pooled=1.0)
    inputs = GraphInputs().fit(graphs)
    view = inputs.transform(graphs)
    whole = gram(view, view, s)
    alone = [gram(inputs.transform([g]), view, s)[0] for g in graphs]
    np.testing.assert_allclose(whole, alone, atol=1e-9)
    moved = []
    for g in graphs:
        order = list(range(g.num_nodes))
        random.shuffle(order)
        moved.append(permuted(g, order))
    other = inputs.transform(moved)
    np.testing.assert_allclose(gram(other, other, s), whole, atol=1e-9)
    turned = np.arange(len(graphs))[::-1]
    np.testing.assert_allclose(gram(view.take(turned), view, s), whole[turned], atol=1e-9)


def test_graphs_without_attributes_and_without_edges_have_a_kernel():
    graphs = [path(3), star(4), graph(2)]
    view = GraphInputs().fit(graphs).transform([*graphs, graph(1)])
    k = gram(view, view.take(np.arange(3)), GraphSetting(height=0.5))
    assert np.isfinite(k).all()
    np.testing.assert_allclose(k[:3], k[:3].T)


def test_inputs_survive_a_round_trip():
    graphs = some_graphs()
    inputs = GraphInputs().fit(graphs)
    back = GraphInputs.from_state(*inputs.state())
    s = replace(BESIDE, pooled=1.0)
    left, right = inputs.transform(some_graphs(1)), inputs.transform(graphs)
    np.testing.assert_array_equal(
        gram(back.transform(some_graphs(1)), back.transform(back.graphs), s), gram(left, right, s)
    )


def test_a_setting_refuses_a_share_above_one(refuses):
    refuses(lambda: GraphSetting(pooling=1.5), "pooling", "1.5")


def test_some_graphs_with_and_some_without_attributes_are_refused(refuses):
    refuses(lambda: GraphInputs().fit([path(2, [[1.0], [0.0]]), path(3)]), "1", "x")
