"""Orbits against networkx, distances by hand, and what a turn, a shift or another scale must not change."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.utils import from_networkx, to_networkx

from demonet.data.synthetic import barbell, cycle, mirrored_karate
from demonet_study.experiments.expressive.partitions import same_partition
from demonet_study.experiments.twins import nearness, orbits


def test_orbits_of_graphs_whose_roles_are_known():
    assert orbits(cycle(7)).tolist() == [0] * 7
    assert same_partition(orbits(barbell(4, 3)), barbell(4, 3).y.numpy())
    data = mirrored_karate()
    found = orbits(data)
    assert (found == found[data.mirror.numpy()]).all()
    # Of the club's own symmetries: these five are tied to the same two leaders and to nobody else.
    assert len(set(found[[14, 15, 18, 20, 22]].tolist())) == 1
    assert len(set(found.tolist())) == 27


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000))
def test_orbits_are_those_of_all_automorphisms(seed):
    data = from_networkx(nx.gnp_random_graph(7, 0.4, seed=seed))
    graph = to_networkx(data, to_undirected=True)
    exchanged = nx.Graph([(v, v) for v in graph])
    for image in nx.isomorphism.GraphMatcher(graph, graph).isomorphisms_iter():
        exchanged.add_edges_from(image.items())
    theirs = {v: i for i, part in enumerate(nx.connected_components(exchanged)) for v in part}
    assert same_partition(orbits(data), np.array([theirs[v] for v in sorted(graph)]))


def test_distances_by_hand():
    """On a line at 0, 1 (twins), 4, 5 (twins): twins 1 apart, others 4, 5, 3, 4."""
    near = nearness(np.array([[0.0], [1.0], [4.0], [5.0]]), np.array([0, 0, 1, 1]))
    mean = 18 / 6
    assert (near.twins, near.others, near.nearest_other) == pytest.approx((1 / mean, 4 / mean, 3 / mean))
    assert (near.told_apart, near.found) == (1, 1)


def test_a_constant_is_not_perfect():
    near = nearness(np.ones((4, 2)), np.array([0, 0, 1, 1]))
    assert near.twins == near.nearest_other == near.told_apart == 0
    assert near.found == pytest.approx(1 / 3)


def test_where_all_are_twins_the_length_is_the_measure():
    near = nearness(np.array([[3.0, 4.0], [4.0, 3.0]]), np.array([0, 0]))
    assert near.twins == pytest.approx(math.sqrt(2) / 5)
    assert all(math.isnan(value) for value in (near.others, near.nearest_other, near.told_apart))


def test_rounding_of_float32_is_no_distance():
    z = np.array([[1.0, 2.0], [1.0 + 1e-7, 2.0], [0.0, 1.0], [0.0, 1.0]])
    assert nearness(z, np.array([0, 0, 1, 1])).twins == 0


vectors = st.lists(st.tuples(*[st.integers(-5, 5)] * 3), min_size=6, max_size=6).map(lambda z: np.array(z, float))


@settings(max_examples=40, deadline=None)
@given(vectors, st.floats(0.1, 10), st.integers(0, 99), st.permutations(range(6)))
def test_turned_scaled_and_renumbered_vectors_are_as_near(z, scale, seed, order):
    orbit = np.array([0, 0, 1, 1, 1, 2])
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((3, 3)))[0]
    one, other = nearness(z, orbit), nearness((scale * z @ turn)[order], orbit[list(order)])
    assert (one.twins, one.others, one.nearest_other, one.told_apart) == pytest.approx(
        (other.twins, other.others, other.nearest_other, other.told_apart), abs=1e-6
    )
