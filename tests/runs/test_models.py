"""Which model a run fits, what it says about it, and how a run of candidates goes on after an interruption."""

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from tests.runs.files import FAST, FILES, Killed, Told, fit, page, roles, write_problem, write_table

from demonet import DEMONetClassifier, DemonetError, checks
from demonet.closedform import DegreeEffect
from demonet.data import Split
from demonet.data.synthetic import role_graph
from demonet.ensemble.checkpoint import FORMAT
from demonet.methods.closed_form import Kernel
from demonet.methods.forest import NodeForest
from demonet.methods.kernel_ridge import NodeKernel
from demonet.options import Reading
from demonet.report.page import write
from demonet.report.run import run_page
from demonet.runs import RunProgress, Settings, embed_run, fit_run, load_run, predict_run
from demonet.runs.diagnosis import verdict
from demonet.runs.floors import floor_scores
from demonet.runs.inputs import read_inputs
from demonet.runs.plan import decide_model
from demonet.tensorfile import read_tensors, write_tensors
from demonet.train import METRICS
from demonet.train.objective import value_of

AUTO = Settings(effort="quick")
fits = sys.modules["demonet.runs.fit"]


@pytest.fixture
def few(problem, monkeypatch):
    """Three quick candidates in place of the portfolio, and 150 nodes, of which some are labelled wrongly."""
    write_problem(problem, 30)
    _, labels = roles(30)
    names, kinds = list(labels), np.array(list(labels.values()))
    moved = np.random.default_rng(0).permutation(len(names))[:40]
    kinds[np.sort(moved)] = kinds[moved]
    write_table(problem / "labels.csv", ("node", "label"), zip(names, kinds, strict=True))

    def portfolio(view, labelled, effort):
        return [
            Kernel("machine", task="classes", members=2),
            NodeKernel("kernel-degree", kernel="degree"),
            NodeForest("forest-degree", columns="degree", trees=5),
        ]

    monkeypatch.setattr("demonet.ensemble.ensemble.portfolio", portfolio)


@pytest.mark.parametrize("settings", [AUTO, Settings(model="kernel"), FAST], ids=["auto", "kernel", "network"])
def test_a_graph_without_nodes_is_an_error_for_every_model(problem, few, settings):
    fit(settings=settings)
    (problem / "nothing.graphml").write_text(
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected"/></graphml>'
    )
    for use in (predict_run, embed_run):
        with pytest.raises(DemonetError, match=r"nothing\.graphml: .*no nodes"):
            use("run", "nothing.graphml")


def test_what_is_being_done_is_told_while_a_kernel_machine_is_fitted(problem, monkeypatch):
    """The terminal said that files were being read."""
    steps, seen, fit_one = [], [], fits._fit

    class Steps(RunProgress):
        def step(self, what, done=0, total=0):
            steps.append(what)

    monkeypatch.setattr(fits, "_fit", lambda *given, **options: (seen.append(steps[-1]), fit_one(*given, **options))[1])
    fit(settings=Settings(model="kernel"), progress=Steps())
    assert seen
    assert all("kernel machine" in step for step in seen)


def test_more_classes_than_any_model_is_for_are_refused_with_the_file(problem, monkeypatch):
    """20,000 classes took 9 GB and had no end."""
    monkeypatch.setattr(checks, "MOST_CLASSES", 2)
    for settings in (AUTO, Settings(epochs=2)):
        with pytest.raises(DemonetError, match=r"^labels\.csv: 3 classes, more than 2"):
            fit(settings=settings)
    assert not (problem / "run").exists()
    with pytest.raises(DemonetError, match="12 classes, more than 2"):
        DEMONetClassifier(model="kernel").fit(role_graph(motifs=4))
    monkeypatch.setattr(checks, "MOST_CLASSES", 3)
    fit(settings=Settings(epochs=2))


