"""Every change that the ablation makes can be trained, on each family of problems."""

from __future__ import annotations

import json

import pytest
from tests.experiments.tiny import tiny_sets  # noqa: F401  (a fixture)

from demonet.experiments.accuracy import joined
from demonet.experiments.ledger.job import Cell, Job, canonical
from demonet.experiments.parts import PARTS
from demonet.experiments.perform import perform

SHORT = {"train": {"epochs": 2}}


@pytest.mark.usefixtures("tiny_sets")
@pytest.mark.parametrize("dataset", ["brazil", "blogcatalog", "MUTAG"])
def test_every_change_runs(dataset):
    found = {}
    for entry in PARTS["ablation"].entries():
        cell = entry.cell
        if cell.dataset == dataset:
            options = canonical(joined(json.loads(cell.options), SHORT))
            run = Job(Cell("accuracy", dataset, cell.method, cell.preset, options, "thirds"), 0)
            found[entry.method or cell.method, entry.variant] = perform(run).extra["epochs"]
    assert set(found.values()) == {2}
    assert len(found) == {"brazil": 16, "blogcatalog": 16, "MUTAG": 21}[dataset]
