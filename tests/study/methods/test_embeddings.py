"""What defines a structural embedding: mirrored nodes together. And graphs that are hardly graphs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.preprocessing import StandardScaler
from tests.reference.graphs import from_arcs
from torch_geometric.data import Data

from demonet import DemonetError, methods
from demonet.data.splits import thirds
from demonet.data.synthetic import mirrored_karate, role_graph, small_graphs
from demonet_study.methods.graphwave import GraphWave
from demonet_study.methods.rolx import RolX
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
    z = quick(name).embed(Data(edge_index=graph.edge_index, num_nodes=n))
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
