"""Where twins land: together by architecture, unless the features name each node."""

from __future__ import annotations

import json
import math

import pytest
import torch

from demonet.data.splits import half
from demonet.errors import DemonetError
from demonet.methods.convolutional import GCN
from demonet.sealed import canonical
from demonet_study.experiments.twins import graph_of, measure_twins
from demonet_study.ledger.job import Cell, Job, Result, Stamp
from demonet_study.report.parts import PARTS
from demonet_study.report.parts.identity import IDENTITY, distances


def run(dataset, method, preset="", seed=0, **options):
    return measure_twins(Job(Cell("identity", dataset, method, preset, canonical(options)), seed))


@pytest.mark.parametrize(
    ("method", "preset"), [("demonet-hash", "paper"), ("demonet-weight", "paper"), ("demonet-default", "default")]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_our_first_weights_put_twins_together_and_others_apart(method, preset, seed):
    done = run("mirrored-karate", method, preset, seed=seed)
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


def test_two_layers_do_not_see_the_middle_of_a_long_path():
    """Its nodes are alike two steps far: neither DEMO-Net nor a GCN tells all roles of the barbell apart."""
    ours, gcn = run("barbell", "demonet-weight", "paper"), run("barbell", "gcn", features="degree-onehot")
    assert gcn.extra["told_apart"] < ours.extra["told_apart"] < 1
    assert ours.value == 0


def test_diffusion_needs_no_weights():
    one, other = run("barbell", "graphwave"), run("barbell", "graphwave", seed=5)
    assert one.value == other.value == 0
    assert one.extra["told_apart"] == 1


def test_trained_networks_keep_twins_together():
    done = run("barbell", "demonet-weight", "paper", trained=True)
    assert done.value == 0
    assert done.extra["accuracy"] > 0.5
    assert run("barbell", "gcn", features="identity", trained=True).value > 0.2


def test_the_same_seed_gives_the_same_points_and_they_are_json():
    one, other = run("cycle", "demonet-hash", "authors", seed=3), run("cycle", "demonet-hash", "authors", seed=3)
    assert one.extra == other.extra
    assert run("cycle", "demonet-hash", "authors", seed=4).extra["points"] != one.extra["points"]
    assert json.loads(canonical(one.extra)) == one.extra
    assert len(one.extra["points"]) == len(one.extra["roles"]) == 12


def test_every_role_is_in_the_labelled_half():
    for name in ("mirrored-karate", "barbell"):
        data = graph_of(name)
        split = half(data, 0)
        assert set(data.y[split.train].tolist()) == set(data.y.tolist())
        assert not set(split.train.tolist()) & set(split.test.tolist())


def test_first_weights_of_a_baseline_are_those_its_training_starts_from():
    data = graph_of("barbell")
    first = GCN("degree-onehot").first_embeddings(data, 0)
    again, other = GCN("degree-onehot").first_embeddings(data, 0), GCN("degree-onehot").first_embeddings(data, 1)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(("dataset", "method"), [("brazil", "gcn"), ("barbell", "degree-knn")])
def test_what_has_no_twins_or_no_embedding(dataset, method):
    with pytest.raises(DemonetError):
        run(dataset, method)


def test_the_part():
    cells = [entry.cell for entry in IDENTITY.entries()]
    assert len(set(cells)) == len(cells)
    assert {cell.dataset for cell in cells} == {"mirrored-karate", "barbell", "cycle"}
    assert {"gcn", "struc2vec", "graphwave", "demonet-hash", "demonet-weight", "demonet-default"} == {
        cell.method for cell in cells
    }
    assert set(IDENTITY.wanted(quick=True)) != set(IDENTITY.wanted())
    assert PARTS["identity"] is IDENTITY


def test_distances_are_means_over_the_runs():
    cell = next(e.cell for e in IDENTITY.entries() if (e.cell.dataset, e.cell.preset) == ("cycle", "authors"))
    done = [Result(job, Stamp("code", "{}", "cpu"), measure_twins(job)) for job in (Job(cell, 0), Job(cell, 1))]
    (row,) = distances(IDENTITY.entries(), {cell: done})
    assert (row.dataset, row.method, row.runs) == (cell.dataset, cell.method, 2)
    assert row.twins == pytest.approx(sum(one.outcome.value for one in done) / 2)
    assert math.isnan(row.told_apart)  # on a cycle all nodes are twins
    assert math.isnan(row.accuracy)
    assert distances(IDENTITY.entries(), {}) == []
