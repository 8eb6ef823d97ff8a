"""Orbits against networkx, distances by hand, and what a turn, a shift or another scale must not change."""

import json
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.utils import from_networkx, to_networkx

from demonet.data.synthetic import barbell, cycle, mirrored_karate
from demonet.errors import DemonetError
from demonet.sealed import canonical
from demonet_study.experiments.expressive.convolutions import same_partition
from demonet_study.experiments.twins import measure_twins, nearness, orbits
from demonet_study.ledger.job import Cell, Job, Result, Stamp
from demonet_study.report.parts.identity import IDENTITY, distances


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


def run(dataset, method, preset="", seed=0, **options):
    return measure_twins(Job(Cell("identity", dataset, method, preset, canonical(options)), seed))


@pytest.mark.parametrize(
    ("method", "preset"), [("demonet-hash", "paper"), ("demonet-weight", "paper"), ("demonet-default", "default")]
)
def test_our_first_weights_put_twins_together_and_others_apart(method, preset):
    done = run("mirrored-karate", method, preset)
    assert done.value == 0
    assert done.extra["told_apart"] == 1
    assert done.extra["nearest_other"] > 0.05
    assert done.extra["found"] == 1


@pytest.mark.parametrize("scheme", ["hash", "weight"])
def test_rows_of_the_adjacency_matrix_tear_twins_apart(scheme):
    done = run("mirrored-karate", f"demonet-{scheme}", "authors")
    assert done.value > 0.5
    assert done.extra["found"] < 0.6


def test_a_gcn_does_both():
    """By its degree a node is treated as its twin is; by its own number it is not."""
    assert run("barbell", "gcn", features="degree-onehot").value == 0
    assert run("barbell", "gcn", features="identity").value > 0.2
    assert run("cycle", "gcn", features="identity").value > 0.2


def test_trained_networks_keep_twins_together():
    done = run("barbell", "demonet-weight", "paper", trained=True)
    assert done.value == 0
    assert done.extra["accuracy"] > 0.5


def test_the_same_seed_gives_the_same_points_and_they_are_json():
    one, other = run("cycle", "demonet-hash", "authors", seed=3), run("cycle", "demonet-hash", "authors", seed=3)
    assert one.extra == other.extra
    assert run("cycle", "demonet-hash", "authors", seed=4).extra["points"] != one.extra["points"]
    assert json.loads(canonical(one.extra)) == one.extra
    assert len(one.extra["points"]) == len(one.extra["roles"]) == 12


@pytest.mark.parametrize(("dataset", "method"), [("brazil", "gcn"), ("barbell", "degree-knn")])
def test_what_has_no_twins_or_no_embedding(dataset, method):
    with pytest.raises(DemonetError):
        run(dataset, method)


def test_distances_are_means_over_the_runs():
    cell = next(e.cell for e in IDENTITY.entries() if (e.cell.dataset, e.cell.preset) == ("cycle", "authors"))
    done = [Result(job, Stamp("code", "{}", "cpu"), measure_twins(job)) for job in (Job(cell, 0), Job(cell, 1))]
    (row,) = distances(IDENTITY.entries(), {cell: done})
    assert (row.dataset, row.method, row.runs) == (cell.dataset, cell.method, 2)
    assert row.twins == pytest.approx(sum(one.outcome.value for one in done) / 2)
    assert math.isnan(row.told_apart)  # on a cycle all nodes are twins
    assert math.isnan(row.accuracy)
    assert distances(IDENTITY.entries(), {}) == []
