"""Time of an epoch through the bench's clock, as a run of the ledger."""

import pytest

from demonet.errors import DemonetError
from demonet.sealed import canonical
from demonet_study.experiments import timing
from demonet_study.experiments.timing import spec_of, speed
from demonet_study.ledger.job import Cell, Job


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
