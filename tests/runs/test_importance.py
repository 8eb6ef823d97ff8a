"""What matters to a model: what is known to matter is found, and the rest is not."""

from __future__ import annotations

import numpy as np
import pytest
from tests.runs.files import fit, roles, write_problem, write_table

from demonet.data.splits import fractions
from demonet.methods.forest import NodeForest
from demonet.options import Reading
from demonet.runs import Settings, load_run
from demonet.runs.importance import affordable, importance_facts
from demonet.runs.inputs import read_inputs
from demonet.train.metrics import METRICS


@pytest.fixture
def inputs(tmp_path):
    write_problem(tmp_path, 40)
    _, labels = roles(40)
    write_table(tmp_path / "labels.csv", ("node", "label"), [(node, kind == "ring") for node, kind in labels.items()])
    names = [str(tmp_path / f"{name}.csv") for name in ("edges", "labels", "features")]
    return read_inputs(*names, Reading())


def by_degree(data) -> np.ndarray:
    """Nodes of degree 2 and more than 3 differ: the ring has both, and so have triangles."""
    degree = np.bincount(data.edge_index[1].numpy(), minlength=data.num_nodes)
    sure = np.where(degree == 2, 0.7, 0.4)
    return np.stack([1 - sure, sure], 1)


def by_height(data) -> np.ndarray:
    sure = 1 / (1 + np.exp(-data.x[:, 0].numpy()))
    return np.stack([sure, 1 - sure], 1)


@pytest.mark.parametrize("metric", ["log-loss", "auc", "accuracy"])
def test_what_a_model_reads_matters_and_nothing_else(inputs, metric):
    split = fractions(inputs.data.y, (0.3, 0.7, 0.0), 0, stratified=True)
    for predict, kind in ((by_degree, "structure"), (by_height, "height")):
        rows = importance_facts(predict, inputs, split, METRICS[metric], "standard", 0)
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
    few = [affordable(inputs, effort) for effort in ("quick", "standard", "best")]
    assert few == sorted(few)
    inputs.data.x = inputs.data.x.repeat(1, 5000)
    assert affordable(inputs, "standard") < few[1]


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
