"""struc2vec: its distances against a brute-force computation, its layered graph and walks against their equations."""

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from tests.kernels.graphs import graph as drawn
from tests.reference.graphs import graphs

from demonet.features.graph import simple_adjacency
from demonet_study.methods import struc2vec as struc2vec_file
from demonet_study.methods.struc2vec import Struc2vec, layered, rings, walk, warping


def ordered_degrees(graph, node, k):
    """s(R_k(u)): the degrees of the nodes at exactly k steps, ascending; a lone node's is one half."""
    steps = nx.single_source_shortest_path_length(graph, node)
    return sorted(graph.degree(v) or 0.5 for v, step in steps.items() if step == k)


def run_lengths(sequence):
    return [(value, sequence.count(value)) for value in sorted(set(sequence))]


def dtw(a, b, cost):
    """The recursion of dynamic time warping, as it is written."""
    table = {(-1, -1): 0.0}
    for i in range(len(a)):
        for j in range(len(b)):
            before = [table.get(cell, math.inf) for cell in ((i - 1, j), (i, j - 1), (i - 1, j - 1))]
            table[i, j] = cost(a[i], b[j]) + min(before)
    return table[len(a) - 1, len(b) - 1]


def plain(a, b):
    return max(a, b) / min(a, b) - 1


def compressed(a, b):
    return plain(a[0], b[0]) * max(a[1], b[1])


@pytest.mark.parametrize("short", [False, True])
@given(graph=graphs(max_nodes=9))
def test_distances_are_those_of_brute_force(short, graph):
    """f_k = f_{k-1} + g(s(R_k(u)), s(R_k(v))), for all pairs and every k at which both have a ring."""
    adjacency = simple_adjacency(graph.data)
    network = nx.from_scipy_sparse_array(adjacency)
    u, v = np.triu_indices(graph.num_nodes, 1)
    found = Struc2vec(layers=5, compressed=short).distances(adjacency, u, v)
    for pair, (a, b) in enumerate(zip(u, v, strict=True)):
        total = 0.0
        for k in range(len(found)):
            s, t = ordered_degrees(network, a, k), ordered_degrees(network, b, k)
            total += (
                math.nan
                if not s or not t
                else dtw(run_lengths(s), run_lengths(t), compressed)
                if short
                else dtw(s, t, plain)
            )
            assert found[k, pair] == pytest.approx(total, nan_ok=True)


def test_batches_of_any_size_give_the_same(monkeypatch):
    adjacency = simple_adjacency(drawn(34, nx.karate_club_graph().edges))
    u, v = np.triu_indices(34, 1)
    sequences = list(rings(adjacency, 3))
    whole = [warping(ring, u, v) for ring in sequences]
    monkeypatch.setattr(struc2vec_file, "_CELLS", 40)
    for ring, expected in zip(sequences, whole, strict=True):
        np.testing.assert_array_equal(warping(ring, u, v), expected)


def test_rings_by_hand():
    """A path of four: from its end, degrees 1 | 2 | 2 | 1; from node 1, degrees 2 | 1 2 | 1."""
    sequences = list(rings(simple_adjacency(drawn(4, [(0, 1), (1, 2), (2, 3)])), 9))
    by_node = [[ring.degree[ring.pointer[u] : ring.pointer[u + 1]].tolist() for ring in sequences] for u in (0, 1)]
    assert by_node == [[[1], [2], [2], [1]], [[2], [1, 2], [1], []]]


def test_everyone_is_compared_with_the_nearest_degrees():
    degree = np.array([9, 1, 5, 3, 7])
    u, v = Struc2vec(neighbours=1).pairs(degree, np.random.default_rng(0))
    assert {frozenset(pair) for pair in zip(degree[u], degree[v], strict=True)} == {
        frozenset(pair) for pair in ((1, 3), (3, 5), (5, 7), (7, 9))
    }
    assert len(Struc2vec(neighbours=0).pairs(degree, np.random.default_rng(0))[0]) == 10
    assert len(Struc2vec().pairs(np.arange(64), np.random.default_rng(0))[0]) == sum(64 - step for step in range(1, 7))


def test_the_layered_graph_by_hand():
    """Nodes 0 1 2; layer 0 ties all, layer 1 only 0 and 1."""
    f = np.array([[0.0, 1.0, 2.0], [0.5, np.nan, np.nan]])
    layers = layered(3, np.array([0, 0, 1]), np.array([1, 2, 2]), f)
    assert layers.pointer.tolist() == [0, 2, 4, 6, 7, 8, 8]
    assert layers.neighbour.tolist() == [1, 2, 0, 2, 0, 1, 1, 0]
    first = 1 / (1 + math.exp(-1))  # of node 0 in layer 0: exp(0) against exp(-1)
    assert layers.cumulative[:2] == pytest.approx([first, 1.0])
    # exp(-2), exp(-1), 1 have mean .5: the tie of 0 and 1 is strong. Node 2 has nothing above; layer 1 is the last.
    assert layers.up.tolist() == [1, 1, 0, 0, 0, 0]


def test_the_way_up_has_its_weight():
    """In layer 1 of 3, node 0 has one tie above the mean: log(1 + e) up against 1 down."""
    f = np.array([[0.0, 1.0, 2.0]] * 3)
    layers = layered(3, np.array([0, 0, 1]), np.array([1, 2, 2]), f)
    up = math.log(1 + math.e) / (math.log(1 + math.e) + 1)
    assert layers.up[3:6] == pytest.approx([up, up, 0.5])
    assert layers.up[6:].tolist() == [0, 0, 0]


def test_walks_follow_ties_by_their_weight():
    f = np.array([[0.0, 1.0, 2.0]])
    layers = layered(3, np.array([0, 0, 1]), np.array([1, 2, 2]), f)
    paths = walk(layers, 2000, 5, 0.3, np.random.default_rng(0))
    assert paths.shape == (6000, 5)
    assert (paths[:, 0] == np.tile(np.arange(3), 2000)).all()
    assert (paths[:, 1:] != paths[:, :-1]).all()
    from_0 = paths[:, 1:][paths[:, :-1] == 0]
    assert np.mean(from_0 == 1) == pytest.approx(1 / (1 + math.exp(-1)), abs=0.02)
