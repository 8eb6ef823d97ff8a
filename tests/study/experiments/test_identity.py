"""Where twins land: together by architecture, unless the features name each node."""

from __future__ import annotations

import json
import math

import pytest

from demonet.errors import DemonetError
from demonet.sealed import canonical
from demonet_study.experiments.twins import measure_twins
from demonet_study.ledger.job import Cell, Job, Result, Stamp
from demonet_study.report.parts.identity import IDENTITY, distances


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
