"""A run that gives an accuracy: every family of methods, every protocol, options, and errors that say what is wrong."""

import json
import math

import numpy as np
import pytest
import torch
from tests.study.experiments.tiny import tiny, tiny_sets  # noqa: F401  (a fixture)

from demonet import DemonetError
from demonet.closedform import KernelMachine
from demonet.data.splits import thirds
from demonet.data.synthetic import role_graph
from demonet.ensemble import Ensemble
from demonet.methods.base import labels
from demonet.sealed import canonical
from demonet_study.experiments import accuracy as runs
from demonet_study.experiments.accuracy import GRIDS, accuracy, method, read
from demonet_study.ledger.job import Cell, Job, perform
from demonet_study.methods.embedding import Embedding
from demonet_study.methods.graphwave import GraphWave
from demonet_study.protocol import split_by

pytestmark = pytest.mark.usefixtures("tiny_sets")
SHORT = {"train": {"epochs": 3}}


def job(dataset, name, preset="", options=None, split="thirds", seed=0):
    return Job(Cell("accuracy", dataset, name, preset, canonical(options or {}), split), seed)


# Every method is fitted in tests/methods/test_refit.py.
RUNS = [
    *(job("brazil", name) for name in ("majority", "graphwave")),
    *(job("MUTAG", name, options=SHORT) for name in ("gin", "diffpool")),
    job("blogcatalog", "attribute-neighbour-lr", split="10/20/70"),
    *(job("MUTAG", f"demonet-{name}", "paper", SHORT) for name in ("weight", "m-hash")),
    job("brazil", "demonet-hash", "authors", SHORT),
    *(job(s, "demonet-default", "default", SHORT) for s in ("brazil", "MUTAG", "blogcatalog")),
]


@pytest.mark.parametrize("run", RUNS, ids=lambda r: f"{r.cell.dataset}-{r.cell.method}-{r.cell.preset}")
def test_every_family_of_methods_runs(run):
    first = perform(run)
    if run in RUNS[::5]:
        again = perform(run)
        assert (first.value, first.extra) == (again.value, again.extra)
    assert 0.0 <= first.value <= 1.0
    assert 0.0 <= first.extra["validation"] <= 1.0
    assert first.seconds > 0
    assert 50 < first.peak_memory_mb < 100_000
    split = split_by(run.cell.split, labels(tiny(run.cell.dataset)), 0)
    assert first.extra["split"] == split.hash
    assert first.extra.get("epochs") == (3 if "epochs" in run.cell.options else None)
    json.dumps(dict(first.extra), allow_nan=False)


def test_the_value_is_the_accuracy_on_the_test_part():
    data = tiny("brazil")
    split = split_by("thirds", data.y, 4)
    commonest = torch.bincount(data.y[split.train]).argmax()
    expected = float((data.y[split.test] == commonest).double().mean())
    assert accuracy(job("brazil", "majority", seed=4)).value == expected


