"""The protocol under which embeddings were printed: one embedding, splits of 70 and 30 percent."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.linalg import expm

from demonet.data.synthetic import role_graph
from demonet.features.graph import simple_adjacency
from demonet_study.experiments.published import embeddings
from demonet_study.experiments.published.embeddings import (
    PRINTED,
    _local,
    factored,
    our_way,
    their_embedding,
    their_way,
)
from demonet_study.methods.graphwave import laplacian


@pytest.fixture
def graph(monkeypatch):
    """56 nodes."""
    made = role_graph(0, motifs=8)
    monkeypatch.setattr(embeddings, "load", lambda name: made)
    return made


def test_one_embedding_and_seventy_thirty(graph, monkeypatch):
    """The graph is embedded once; 30 % of 56 nodes, 17, are tested each time, and nobody validates."""
    splits, real = [], embeddings.classify
    monkeypatch.setattr(embeddings, "classify", lambda z, y, split: splits.append((z, split)) or real(z, y, split))
    found = our_way("graphwave", "made up", 0, runs=3)
    assert len({id(z) for z, _ in splits}) == 1
    assert [(s.train.numel(), s.val.numel(), s.test.numel()) for _, s in splits] == [(39, 0, 17)] * 3
    assert not torch.equal(splits[0][1].test, splits[1][1].test)
    assert all(round(share * 17) == pytest.approx(share * 17) for share in found)


@pytest.mark.parametrize("method", PRINTED)
def test_their_way(graph, method):
    found = their_way(method, "made up", 0, runs=3)
    assert len(set(found)) > 1
    assert np.mean(found) > 0.3  # of twelve roles


def test_their_scales(graph):
    """Heat after 19 and 20, by the exponential of the Laplacian."""
    heat = expm(-20 * laplacian(simple_adjacency(graph)).toarray())
    z = their_embedding("graphwave", graph)
    assert z.shape == (56, 100)
    np.testing.assert_allclose(z[:, 50:75], np.cos(heat.T[:, :, None] * np.linspace(0, 100, 25)).mean(1), atol=1e-8)


def test_local_features_against_networkx():
    graph = nx.karate_club_graph()
    adjacency = sparse.csr_array(nx.to_scipy_sparse_array(graph, weight=None, format="csr").astype(np.float64))
    found = _local(adjacency)
    for node in graph:
        ego = nx.ego_graph(graph, node)
        inside, arcs = ego.number_of_edges(), sum(graph.degree(other) for other in ego)
        expected = [inside, arcs, inside / arcs, 1 - inside / arcs, graph.degree(node), nx.clustering(graph, node)]
        np.testing.assert_allclose(found[node], expected)


def test_bits_are_explained():
    bits = np.eye(4)[np.arange(32) % 4]
    z = factored(bits, seed=0, epochs=300, dimensions=8)
    assert np.array_equal(z, factored(bits, seed=0, epochs=300, dimensions=8))
    apart = np.linalg.norm(z[:, None] - z[None], axis=2)
    alike = (np.arange(32)[:, None] - np.arange(32)[None]) % 4 == 0
    assert apart[alike].max() < apart[~alike].min()
