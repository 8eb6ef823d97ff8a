"""What matters to a model, and what an ensemble gained over its best candidate."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.runs.files import fit, roles, write_problem, write_table
from torch_geometric.data import Data

from demonet.cli.fit import summarise
from demonet.data.splits import Split, fractions
from demonet.estimators.importance import affordable, importance_facts
from demonet.methods.forest import NodeForest
from demonet.options import Reading
from demonet.report.run import run_page
from demonet.runs import Settings, diagnosis, load_run
from demonet.runs.facts import RunFacts
from demonet.runs.inputs import read_inputs
from demonet.train.metrics import METRICS
from demonet.train.objective import value_of


@pytest.fixture
def inputs(tmp_path):
    write_problem(tmp_path, 40)
    _, labels = roles(40)
    write_table(tmp_path / "labels.csv", ("node", "label"), [(node, kind == "ring") for node, kind in labels.items()])
    names = [str(tmp_path / f"{name}.csv") for name in ("edges", "labels", "features")]
    return read_inputs(*names, Reading())


def by_degree(data, rows) -> np.ndarray:
    """Nodes of degree 2 and more than 3 differ: the ring has both, and so have triangles."""
    degree = np.bincount(data.edge_index[1].numpy(), minlength=data.num_nodes)
    sure = np.where(degree == 2, 0.7, 0.4)
    return np.stack([1 - sure, sure], 1)[rows]


def by_height(data, rows) -> np.ndarray:
    sure = 1 / (1 + np.exp(-data.x[:, 0].numpy()))
    return np.stack([sure, 1 - sure], 1)[rows]


def facts(predict, inputs, split, metric, **options):
    data, parts = inputs.data, (split.train.numpy(), split.val.numpy())
    given = predict, data, data.y.numpy(), parts, metric, inputs.task, "standard", 0
    return importance_facts(*given, names=inputs.columns, **options)


@pytest.mark.parametrize("metric", ["log-loss", "auc", "accuracy"])
def test_what_a_model_reads_matters_and_nothing_else(inputs, metric):
    split = fractions(inputs.data.y, (0.3, 0.7, 0.0), 0, stratified=True)
    for predict, kind in ((by_degree, "structure"), (by_height, "height")):
        rows = facts(predict, inputs, split, METRICS[metric])
        found = {row["name"]: row for row in rows}
        assert set(found) == {"structure", "neighbours", "degree", "all columns", "height", "age"}
        for name, row in found.items():
            if name == kind or (name, kind) in (("degree", "structure"), ("all columns", "height")):
                assert row["value"] > 0
                assert row["interval"][0] <= row["value"] <= row["interval"][1]
            elif name != "neighbours" or kind == "height":
                assert row["value"] == 0
                assert row["interval"] == [0, 0]


def test_large_graphs_get_fewer_predictions(inputs):
    few = [affordable(inputs.data, effort) for effort in ("quick", "standard", "best")]
    assert few == sorted(few)
    inputs.data.x = inputs.data.x.repeat(1, 5000)
    assert affordable(inputs.data, "standard") < few[1]


def test_a_run_keeps_importance_and_reasons(problem, monkeypatch):
    monkeypatch.setattr("demonet.ensemble.ensemble.portfolio", lambda *of: [NodeForest("forest", columns="degree")])
    run = fit(features="features.csv", settings=Settings(effort="quick"))
    rows = {row["name"]: row for row in load_run("run").metrics["importance"]}
    assert rows == {row["name"]: row for row in run.metrics["importance"]}
    assert rows["structure"]["value"] > 0
    assert rows["age"]["value"] == rows["height"]["value"] == 0, "a forest on degrees reads no attributes"
    assert run.metrics["reasons"]
    for item, told in run.metrics["reasons"].items():
        assert run.outputs[int(item)].max() >= np.sort(run.outputs.max(1))[-10]
        assert all("neighbour" in text or "joined to" in text for text in told)


def test_when_the_time_is_over_the_run_ends_and_says_what_was_cut(problem, monkeypatch, capsys):
    monkeypatch.setattr("demonet.ensemble.ensemble.portfolio", lambda *of: [NodeForest("forest", columns="degree")])
    run = fit(features="features.csv", settings=Settings(effort="quick", time_limit=1e-6))
    assert run.metrics["importance"] == []
    assert run.metrics["reasons"] == run.metrics["floors"] == {}
    assert run.metrics["test_metric"] > 0.5
    told = RunFacts(load_run("run")).cut
    assert all(what in told for what in ("baselines (0 of ", "what matters (0 of ", "predictions (0 of "))
    assert told in RunFacts(run).limits
    summarise(run, Path("run"))
    assert told in " ".join(capsys.readouterr().out.split())
    run_page(run)


def test_every_step_asks_for_time_and_is_cut_where_there_is_none(inputs):
    split, asked = fractions(inputs.data.y, (0.3, 0.7, 0.0), 0, stratified=True), []

    def go(done: int, total: int) -> bool:
        asked.append((done, total))
        return done < 3

    rows = facts(by_height, inputs, split, METRICS["log-loss"], go=go)
    assert [row["name"] for row in rows] == ["structure", "neighbours", "all columns", "degree"]
    assert asked == [(done, 5) for done in range(4)]


GENERATOR = np.random.default_rng(0)
Y = GENERATOR.integers(0, 3, 200)
OUTPUTS = [GENERATOR.dirichlet(np.ones(3) + 2 * np.eye(3)[c] * scale) for scale in (1, 2) for c in Y]
WORSE, BETTER = np.array(OUTPUTS).reshape(2, 200, 3)


@pytest.mark.parametrize("metric", ["accuracy", "log-loss"])
def test_what_a_metric_is_the_mean_of(metric):
    each = diagnosis.metric_of_items(metric, BETTER, Y)
    assert each.mean() == pytest.approx(value_of(METRICS[metric], "classify", Y, BETTER), rel=1e-12)


def test_macro_f1_is_no_mean_over_items():
    assert diagnosis.metric_of_items("macro-f1", BETTER, Y) is None


@pytest.mark.parametrize("metric", ["accuracy", "log-loss"])
def test_intervals_are_those_of_the_metric_itself(metric, monkeypatch):
    found = diagnosis._gain({"worse": WORSE}, BETTER, Y, METRICS[metric], "classify")
    monkeypatch.setattr(diagnosis, "metric_of_items", lambda *given: None)
    slow = diagnosis._gain({"worse": WORSE}, BETTER, Y, METRICS[metric], "classify")
    assert found["interval"] == pytest.approx(slow["interval"], rel=1e-9)
    assert found["interval"][0] <= found["difference"] <= found["interval"][1]


def test_residuals_are_told_once_for_two_categories_and_not_for_sparse_attributes():
    rng = np.random.default_rng(0)
    flag = rng.integers(0, 2, 40)
    x = torch.tensor(np.stack([flag, 1 - flag, rng.normal(size=40)], 1))
    y = torch.from_numpy(rng.normal(size=(40, 1)))
    split, names = Split("all", 0, *torch.arange(40).split([1, 1, 38])), ["yes", "no", "size"]
    for given, columns in ((x, {"yes", "size"}), (x.to_sparse_csr(), set())):
        graph = Data(x=given, y=y)
        inputs = SimpleNamespace(graphs=[graph], data=graph, names=["price"], columns=names)
        assert {row["column"] for row in diagnosis.residual_facts(inputs, np.zeros((40, 1)), split)} == columns
