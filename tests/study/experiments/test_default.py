"""A run under both rules: every family of methods, the ensemble, the closed form and its arms, generated graphs."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from tests.study.experiments.tiny import tiny, tiny_sets  # noqa: F401  (a fixture)

from demonet.closedform import KernelMachine
from demonet.data.splits import thirds
from demonet.data.synthetic import role_graph
from demonet.ensemble import Ensemble
from demonet.features.views import NodeView
from demonet.methods.base import labels
from demonet.methods.closed_form import Kernel
from demonet.sealed import canonical
from demonet_study.experiments import default as runs
from demonet_study.ledger.job import Cell, Job, perform
from demonet_study.protocol import split_by

pytestmark = pytest.mark.usefixtures("tiny_sets")
SHORT = {"train": {"epochs": 3}}
QUICK = {"effort": "quick"}


def job(dataset, name, options=None, split="thirds", seed=7001, kind="default"):
    return Job(Cell(kind, dataset, name, "", canonical(options or {}), split), seed)


RUNS = [
    job("brazil", "degree-svm"),
    job("brazil", "union", SHORT),
    job("blogcatalog", "sage", SHORT | {"features": "tfidf+degree-rbf"}, "10/20/70"),
    job("MUTAG", "wl-1nn"),
    job("MUTAG", "gin", SHORT | {"features": "attributes+degree-rbf"}),
]


@pytest.mark.parametrize("run", RUNS, ids=lambda r: f"{r.cell.dataset}-{r.cell.method}")
def test_strict_is_what_the_tables_of_the_paper_have(run):
    """The same number as a run of kind ``accuracy``; ``refit`` beside it."""
    found = perform(run)
    cell = run.cell
    before = perform(job(cell.dataset, cell.method, json.loads(cell.options), cell.split, kind="accuracy"))
    assert (found.value, found.extra["validation"]) == (before.value, before.extra["validation"])
    assert found.extra["split"] == before.extra["split"]
    assert 0.0 <= found.extra["refit"] <= 1.0
    assert found.seconds > 0
    assert ("epochs" in found.extra) == ("epochs" in cell.options)
    json.dumps(dict(found.extra), allow_nan=False)


def test_the_ensemble_is_that_of_fit(monkeypatch):
    made, fit = [], Ensemble.fit

    def watched(data, split, **options):
        made.append((split, options, fit(data, split, **options)))
        return made[0][2]

    monkeypatch.setattr(Ensemble, "fit", watched)
    found, data = perform(job("brazil", "demonet-auto", QUICK)), tiny("brazil")
    ((split, options, fitted),) = made
    assert split == split_by("thirds", labels(data), 7001)
    assert options == {"task": "classify", "effort": "quick", "seed": 7001, "device": "cpu", "refit": True}
    y, test = data.y.numpy(), split.test.numpy()
    for rule, proba, value in (
        ("strict", fitted.strict_outputs, found.value),
        ("refit", fitted.fitted_outputs, found.extra["refit"]),
    ):
        assert value == (proba[test].argmax(1) == y[test]).mean()
        loss = -np.log(proba[test][np.arange(len(test)), y[test]]).mean()
        assert found.extra["log_loss"][rule] == pytest.approx(loss)
    weights = found.extra["weights"]
    assert math.fsum(weights.values()) == pytest.approx(1.0, abs=1e-4)
    assert {"machine", "kernel-demo", "forest-degree"} <= set(weights)
    assert (fitted.validation["metric"], fitted.validation["score"]) == ("accuracy", found.extra["validation"])
    json.dumps(dict(found.extra), allow_nan=False)


def test_the_closed_form_and_its_arms():
    dataset = "brazil"
    best, none, shuffled = (
        perform(job(dataset, "demonet-kernel", options)) for options in ({}, {"degree": "none"}, {"degree": "shuffled"})
    )
    assert none.extra["degree"] == 0.0
    data = tiny(dataset)
    split, y = split_by("thirds", labels(data), 7001), labels(data).numpy()
    train, val, test = (part.numpy() for part in (split.train, split.val, split.test))
    machine = KernelMachine(seed=7001).fit(data, train, y[train], val, y[val])
    assert best.value == (machine.predict(data, test) == y[test]).mean()
    settings, both = [setting for setting, _ in machine.members_], np.sort(np.concatenate([train, val]))
    again = KernelMachine(machine.task_, settings=settings, seed=7001).fit(data, both, y[both])
    assert best.extra["refit"] == (again.predict(data, test) == y[test]).mean()
    assert 0.0 <= none.value <= 1.0
    assert 0.0 <= shuffled.value <= 1.0
    assert "refit" not in {**none.extra, **shuffled.extra}  # the arms are compared under strict


def test_degrees_are_shuffled_before_kappa_and_nowhere_else():
    view = NodeView(tiny("brazil"))
    shuffled, plain = (Kernel(degree=arm)._inputs(view, np.arange(10), 3)[1] for arm in ("shuffled", "best"))
    assert np.array_equal(shuffled.degree, plain.degree)
    assert np.array_equal(shuffled.structure, plain.structure)
    assert sorted(shuffled.task) == sorted(plain.task)
    assert not np.array_equal(shuffled.task, plain.task)


def test_a_generated_graph_is_another_one_in_every_run(monkeypatch):
    made = []

    def generate(seed):
        made.append(seed)
        data = role_graph(seed, motifs=6)
        data.y = data.y % 3
        return data

    monkeypatch.setitem(runs.GENERATED, "flip", generate)
    for name in ("demonet-kernel", "degree-knn"):
        for seed in (7001, 7002):
            found = perform(job("flip", name, split="fresh:thirds", seed=seed))
            split = thirds(role_graph(seed, motifs=6).y % 3, seed)
            assert found.extra["split"] == split.hash
    assert made == [7001, 7002] * 2


def test_the_closed_form_uses_the_device(monkeypatch):
    made = []

    class Machine(KernelMachine):
        def __init__(self, *arguments, device, **options):
            made.append(device)
            super().__init__(*arguments, **options)

    monkeypatch.setattr("demonet.methods.closed_form.KernelMachine", Machine)
    perform(job("brazil", "demonet-kernel"), "cuda")
    assert made == ["cuda", "cpu"] * 2  # fitted on the device; predictions are made on the CPU
