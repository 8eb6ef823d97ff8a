"""Which of two classes is the positive one: the rarer or the one asked for, in every file and by every model."""

import csv
import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score
from tests.runs.files import Told, fit, roles, write_table

from demonet import DEMONetClassifier, DemonetError
from demonet.ensemble import Ensemble
from demonet.ensemble.selection import ensemble_weights
from demonet.report.page import render, write
from demonet.report.run import run_page
from demonet.runs import Reading, Settings, load_run
from demonet.runs.inputs import read_inputs

AP = "average-precision"
MODELS = {
    "network": {"model": "network", "epochs": 6},
    "kernel": {"model": "kernel"},
    "auto": {"model": "auto", "effort": "quick"},
}


def write_classes(rare, common):
    """Labels of the problem at hand, a fifth of them rare and some wrong, so that no model is perfect."""
    generator = np.random.default_rng(0)
    kinds = {
        node: rare if (kind == "foot") != (generator.random() < 0.3) else common for node, kind in roles()[1].items()
    }
    assert 0 < 2 * list(kinds.values()).count(rare) < len(kinds)
    write_table(Path("labels.csv"), ("node", "label"), kinds.items())


def precision_of(run, name):
    """The average precision of a class in the written predictions, by scikit-learn."""
    with open("run/predictions.csv", newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["part"] == "test"]
    assert len(rows) == run.metrics["split"]["test"]
    return average_precision_score([row["label"] == name for row in rows], [float(row[name]) for row in rows])


@pytest.mark.parametrize(
    ("model", "rare", "common"),
    [
        ("network", "hoch", "niedrig"),
        ("network", "1", "0"),
        ("kernel", "hoch", "niedrig"),
        ("auto", "hoch", "niedrig"),
    ],
)
def test_the_rarer_class_is_the_positive_one(problem, few, model, rare, common):
    write_classes(rare, common)
    run = fit(settings=Settings(metric=AP, **MODELS[model]))
    assert run.metrics["test_metric"] == pytest.approx(precision_of(run, rare), rel=1e-12)
    assert run.metrics["test_metric"] != pytest.approx(precision_of(run, common), rel=1e-3)
    assert run.metrics["positive"] == run.config["positive"] == rare
    prevalence = (run.y[run.part == 2] == run.class_names.index(rare)).mean()
    assert run.metrics["floors"]["majority"] == pytest.approx(prevalence)


@pytest.mark.parametrize("model", ["network", "auto"])
def test_the_class_that_is_asked_for(problem, few, model):
    write_classes("hoch", "niedrig")
    run = fit(settings=Settings(metric=AP, positive="niedrig", **MODELS[model]))
    assert run.metrics["test_metric"] == pytest.approx(precision_of(run, "niedrig"), rel=1e-12)
    assert run.metrics["positive"] == "niedrig"
    loaded = DEMONetClassifier.load("run/model.safetensors")
    assert (loaded.positive, loaded.objective_.positive) == ("niedrig", 1)


def test_the_class_is_named_beside_the_number(problem, few):
    name = "<b>[red]ho*ch"
    write_classes(name, "niedrig")
    progress = Told()
    run = fit(
        settings=Settings(metric=AP, model="auto", effort="quick"),
        progress=progress,
        page=lambda run, path: write(run_page(run), path),
    )
    assert sum(repr(name) in line for line in progress.lines) == 2  # the decision and the result
    assert repr(name) in load_run("run").metric.title
    page, card = render(run_page(run)), Path("run/MODEL_CARD.md").read_text(encoding="utf-8")
    assert "average precision of &#39;&lt;b&gt;[red]ho*ch&#39;" in page
    assert "<b>[red]" not in page + card
    assert r"average precision of '\<b\>\[red\]ho\*ch'" in card
    assert json.loads(Path("run/metrics.json").read_text(encoding="utf-8"))["positive"] == name
    assert tomllib.loads(Path("run/run.toml").read_text(encoding="utf-8"))["positive"] == name


@pytest.mark.parametrize(
    ("options", "labels", "told"),
    [
        ({"metric": AP, "positive": "hcoh"}, None, "'hoch'"),
        ({"metric": "auc", "positive": "hoch"}, None, AP),
        ({"metric": AP, "positive": "ring"}, roles()[1], "3 classes"),
        ({"metric": AP, "positive": "corner"}, "tags.csv", "multilabel"),
    ],
)
def test_a_class_that_cannot_be_the_positive_one(problem, options, labels, told):
    if isinstance(labels, dict):
        write_table(Path("labels.csv"), ("node", "label"), labels.items())
    elif labels is None:
        write_classes("hoch", "niedrig")
    else:
        (problem / labels).rename("labels.csv")
    with pytest.raises(DemonetError, match=told) as error:
        fit(settings=Settings(epochs=2, **options))
    assert error.value.argument == "positive"
    assert not (problem / "run").exists()


@pytest.mark.parametrize("positive", [0, 1])
def test_weights_are_chosen_by_the_positive_class(problem, few, positive):
    write_classes("hoch", "niedrig")
    data = read_inputs("edges.csv", "labels.csv", None, Reading()).data
    fitted = Ensemble.fit(data, metric=AP, positive=positive, refit=False)
    judged, y = np.stack(list(fitted.judged.values())), data.y.numpy()[fitted.judged_items]

    def score(p, y):
        return average_precision_score(y == positive, p[:, positive])

    expected = ensemble_weights(judged, y, score=score)
    assert [row.weight for row in fitted.candidates] == pytest.approx(expected.tolist())
    if positive == 0:  # the rarer
        by_default = Ensemble.fit(data, metric=AP, refit=False)
        assert [row.weight for row in by_default.candidates] == [row.weight for row in fitted.candidates]
