"""The ablation: every change can be trained; differences by hand, on a set and over sets of a kind."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from tests.study.experiments.tiny import tiny_sets  # noqa: F401  (a fixture)
from tests.study.report.paper_rows import row as made

from demonet.sealed import canonical
from demonet_study.experiments.accuracy import joined
from demonet_study.ledger.job import Cell, Job, perform
from demonet_study.report.parts import PARTS
from demonet_study.report.parts.changes import over_kinds

RUNS = 6


def row(dataset, variant, values):
    return made("ablation", dataset, "demonet-weight", values, preset="paper", variant=variant)


@pytest.fixture
def rows():
    random = np.random.default_rng(0)
    return [
        row(name, variant, list(random.normal(centre, 0.02, RUNS)))
        for name in ("brazil", "usa", "MUTAG")
        for variant, centre in (("full", 0.6), ("without the seed part", 0.4), ("smooth tasks", 0.6))
    ]


def test_over_a_kind_each_set_counts_once(rows):
    found = {(one.subject, one.over): one for one in over_kinds(rows)}
    assert {kind for _, kind in found} == {"airports", "graphs"}
    air = found["without the seed part", "airports"]
    brazil, usa = (np.subtract(rows[i + 1].values, rows[i].values).mean() for i in (0, 3))
    assert air.difference.mean == pytest.approx((brazil + usa) / 2)
    assert (air.sets, air.missing) == (("brazil", "usa"), ())
    assert air.corrected < 0.05 < found["smooth tasks", "airports"].corrected
    assert air.corrected >= air.difference.p  # corrected for the other three


@pytest.mark.parametrize("place", [0, 1], ids=["full", "changed"])
def test_no_p_before_every_run_is_there(rows, place):
    rows[place] = replace(rows[place], values=rows[place].values[:3], runs=3)
    found = {(one.subject, one.over): one for one in over_kinds(rows)}
    short = found["without the seed part", "airports"]
    assert math.isnan(short.corrected)
    assert short.missing == ("brazil",)
    assert short.difference.runs == 3
    assert not math.isnan(found["without the seed part", "graphs"].corrected)


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