def test_the_default_is_an_ensemble_that_says_all(problem, few):
    told = Told()
    run = fit(settings=Settings(seed=7000), progress=told)
    metrics = json.loads((problem / "run" / "metrics.json").read_text())
    assert metrics == run.metrics
    assert (metrics["model"], metrics["rule"], metrics["effort"]) == ("auto", "refit", "standard")
    assert any(line.startswith("model: auto") for line in told.lines)
    finished = [name for stage, name in told.stages if stage == "done"]
    assert sorted(finished) == ["forest-degree", "kernel-degree", "machine"]
    assert sorted(file.name for file in (problem / "run").iterdir()) == FILES
    table = {row["name"]: row for row in metrics["candidates"]}
    assert sum(row["weight"] for row in table.values()) == pytest.approx(1)
    assert all(row["interval"][0] <= row["score"] <= row["interval"][1] for row in table.values())
    assert metrics["judged"] == {"items": 30, "by": "validation"}
    assert metrics["gain"]["accuracy"]["best_score"] == max(row["score"] for row in table.values())
    assert metrics["gain"]["log-loss"]["best_score"] == min(row["loss"] for row in table.values())
    assert metrics["test_metric"] == metrics["refit"]["test_metric"]
    assert metrics["floors"] == metrics["refit"]["floors"]
    assert set(metrics["strict"]["floors"]) == {"majority", "degree-knn"}
    effect = metrics["degree_effect"]
    assert effect["items"] == metrics["split"]["train"] + metrics["split"]["val"]
    assert np.shape(effect["sharing"]) == (len(effect["degrees"]),) * 2 == (2, 2)
    assert effect["verdict"] in (problem / "run" / "MODEL_CARD.md").read_text()
    card = (problem / "run" / "MODEL_CARD.md").read_text()
    assert all(f"| {name} |" in card for name in table)
    assert "contains its training data" in card
    assert (run.history, run.degree_task) == ({}, None)
    assert load_run("run").metrics == metrics


def test_what_is_measured_is_what_is_saved(problem, few):
    run = fit(settings=AUTO)
    model = DEMONetClassifier.load("run/model.safetensors", graph="edges.csv")
    np.testing.assert_array_equal(model.predict_proba().astype(np.float32), run.outputs)
    np.testing.assert_array_equal(predict_run("run", "edges.csv")[2], run.outputs)
    assert embed_run("run", "edges.csv")[1].shape[0] == len(run.ids)
    split = Split.load(problem / "run" / "split.json")
    for key, metric in (("test_metric", "accuracy"), ("macro_f1", "macro-f1")):
        again = value_of(METRICS[metric], "classify", run.y[split.test], model.predict_proba()[split.test])
        assert run.metrics[key] == again
    again = DEMONetClassifier(effort="quick", directed=False)
    again.fit_split(read_inputs("edges.csv", "labels.csv", None, Reading()).data, split)
    strict = again.model_.ensemble.strict_outputs
    assert run.metrics["val_metric"] == (strict.argmax(1) == run.y)[split.val].mean()
    assert run.metrics["strict"]["test_metric"] == (strict.argmax(1) == run.y)[split.test].mean()


def test_what_is_measured_in_a_process_is_what_is_measured_here(problem, few):
    here, beside = (fit(out=f"{jobs}", settings=replace(AUTO, jobs=jobs)).metrics for jobs in (1, 2))
    for name in ("degree_effect", "importance", "reasons", "test_metric"):
        assert here[name] == beside[name]


def test_an_interrupted_run_goes_on_with_the_finished_candidates(problem, few):
    settings = Settings(effort="quick", cv=2)
    whole = fit(out="whole", settings=settings)
    with pytest.raises(Killed):
        fit(settings=settings, progress=Told(("fit", 2)))
    files = sorted(file.name for file in (problem / "run" / "unfinished").glob("checkpoint-000*/*"))
    assert files == ["kernel-degree.fit.safetensors", "machine.fit.safetensors"]
    with pytest.raises(Killed):
        fit(settings=settings, resume=True, progress=Told(("refit", 1)))
    told = Told()
    run = fit(settings=settings, resume=True, progress=told)
    begun = [name for stage, name in told.stages if stage == "fit"]
    assert begun == ["machine", "kernel-degree", "forest-degree"]  # of the second split alone
    np.testing.assert_array_equal(run.outputs, whole.outputs)
    assert run.metrics["cv"] == whole.metrics["cv"]
    assert (problem / "run" / "predictions.csv").read_bytes() == (problem / "whole" / "predictions.csv").read_bytes()
    assert sorted(file.name for file in (problem / "run").iterdir()) == FILES


