"""Structural features against NetworkX and definitions; views carry over to other graphs."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.linalg import expm
from tests.methods.problems import graph_set, roles
from torch_geometric.data import Data

from demonet import DemonetError, WLSubtreeKernel
from demonet.data.synthetic import power_law, uniform_random
from demonet.features import structure
from demonet.features.graph import neighbour_mean, simple_adjacency
from demonet.features.structure import (
    COLUMNS,
    GROUPS,
    HEAT_TIMES,
    Surroundings,
    affordable_groups,
    heat_signatures,
    pagerank,
    path_centralities,
    triangle_counts,
)
from demonet.features.views import GraphView, NodeView


@pytest.fixture
def graph() -> tuple[Data, nx.Graph]:
    data = uniform_random(40, 60, seed=3)  # with isolated nodes and several components
    return data, nx.from_scipy_sparse_array(simple_adjacency(data))


def test_path_centralities_are_networkx(graph):
    closeness, betweenness = path_centralities(simple_adjacency(graph[0]))
    np.testing.assert_allclose(closeness, list(nx.closeness_centrality(graph[1]).values()))
    np.testing.assert_allclose(betweenness, list(nx.betweenness_centrality(graph[1], normalized=False).values()))


def test_pagerank_is_networkx(graph):
    expected = list(nx.pagerank(graph[1], tol=1e-12).values())
    np.testing.assert_allclose(pagerank(simple_adjacency(graph[0])), expected, atol=1e-7)


def test_heat_signatures_are_the_diagonal_of_the_heat_kernel(graph):
    adjacency = simple_adjacency(graph[0])
    scale = np.diag(1 / np.sqrt(np.maximum(np.diff(adjacency.indptr), 1)))
    laplacian = np.eye(40) - scale @ adjacency.toarray() @ scale
    expected = np.stack([np.log(np.diag(expm(-t * laplacian))) for t in HEAT_TIMES], 1)
    np.testing.assert_allclose(heat_signatures(adjacency), expected, atol=1e-9)


@pytest.mark.parametrize("pairs", [3, 10**6])
def test_triangles_are_networkx(graph, monkeypatch, pairs):
    monkeypatch.setattr(structure, "WALKS_AT_ONCE", pairs)
    for known in (graph[1], nx.star_graph(20), nx.complete_graph(7), nx.karate_club_graph(), nx.empty_graph(3)):
        adjacency = nx.to_scipy_sparse_array(known, weight=None, format="csr", dtype=float)
        np.testing.assert_array_equal(triangle_counts(adjacency), list(nx.triangles(known).values()))


def test_descriptors_of_graphs_are_networkx():
    graphs = graph_set(12, labels=False)
    found = GraphView(graphs).descriptors
    for row, data in zip(found, graphs, strict=True):
        known = nx.from_scipy_sparse_array(simple_adjacency(data))
        degree = np.array([d for _, d in known.degree])
        expected = [
            len(known),
            known.number_of_edges(),
            (degree**2).mean(),
            sum(nx.triangles(known).values()) / 3,
            (degree == 1).sum(),
            nx.density(known),
            degree.max(),
            degree.std(),
            nx.transitivity(known),
            nx.average_clustering(known),
            nx.number_connected_components(known),
            np.log1p(degree).mean(),
            np.log1p(degree).std(),
        ]
        np.testing.assert_allclose(row[: len(expected)], expected, atol=1e-9)


def test_every_feature_is_finite_on_odd_graphs():
    nothing = Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=3)
    star = Data(edge_index=torch.tensor([[0, 0, 0], [1, 2, 2]]), num_nodes=5)  # one-way, doubled, isolated nodes
    for data in (nothing, star):
        adjacency = simple_adjacency(data)
        assert affordable_groups(adjacency) == list(GROUPS)
        assert np.isfinite(Surroundings(adjacency).columns(COLUMNS)).all()


def test_neighbour_mean_of_a_node_without_neighbours_is_zero():
    adjacency = simple_adjacency(Data(edge_index=torch.tensor([[0], [1]]), num_nodes=3))
    np.testing.assert_array_equal(neighbour_mean(adjacency, np.array([2.0, 4.0, 8.0])), [4, 2, 0])


def test_large_graphs_leave_out_what_they_cannot_afford():
    assert affordable_groups(simple_adjacency(uniform_random(3000, 4000))) == ["local", "triangles"]
    assert affordable_groups(simple_adjacency(power_law(40_000, 60_000, hub=20_000))) == ["local"]


def test_a_view_with_the_state_of_another_uses_its_scales():
    view = NodeView(roles(0))
    other = NodeView(roles(1, motifs=8), (view.facts, view.arrays))
    raw = np.log1p(np.diff(other.adjacency.indptr))
    expected = (raw - view.arrays["degree.mean"][0]) / view.arrays["degree.scale"][0]
    np.testing.assert_allclose(other.log_degree[:, 0], expected)
    assert other.structure.shape[1] == view.structure.shape[1]
    assert np.abs(view.ranks).max() <= np.sqrt(3) + 1e-9


def test_counts_become_rows_of_unit_length_and_numbers_are_standardised():
    data = roles()
    generator = torch.Generator().manual_seed(0)
    data.x = (torch.rand(data.num_nodes, 10, generator=generator) < 0.3).float()
    view = NodeView(data)
    assert view.facts["attributes"] == "counts"
    length = np.sqrt(view.neighbours.power(2).sum(1))
    assert set(np.round(length, 9)) <= {0.0, 1.0}
    sparse = data.clone()
    sparse.x = data.x.to_sparse_csr()
    np.testing.assert_allclose(NodeView(sparse).own.toarray(), view.own.toarray())
    data.x = torch.randn(data.num_nodes, 4, generator=generator) * 3 + 1
    view = NodeView(data)
    assert view.facts["attributes"] == "numbers"
    np.testing.assert_allclose(view.own.mean(0), 0, atol=0.05)
    with pytest.raises(DemonetError, match=r"\b0\b.*\b4\b"):
        NodeView(roles(), (view.facts, view.arrays))


@pytest.mark.parametrize("labels", [True, False])
def test_hashed_colours_count_as_weisfeiler_lehman_does(labels):
    graphs = graph_set(20, labels)
    view = GraphView(graphs)
    counts = view.histogram(0, 2)[1]
    if not labels:  # the degree is the first label: one round ahead of the kernel, whose nodes begin alike
        for graph in graphs:
            graph.x = torch.bincount(graph.edge_index[1], minlength=graph.num_nodes)[:, None].float()
    expected = WLSubtreeKernel(2).fit_transform(graphs)
    np.testing.assert_allclose((counts @ counts.T).toarray(), expected)


def test_known_colours_are_found_in_other_graphs():
    view, other = GraphView(graph_set(20)), GraphView(graph_set(30)[20:])
    ids, counts = view.histogram(0, 1)
    np.testing.assert_array_equal(view.counts(0, 1, ids).toarray(), counts.toarray())
    found = other.counts(0, 1, ids)
    assert found.shape == (10, len(ids))
    assert (np.asarray(found.sum(1)).ravel() <= 2 * other.sizes).all()


def test_attributes_that_never_repeat_are_described_by_mean_and_deviation():
    graphs = graph_set(20)
    for graph in graphs:
        graph.x = torch.randn(graph.num_nodes, 2, generator=torch.Generator().manual_seed(graph.num_nodes))
    view = GraphView(graphs)
    assert view.facts["label"] == "degree"
    assert view.descriptors.shape == (20, 17 + 4)
    np.testing.assert_allclose(view.descriptors[3, 17:19], graphs[3].x.double().mean(0))


def test_structural_features_move_with_the_nodes():
    """A view is told that a graph is another one whose nodes changed places: nothing is computed again."""
    data = roles(motifs=5)
    place = np.random.default_rng(0).permutation(data.num_nodes)
    moved = Data(edge_index=torch.from_numpy(place)[data.edge_index], num_nodes=data.num_nodes)
    view = NodeView(data)
    state = view.facts, view.arrays
    expected = NodeView(moved, state).structure
    moved.nodes_moved = data.edge_index, place
    np.testing.assert_allclose(NodeView(moved, state).structure, expected, atol=1e-8)
    np.testing.assert_allclose(expected[place], view.structure, atol=1e-8)
