"""Metrics of unequal classes: the default, precision@K, decisions chosen on validation; equal to the written file."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics as sk
from tests.runs.files import fit, write_classes

from demonet import DEMONetClassifier, DemonetError
from demonet.runs import Settings, predict_run
from demonet.runs.facts import RunFacts
from demonet.train.metrics import METRICS, Metric
from demonet.train.objective import value_of

pytestmark = pytest.mark.usefixtures("few")


def written(part="test"):
    with open("run/predictions.csv", newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["part"] == part]


@pytest.mark.parametrize(("rare", "common"), [("hoch", "niedrig"), ("1", "0")])
@pytest.mark.parametrize("metric", ["average-precision", "precision@7", "auc"])
def test_scores_are_scikit_learns_on_the_written_file(problem, metric, rare, common):
    write_classes(rare, common, shares=[0.1, 0.9])
    run = fit(settings=Settings(metric=metric, model="auto", effort="quick"))
    rows = written()
    y, p = np.array([row["label"] == rare for row in rows]), np.array([float(row[rare]) for row in rows])
    if metric == "precision@7":
        last = np.sort(p)[-7]  # of items that tie for the last places, the mean
        above, ties = p > last, p == last
        expected = (y[above].sum() + (7 - above.sum()) * y[ties].mean()) / 7
    else:
        expected = {"auc": sk.roc_auc_score, "average-precision": sk.average_precision_score}[metric](y, p)
    assert run.metrics["test_metric"] == pytest.approx(expected, rel=1e-9)
    inputs, names, outputs = predict_run("run", "edges.csv", rank=rare, top=5)
    every = sorted(range(len(outputs)), key=lambda row: -outputs[row, names.index(rare)])
    assert inputs.rows.tolist() == every[:5]


def test_ties_count_by_their_mean():
    precision = METRICS["precision@2"].functions["classify"]
    y, p = np.array([1, 0, 1, 0]), np.array([0.9, 0.5, 0.5, 0.1])
    assert precision(y, np.stack([1 - p, p], 1), None) == pytest.approx((1 + 0.5) / 2)


@pytest.mark.parametrize("name", ["precision@0", "precision@", "precision@x", "recall@5"])
def test_a_metric_that_there_is_not(problem, name):
    assert name not in METRICS
    with pytest.raises(DemonetError, match="unknown"):
        Settings(metric=name)
    with pytest.raises(DemonetError, match="metric"):
        DEMONetClassifier(metric=name).fit(problem)


@pytest.mark.parametrize(
    ("names", "shares", "metric"),
    [
        (["rare", "common"], [0.08, 0.92], "average-precision"),
        (["a", "b", "c"], [0.03, 0.03, 0.94], "macro-f1"),
        (["a", "b"], [0.5, 0.5], "accuracy"),
    ],
)
def test_the_default_for_unequal_classes(problem, names, shares, metric):
    write_classes(*names, shares=shares)
    run = fit(settings=Settings(model="auto", effort="quick"))
    assert run.config["metric"] == run.metrics["metric"] == metric
    share = np.bincount(run.y[run.y >= 0]).max() / (run.y >= 0).sum()
    assert run.metrics.get("unequal") == (None if metric == "accuracy" else pytest.approx(share))
    told = [line for line in RunFacts(run).decisions if "accuracy would say little" in line]
    assert len(told) == (metric != "accuracy")


@pytest.mark.parametrize("options", [{"model": "auto", "effort": "quick"}, {"model": "network", "epochs": 8}])
def test_a_decision_is_chosen_on_validation_and_kept(problem, options, monkeypatch):
    """That of a network is given: its epoch is chosen by the same metric, so another decision need not be better."""
    write_classes("rare", "common", shares=[0.05, 0.95], follow=0.4)
    asked = []

    def given(metric, outputs, y):
        asked.append(y.tolist())
        odds = max(1e-9, float(np.median(outputs[:, 1] / outputs[:, 0])))
        return min(1.0, odds), min(1.0, 1 / odds)

    if options["model"] == "network":
        monkeypatch.setattr(Metric, "choose_decision", given)
    run = fit(settings=Settings(metric="balanced", val=0.4, **options))
    assert all(y == run.y[run.part == 1].tolist() for y in asked)
    factors = np.array(run.metrics["decision"]["factors"])
    assert (run.outputs * factors).argmax(1).tolist() == run.prediction.tolist()
    assert (run.outputs.argmax(1) != run.prediction).any()
    rows = written()
    found = sk.balanced_accuracy_score([row["label"] for row in rows], [row["prediction"] for row in rows])
    assert run.metrics["test_metric"] == pytest.approx(found)
    least = run.metrics["decision"]["thresholds"][0]
    assert [row["prediction"] for row in rows] == [
        run.class_names[0 if float(row[run.class_names[0]]) >= least else 1] for row in rows
    ]
    loaded = DEMONetClassifier.load("run/model.safetensors")
    assert loaded.objective_.decision == tuple(factors)
    assert predict_run("run", "edges.csv")[0].decision == tuple(factors)
    assert "Predictions are made for" in Path("run/MODEL_CARD.md").read_text(encoding="utf-8")
    state = json.loads(Path("run/metrics.json").read_text(encoding="utf-8"))
    assert state["decision"]["factors"] == factors.tolist()


@pytest.mark.parametrize("options", [{}, {"model": "kernel"}, {"model": "network", "epochs": 8}])
def test_weights_of_classes_in_a_run(problem, options):
    """Every model keeps its kind; the card says what probabilities are; losses on validation are weighted."""
    write_classes("rare", "common", shares=[0.05, 0.95], follow=0.4)
    options = {"effort": "quick"} | options if "model" not in options else options
    shares = []
    for weight in (None, "balanced"):
        run = fit(settings=Settings(class_weight=weight, **options), overwrite=True)
        assert run.metrics["model"] == options.get("model", "auto")
        shares.append(run.outputs[:, run.class_names.index("rare")].mean())
        told = Path("run/MODEL_CARD.md").read_text(encoding="utf-8").count("equally frequent classes")
        assert told == (weight is not None)
    assert shares[1] > shares[0] + 0.1
    assert run.config["estimator"]["class_weight"] == "balanced"
    if "effort" not in options:
        return
    fitted = DEMONetClassifier.load("run/model.safetensors").model_.ensemble
    assert {run.metrics["metric"], *(row["metric"] for row in run.metrics["candidates"])} == {"balanced"}
    gain = run.metrics["gain"]["log-loss"]
    weights = {row["name"]: row["loss"] for row in run.metrics["candidates"] if row["loss"] is not None}
    assert gain["best_score"] == pytest.approx(min(weights.values()), abs=1e-6)
    assert gain["ensemble_score"] == pytest.approx(fitted.validation["loss"], abs=1e-6)


def test_a_decision_finds_what_it_is_for():
    generator = np.random.default_rng(0)
    y = (generator.random(400) < 0.1).astype(int)
    p = np.clip(0.15 + 0.1 * y + generator.normal(scale=0.05, size=400), 0, 1)
    outputs = np.stack([1 - p, p], 1)
    factors = METRICS["balanced"].choose_decision(outputs, y)
    best = max(sk.balanced_accuracy_score(y, p >= least) for least in np.unique(p))
    assert sk.balanced_accuracy_score(y, (outputs * factors).argmax(1)) == pytest.approx(best)
    assert METRICS["accuracy"].choose_decision(outputs, y) == ()
    assert METRICS["balanced"].choose_decision(outputs[:29], y[:29]) == ()
    y, wide = np.repeat([0, 1, 2], [300, 60, 40]), generator.dirichlet([8, 2, 1], size=400)
    wide = (wide + 0.2 * np.eye(3)[y]) / 1.2
    factors = METRICS["macro-f1"].choose_decision(wide, y)
    before, after = (sk.f1_score(y, (wide * f).argmax(1), average="macro") for f in (1, factors))
    assert after > before


def drawn_labels(count, seed):
    """Probabilities of four labels of falling frequency, and labels drawn from them; some are unknown."""
    generator = np.random.default_rng(seed)
    p = generator.beta(0.5, [1.0, 2.0, 5.0, 15.0], size=(count, 4)).clip(0.01, 0.99)
    y = (generator.random(p.shape) < p).astype(float)
    y[generator.random(p.shape) < 0.1] = np.nan
    return p, y


@pytest.mark.parametrize("name", ["balanced", "macro-f1"])
def test_thresholds_of_labels_are_better_on_other_items(name):
    metric, (p, y) = METRICS[name], drawn_labels(400, 0)
    found = metric.choose_decision(p, y)
    assert len(found) == 4
    others = drawn_labels(4000, 1)
    before, after = (value_of(replace(metric, decision=one), "multilabel", others[1], others[0]) for one in ((), found))
    assert after > before + 0.05
    best = [max(np.arange(1, 99) / 100, key=lambda t: column(p, y, metric, k, t)) for k, (p, y) in every(*others)]
    reached = [column(p, y, metric, k, found[k]) / column(p, y, metric, k, best[k]) for k, (p, y) in every(*others)]
    assert min(reached[:3]) > 0.95
    assert metric.choose_decision(p[:29], y[:29]) == METRICS["average-precision"].choose_decision(p, y) == ()


def every(p, y):
    return [(k, (p[:, k : k + 1], y[:, k : k + 1])) for k in range(p.shape[1])]


def column(p, y, metric, k, threshold):
    return value_of(replace(metric, decision=(threshold,)), "multilabel", y, p)


def test_a_label_that_few_items_have_follows_the_others():
    p, y = drawn_labels(400, 0)
    y[:, 3] = 0.0
    y[:2, 3] = 1.0
    p[:2, 3] = 0.9  # by itself it would be predicted from up to 0.9 on
    assert METRICS["macro-f1"].choose_decision(p, y)[3] < 0.5
