"""Runs whose training part has no item of some classes, or one: a warning, and a finished run."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.runs.files import fit, page, read_table, write_problem, write_table
from tests.runs.test_compare import Here

from demonet import DEMONetClassifier, DemonetError, DemonetWarning
from demonet.data import Split, fractions, read_graph
from demonet.runs import Reading, Settings, fit_run
from demonet.runs.compare import Comparing, compare_run

DIRECTED = Reading(directed=False)


@pytest.fixture(name="rare")
def rare_classes(problem):
    """Labels of which three kinds are rare, and a split file: the graph, and the split."""
    write_problem(problem, 30)
    data = read_graph("edges.csv", labels="labels.csv")
    split = fractions(data.y, (0.6, 0.2, 0.2), 0, stratified=True)
    labels, ids = dict(read_table(Path("labels.csv"))[1:]), data.node_ids
    for part, count, name in ((split.train, 1, "lone"), (split.val, 2, "validated"), (split.test, 3, "a tested one")):
        labels |= {ids[item]: name for item in part[:count].tolist()}
    write_table(Path("labels.csv"), ("node", "label"), labels.items())
    split.save("s.json")
    return read_graph("edges.csv", labels="labels.csv"), split


def told(caught):
    return [str(one.message) for one in caught if "too few items" in str(one.message)]


@pytest.mark.parametrize(
    "options",
    [
        {"model": "kernel"},
        {"model": "network", "epochs": 30},
        {"model": "network", "epochs": 5, "class_weight": "balanced"},
        {"model": "auto", "effort": "quick"},
    ],
)
def test_a_run_tells_them_once_and_is_finished(rare, options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = fit(settings=Settings(split="s.json", **options), reading=DIRECTED, features="features.csv")
    [message] = told(caught)
    assert message.startswith("s.json: ")
    assert "'a tested one' (0 to train, 0 to validate, 3 to test)" in message
    assert "'lone' (1 to train, 0 to validate, 0 to test)" in message
    tested = run.class_names.index("a tested one")
    assert run.outputs.shape[1] == 6
    assert run.outputs[:, tested].max() < 0.05
    assert tested not in run.prediction
    assert set(run.metrics["floors"]) == {"majority", "degree-knn", "attribute-lr"}
    loaded = DEMONetClassifier.load("run/model.safetensors", graph=read_graph("edges.csv", features="features.csv"))
    np.testing.assert_allclose(loaded.predict_proba(), run.outputs, atol=1e-5)


def test_masks_tell_them_too_and_methods_are_compared(rare):
    data, split = rare
    for part in ("train", "val", "test"):
        data[f"{part}_mask"] = torch.zeros(data.num_nodes, dtype=torch.bool)
        data[f"{part}_mask"][getattr(split, part)] = True
    torch.save(data, "graph.pt")
    names = ("majority", "degree-knn", "structural-rf", "gcn", "demonet-kernel", "union")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        comparing = Comparing(methods=names)
        board = compare_run("graph.pt", out="out", comparing=comparing, engine=lambda jobs: Here())
    [message] = told(caught)
    assert "graph.pt: " in message
    assert {row.method: row.status for row in board.rows} == dict.fromkeys(names, "compared")
    for path in Path("out/cells").iterdir():
        cell = json.loads(path.read_text())
        assert cell["metrics"]["log-loss"] is not None
    with pytest.warns(DemonetWarning, match=r"graph.pt: .* class 0 .0 to train, 0 to validate, 3 to test"):
        fit_run("graph.pt", out="run", settings=Settings(model="kernel"), page=page)


@pytest.mark.parametrize("model", ["kernel", "network"])
def test_an_estimator_tells_them_and_predicts_none(rare, model):
    data, split = rare
    estimator = DEMONetClassifier(model=model, **({"epochs": 20} if model == "network" else {}))
    with pytest.warns(DemonetWarning, match="'a tested one' .0 to train") as caught:
        estimator.fit_split(data, split)
    assert len(told(caught)) == 1
    assert estimator.predict_proba().shape == (data.num_nodes, 6)
    assert "a tested one" not in estimator.predict()
    if model == "kernel":
        assert estimator.transform().shape[1] in (1, 6)
        shares = estimator.shares()
        np.testing.assert_allclose(sum(shares.values()), estimator.transform(), atol=1e-4)


def test_one_class_alone_is_an_error(rare):
    data, split = rare
    one = split.train[data.y[split.train] == data.y[split.train[-1]]]
    Split("one", 0, one, split.val, split.test).save("s.json")
    with pytest.raises(DemonetError, match=r"s\.json: all items in the training part"):
        fit(settings=Settings(split="s.json", model="kernel"))
