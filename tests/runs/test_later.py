"""A finished run on its own graph in another order or format, on that graph as it changes, and on another graph."""

from __future__ import annotations

import json
import re

import networkx as nx
import numpy as np
import pytest
from tests.runs.files import write_table
from typer.testing import CliRunner

from demonet import DEMONetClassifier, DemonetWarning
from demonet.cli import app
from demonet.runs import Settings, fit_run, predict_run


def communities(seed: int = 0, prefix: str = "k") -> tuple[list[tuple[str, str]], dict[str, str]]:
    graph = nx.planted_partition_graph(4, 30, 0.25, 0.01, seed=seed)
    return [(f"{prefix}{u:03}", f"{prefix}{v:03}") for u, v in graph.edges()], {
        f"{prefix}{v:03}": "abcd"[v // 30] for v in graph
    }


def write_edges(path, edges):
    return write_table(path, ("source", "target"), edges)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("later")
    edges, labels = communities()
    write_edges(folder / "edges.csv", edges)
    write_table(folder / "labels.csv", ("node", "label"), labels.items())
    fit_run(folder / "edges.csv", folder / "labels.csv", out=folder / "run", settings=Settings(effort="quick"))
    return folder, edges, labels


def by_id(predicted) -> dict[str, np.ndarray]:
    inputs, _, outputs = predicted
    return dict(zip(inputs.ids, outputs, strict=True))


def test_the_run_serves_its_own_graph_in_any_order_and_format(finished, tmp_path):
    folder, edges, _ = finished
    expected = by_id(predict_run(folder / "run", folder / "edges.csv"))
    mixed = [edge[:: (-1) ** place] for place, edge in enumerate(np.random.default_rng(1).permutation(edges).tolist())]
    graph = nx.Graph(mixed)
    nx.write_graphml(graph, tmp_path / "edges.graphml")
    for other in (write_edges(tmp_path / "mixed.csv", mixed), tmp_path / "edges.graphml"):
        found = by_id(predict_run(folder / "run", other))
        assert found.keys() == expected.keys()
        for node, outputs in found.items():
            np.testing.assert_allclose(outputs, expected[node], atol=1e-5)
    loaded = DEMONetClassifier.load(folder / "run" / "model.safetensors", graph=graph)
    np.testing.assert_allclose(loaded.predict_proba(["k007"])[0], expected["k007"], atol=1e-5)


def test_one_edge_fewer_is_still_the_same_model(finished, tmp_path):
    folder, edges, labels = finished
    expected = by_id(predict_run(folder / "run", folder / "edges.csv"))
    found = predict_run(folder / "run", write_edges(tmp_path / "later.csv", [*edges[1:], ("k000", "newcomer")]))
    assert "120 of them known" in found[0].standing
    outputs = by_id(found)
    same = [outputs[node].argmax() == expected[node].argmax() for node in labels]
    assert np.mean(same) > 0.95


def test_another_graph_is_told_with_the_score_that_holds(finished, tmp_path):
    folder, _, _ = finished
    metrics = json.loads((folder / "run" / "metrics.json").read_text())
    inductive = metrics["inductive"]
    assert 0.5 < sum(inductive["left_out"].values()) <= 1
    assert inductive["refit"]["test_metric"] < metrics["test_metric"]
    other = write_edges(tmp_path / "other.csv", communities(5, "other")[0])
    with pytest.warns(DemonetWarning, match="left out"):
        inputs, _, outputs = predict_run(folder / "run", other)
    np.testing.assert_allclose(outputs.sum(1), 1, atol=1e-5)
    assert f"{inductive['refit']['test_metric']:.3f}" in inputs.standing
    result = CliRunner().invoke(app, ["predict", str(folder / "run"), str(other), "--out", str(tmp_path / "p.csv")])
    assert result.exit_code == 0
    assert re.search(rf"expect test accuracy {inductive['refit']['test_metric']:.3f}", result.output)
    assert "another graph" in (folder / "run" / "MODEL_CARD.md").read_text()
