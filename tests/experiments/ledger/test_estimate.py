"""How long a run will take."""

from __future__ import annotations

from demonet.experiments.ledger.estimate import Estimate
from demonet.experiments.ledger.job import Cell


def test_the_likest_runs_tell():
    known = [
        (Cell("accuracy", "brazil", "gcn", split="thirds"), 2, 2.0),
        (Cell("accuracy", "brazil", "gcn", split="nested:10"), 1, 20.0),
        (Cell("accuracy", "usa", "gcn", split="thirds"), 1, 7.0),
        (Cell("accuracy", "usa", "rolx", split="thirds"), 4, 20.0),
    ]
    estimate = Estimate(known)
    assert [estimate.of(cell) for cell, _, _ in known] == [1.0, 20.0, 7.0, 5.0]
    assert estimate.of(Cell("accuracy", "brazil", "gcn", options='{"a":1}', split="thirds")) == 1.0
    assert estimate.of(Cell("accuracy", "europe", "gcn", split="nested:10")) == 20.0
    assert estimate.of(Cell("accuracy", "europe", "gcn", split="thirds")) == 3.0
    assert estimate.of(Cell("accuracy", "europe", "gcn", split="train:0.3")) == 29.0 / 4
    assert estimate.of(Cell("accuracy", "europe", "gat")) == 49.0 / 8
    estimate.add(Cell("accuracy", "europe", "gat"), 9.0)
    assert estimate.of(Cell("accuracy", "europe", "gat")) == 9.0


def test_nothing_is_guessed_from_nothing():
    assert Estimate().of(Cell("accuracy", "brazil", "gcn")) is None