def test_options_change_the_configuration():
    options = {"model": {"hidden": 8, "layers": 3}, "train": {"lr": 0.1}, "features": "constant", "tasks": "log2"}
    chosen = method("demonet-m-hash", "paper", options).preset("graphs")
    assert (chosen.model.hidden, chosen.model.layers, chosen.train.lr) == (8, 3, 0.1)
    assert (chosen.features, chosen.tasks) == ("constant", "log2")
    assert (chosen.model.scheme, chosen.model.pooling) == ("hash", "mean")
    assert method("demonet-smooth", "paper").preset("nodes").model.scheme == "smooth"
    assert method("demonet-default", "default").preset("graphs").model.pooling == "sum+degree"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (job("brazil", "gnn"), "'gnn'"),
        (job("brazil", "gcn", split="halves"), "'halves'"),
        (job("brazil", "gcn", options={"depth": 3}), "gcn has no setting 'depth'"),
        (job("brazil", "gcn", options={"train": {"rate": 1}}), "unknown training option 'rate'"),
        (job("brazil", "gcn", "paper"), "gcn .*'preset'"),
        (job("brazil", "demonet-hash", "paper", {"depth": 3}), "demonet-hash .*'depth'"),
        (job("brazil", "demonet-hash", "paper", {"model": {"depth": 3}}), "unknown model option 'depth'"),
        (job("brazil", "demonet-hash", "ours"), "no preset 'ours'"),
        (job("brazil", "demonet-hash", "default"), "demonet-default has the preset 'default'"),
        (job("brazil", "demonet-default", "paper"), "demonet-default with preset 'paper'"),
        (job("brazil", "demonet-m-hash", "paper"), "demonet-m-hash classifies graphs"),
        (Job(Cell("beauty", "brazil", "gcn"), 0), "'beauty'"),
        (job("brasil", "demonet-hash", "paper"), "did you mean 'brazil'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_named(wrong, message):
    with pytest.raises(DemonetError, match=message):
        perform(wrong)


def test_a_grid_is_chosen_from_without_the_test_part(monkeypatch):
    """The setting with the best validation accuracy is the one that is tested, once, and the others never are."""
    seen = []

    class Made:
        def __init__(self, options):
            self.options = options

        history = None

        def fit(self, data, split, seed):
            seen.append((self.options, split.test.numel()))
            return self

        def score(self, items, y):
            return self.options["model"]["hidden"] / 100 + self.options["model"]["dropout"] / 10

    monkeypatch.setattr(runs, "method", lambda name, preset, options: Made(options))
    monkeypatch.setattr(runs, "read", lambda made, dataset, device: tiny(dataset))
    found = accuracy(job("MUTAG", "demonet-default", "default", {"tasks": "log2"}, split="nested:10", seed=3))
    best = {"model": {"hidden": 64, "dropout": 0.5}}
    assert found.extra["chosen"] == best
    assert [options for options, _ in seen] == [
        *({**each, "tasks": "log2"} for each in GRIDS["demonet-default"]),
        {**best, "tasks": "log2"},
    ]
    assert [tested for _, tested in seen[:-1]] == [0] * 4
    assert seen[-1][1] > 0


def test_nested_folds_of_a_network_with_a_grid():
    found = perform(job("MUTAG", "gin", options=SHORT, split="nested:10", seed=9))
    assert found.extra["chosen"] in GRIDS["gin"]
    assert found.extra["epochs"] == 3


def test_methods_without_a_use_for_a_device_stay_on_the_cpu(monkeypatch):
    asked = []
    monkeypatch.setattr("demonet_study.experiments.accuracy.moved", lambda data, device: asked.append(device) or data)
    for run in (job("brazil", "degree-knn"), job("MUTAG", "wl")):
        perform(run, "cuda")
    for run in (job("brazil", "gcn", options=SHORT), job("MUTAG", "demonet-default", "default", SHORT)):
        perform(run, "cuda")
    assert asked == ["cpu", "cpu", "cuda", "cuda"]


def test_an_embedding_serves_every_split_and_its_time_counts_in_each(monkeypatch):
    made = []
    monkeypatch.setattr(Embedding, "_cache", {})
    embed = GraphWave.embed
    monkeypatch.setattr(GraphWave, "embed", lambda self, data, seed=0: made.append(seed) or embed(self, data, seed))
    first, second, other = (
        perform(job("brazil", "graphwave", split=split, seed=seed))
        for split, seed in (("train:0.3", 0), ("train:0.6", 0), ("train:0.6", 1))
    )
    assert made == [0, 1]
    assert len({first.extra["split"], second.extra["split"], other.extra["split"]}) == 3
    kept, fresh = method("graphwave"), GraphWave()
    data = read(kept, "brazil", "cpu")
    split, y = split_by("train:0.6", labels(data), 1), labels(data)
    again = kept.fit(data, split, 1)
    assert again.earlier > 0
    key, z, _ = Embedding._cache["graphwave"]
    monkeypatch.setitem(Embedding._cache, "graphwave", (key, z, 1000.0))
    assert perform(job("brazil", "graphwave", split="train:0.5", seed=1)).seconds > 1000
    scores = other.value, again.score(split.test, y)
    monkeypatch.setattr(Embedding, "_cache", {})
    assert scores == (fresh.fit(data, split, 1).score(split.test, y),) * 2


QUICK = {"effort": "quick"}


def default(dataset, name, options=None, split="thirds", seed=7001, kind="default"):
    """A run under both rules."""
    return Job(Cell(kind, dataset, name, "", canonical(options or {}), split), seed)


UNDER_BOTH = [
    default("brazil", "degree-svm"),
    default("brazil", "union", SHORT),
    default("blogcatalog", "sage", SHORT | {"features": "tfidf+degree-rbf"}, "10/20/70"),
    default("MUTAG", "wl-1nn"),
    default("MUTAG", "gin", SHORT | {"features": "attributes+degree-rbf"}),
]


@pytest.mark.parametrize("run", UNDER_BOTH, ids=lambda r: f"{r.cell.dataset}-{r.cell.method}")
def test_strict_is_what_the_tables_of_the_paper_have(run):
    """The same number as a run of kind ``accuracy``; ``refit`` beside it."""
    found = perform(run)
    cell = run.cell
    before = perform(default(cell.dataset, cell.method, json.loads(cell.options), cell.split, kind="accuracy"))
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
    found, data = perform(default("brazil", "demonet-auto", QUICK)), tiny("brazil")
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
        perform(default(dataset, "demonet-kernel", options))
        for options in ({}, {"degree": "none"}, {"degree": "shuffled"})
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
            found = perform(default("flip", name, split="fresh:thirds", seed=seed))
            split = thirds(role_graph(seed, motifs=6).y % 3, seed)
            assert found.extra["split"] == split.hash
    assert made == [7001, 7002] * 2


def test_the_closed_form_uses_the_device(monkeypatch):
    fitted, predicting = [], []

    class Machine(KernelMachine):
        def __init__(self, *arguments, device, **options):
            fitted.append(device)
            super().__init__(*arguments, **options)

        @classmethod
        def from_state(cls, info, arrays, device):
            predicting.append(device)
            return KernelMachine.from_state(info, arrays)

    monkeypatch.setattr("demonet.methods.closed_form.KernelMachine", Machine)
    perform(default("brazil", "demonet-kernel"), "cuda")
    assert fitted == predicting == ["cuda"] * 2