@pytest.mark.parametrize("part", ["outputs", "judged", "model", "row"])
def test_a_candidate_whose_values_do_not_fit_is_named(problem, few, part):
    """With a checksum that is right: the folder of the run was named."""
    with pytest.raises(Killed):
        fit(settings=AUTO, progress=Told(("fit", 2)))
    (file,) = (problem / "run" / "unfinished").glob("checkpoint-000*/kernel-degree.fit.safetensors")
    tensors, facts, _ = read_tensors(file, FORMAT)
    if part in tensors:
        tensors[part] = tensors[part][1:]
    else:
        facts[part] = {"options": facts["model"]["options"]} if part == "model" else 3
    write_tensors(file, FORMAT, tensors, facts)
    with pytest.raises(DemonetError, match=re.escape(file.name)):
        fit(settings=AUTO, resume=True)


def test_the_metric_is_that_of_candidates_gain_and_floors_and_the_diagnosis_is_bounded(problem, few, monkeypatch):
    monkeypatch.setattr("demonet.runs.diagnosis.MOST_SECONDS", {"quick": 0.0})
    run = fit(settings=Settings(metric="macro-f1", effort="quick"))
    assert set(run.metrics["degree_effect"]) == {"skipped"}
    assert run.metrics["degree_effect"]["skipped"] in (problem / "run" / "MODEL_CARD.md").read_text()
    assert run.metrics["metric"] == "macro-f1"
    assert set(run.metrics["gain"]) == {"macro-f1", "log-loss"}
    assert {row["metric"] for row in run.metrics["candidates"]} == {"macro-f1"}
    assert run.metrics["floors"]["majority"] < 0.3  # macro F1 of one class among three


@pytest.mark.parametrize(("labels", "metric"), [("scores.csv", "rmse"), ("tags.csv", "average-precision")])
def test_numbers_and_several_labels_have_the_whole_ensemble(problem, few, labels, metric):
    told = Told()
    run = fit_run("edges.csv", labels, out="run", settings=AUTO, page=page, progress=told)
    metrics = run.metrics
    assert (run.model, metrics["rule"], metrics["metric"], metrics["effort"]) == ("auto", "refit", metric, "quick")
    assert {row["metric"] for row in metrics["candidates"]} == {metric}
    assert sum(row["weight"] for row in metrics["candidates"]) == pytest.approx(1)
    assert metrics["strict"]["test_metric"] != metrics["refit"]["test_metric"]
    assert "gain" in metrics["degree_effect"]
    np.testing.assert_allclose(predict_run("run", "edges.csv")[2], run.outputs, rtol=1e-6)
    if metric == "rmse":
        with pytest.raises(Killed):
            fit_run("edges.csv", labels, out="again", settings=AUTO, progress=Told(("fit", 1)))
        again = fit_run("edges.csv", labels, out="again", settings=AUTO, resume=True)
        np.testing.assert_array_equal(again.outputs, run.outputs)


@pytest.mark.parametrize(
    ("given", "task", "model", "names"),
    [
        ({}, "classify", "auto", ["model='network'"]),
        ({"epochs": 3}, "classify", "network", ["epochs=3", "model='auto'"]),
        ({"preset": "paper"}, "regress", "network", ["preset='paper'"]),
        ({}, "regress", "auto", ["model='network'"]),
        ({"effort": "quick"}, "multilabel", "auto", ["model='network'"]),
        ({"model": "kernel"}, "regress", "kernel", []),
        ({"class_weight": "balanced"}, "classify", "auto", ["model='network'"]),
        ({"class_weight": "balanced", "model": "kernel"}, "classify", "kernel", []),
    ],
)
def test_the_model_is_chosen_and_said(given, task, model, names):
    chosen, line = decide_model(Settings(**given), task)
    assert chosen == model
    assert line.startswith(f"model: {model}")
    assert [name for name in names if name not in line] == []


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"model": "auto", "epochs": 3}, r"epochs: .*model='network'"),
        ({"model": "kernel", "scheme": "hash"}, r"scheme: .*model='network'"),
        ({"model": "network", "effort": "quick"}, r"effort: .*model='auto'"),
        ({"epochs": 3, "effort": "quick"}, r"effort: .*epochs"),
        ({"time_limit": 0.0}, r"time_limit: "),
    ],
)
def test_options_that_exclude_each_other(given, match):
    with pytest.raises(DemonetError, match=match):
        Settings(**given)


