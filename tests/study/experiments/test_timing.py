"""Time of an epoch through the bench's clock, as a run of the ledger."""

from __future__ import annotations

import pytest
import torch

from demonet.errors import DemonetError
from demonet.sealed import canonical
from demonet_study.bench import METHODS as NETWORKS
from demonet_study.experiments import timing
from demonet_study.experiments.timing import spec_of, speed, threads
from demonet_study.ledger.job import Cell, Job
from demonet_study.report.parts import PARTS
from demonet_study.report.parts.speed import METHODS, SPEED


def job(dataset, network, seed=0):
    return Job(Cell("speed", dataset, network, options=canonical({"network": network, "threads": 1})), seed)


def test_a_run(monkeypatch):
    monkeypatch.setattr(timing, "REPEATS", 3)
    done = speed(job("uniform-200", "weight"))
    assert 0 < done.extra["q1"] <= done.value <= done.extra["q3"]
    assert (done.extra["nodes"], done.extra["arcs"], done.extra["threads"]) == (200, 800, 1)
    assert done.extra["samples"] == 3
    assert done.seconds > 0
    assert done.peak_memory_mb > 0


def test_another_seed_is_another_graph():
    one, other = (spec_of("uniform-200", seed).make().edge_index for seed in (0, 1))
    assert one.shape == other.shape
    assert not torch.equal(one, other)


@pytest.mark.parametrize("name", ["uniform", "uniform-many", "brazil", "brazil-100"])
def test_names_that_are_no_graph(name):
    with pytest.raises(DemonetError, match=f"'{name}'"):
        spec_of(name, 0)


def test_a_network_that_fails_is_an_error_and_not_a_time(monkeypatch):
    def broken(method, graph, precision):
        raise MemoryError("no room")

    monkeypatch.setattr("demonet_study.bench.measure.build", broken)
    with pytest.raises(DemonetError, match="no room"):
        speed(job("uniform-200", "weight"))


def test_the_number_of_threads_is_given_back():
    before = torch.get_num_threads()
    with threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_the_part():
    assert all(wanted.alone for wanted in SPEED.wanted())
    assert {network for _, _, network in METHODS} <= set(NETWORKS)
    cells = [entry.cell for entry in SPEED.entries()]
    assert len(set(cells)) == len(cells)
    assert {entry.cell for entry in SPEED.entries(quick=True)} < set(cells)
    assert PARTS["speed"] is SPEED