def test_what_the_task_does_not_allow():
    with pytest.raises(DemonetError, match=r"model: .*model='auto'"):
        decide_model(Settings(model="kernel"), "multilabel")


def test_floors_are_fitted_again_with_their_settings(problem):
    """Refit, by hand: the neighbours that validation chose, fitted on training and validation nodes."""
    write_problem(problem, 30)
    inputs = read_inputs("edges.csv", "labels.csv", None, Reading())
    y, n = inputs.data.y.numpy(), len(inputs.ids)
    order = np.random.default_rng(0).permutation(n)
    split = Split("mine", 0, order[:60], order[60:100], order[100:])
    train, val, test = (np.sort(part) for part in (order[:60], order[60:100], order[100:]))
    x = np.log1p(np.bincount(inputs.data.edge_index[1].numpy(), minlength=n))[:, None]

    def right(k, rows, items):
        return (KNeighborsClassifier(k).fit(x[rows], y[rows]).predict(x[items]) == y[items]).mean()

    k = max((1, 3, 5, 9, 15), key=lambda k: right(k, train, val))
    scores = floor_scores(inputs, split, METRICS["accuracy"])
    found = {rule: each["floors"] for rule, each in scores.items()}
    assert scores["refit"]["floors_auc"]["majority"] == 0.5
    assert found["strict"]["degree-knn"] == pytest.approx(right(k, train, test))
    assert found["refit"]["degree-knn"] == pytest.approx(right(k, np.sort(order[:100]), test))
    for rule, rows in (("strict", train), ("refit", order[:100])):
        assert found[rule]["majority"] == pytest.approx((y[test] == np.bincount(y[rows]).argmax()).mean())


def effect_of(none, shuffled):
    losses = {"degree": 0.8, "none": 0.7, "shuffled": 0.6}
    gains = {
        arm: {"accuracy": (0.1, 0.0, 0.2), "loss": (sum(b) / 2, *b)}
        for arm, b in (("none", none), ("shuffled", shuffled))
    }
    return DegreeEffect(dict.fromkeys(losses, 0.971), losses, gains, 50)


@pytest.mark.parametrize(
    ("none", "shuffled", "start"),
    [
        ((-0.2, -0.1), (-0.2, -0.1), "Yes"),
        ((-0.2, -0.1), (-0.2, 0.1), "Perhaps"),
        ((-0.2, 0.1), (-0.2, -0.1), "Not shown"),
        ((0.1, 0.2), (-0.2, -0.1), "No, "),
    ],
)
def test_the_verdict_is_that_of_the_intervals(none, shuffled, start):
    told = verdict(effect_of(none, shuffled))
    assert told.startswith(start)
    assert all(number in told for number in ("log-loss", "0.800", "0.700", "0.600")), "what decided"
    assert "0.971" not in told


def test_without_a_test_part_there_are_no_test_scores(problem, few):
    run = fit(settings=Settings(effort="quick", test=0.0), page=lambda run, path: write(run_page(run), path))
    for rule in ("strict", "refit"):
        assert run.metrics[rule] == {"test_metric": None, "test_metric_interval": None, "floors": {}, "floors_auc": {}}
    assert run.metrics["candidates"][0]["score"] is not None
    assert "Candidates" in (problem / "run" / "report.html").read_text()


def test_columns_of_noise_do_not_erase_the_structure(problem):
    """With two columns of noise the degree was not among the inputs, and accuracy fell to that of guessing."""
    _, labels = roles()
    rows = np.random.default_rng(1).normal(size=(len(labels), 2)).round(3).tolist()
    write_table(
        problem / "noise.csv", ("node", "u", "v"), [(name, *row) for name, row in zip(labels, rows, strict=True)]
    )
    machine = fit(features="noise.csv", out="machine", settings=Settings(model="kernel"))
    simple = machine.metrics["floors"]
    assert machine.metrics["test_metric"] > simple["degree-knn"] > simple["attribute-lr"]
    network = fit(features="noise.csv", out="network", settings=Settings(epochs=1))
    assert "structure" in network.config["features"].split("+")


def test_without_a_test_part_there_are_no_reasons_for_its_items(problem):
    """It was a traceback after all the work."""
    run = fit_run("edges.csv", "labels.csv", out="run", settings=Settings(model="kernel", test=0.0), page=page)
    assert run.metrics["test_metric"] is None
    assert load_run("run").metrics["split"]["test"] == 0
