"""A finished run on its own graph as it changes, and on another graph."""

from __future__ import annotations

import csv
import json
import re

import networkx as nx
import numpy as np
import pytest
from tests.runs.files import write_problem, write_table
from typer.testing import CliRunner

from demonet import DemonetError, DemonetWarning
from demonet.cli import app
from demonet.data.splits import Split
from demonet.ensemble import Ensemble
from demonet.methods.forest import NodeForest
from demonet.methods.propagation import Propagation
from demonet.runs import Settings, fit_run, load_run, predict_run


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


def test_one_edge_fewer_is_still_the_same_model(finished, tmp_path):
    folder, edges, labels = finished
    expected = by_id(predict_run(folder / "run", folder / "edges.csv"))
    found = predict_run(folder / "run", write_edges(tmp_path / "later.csv", [*edges[1:], ("k000", "newcomer")]))
    assert "120 of them in the fitted graph" in found[0].standing
    outputs = by_id(found)
    same = [outputs[node].argmax() == expected[node].argmax() for node in labels]
    assert np.mean(same) > 0.95


@pytest.mark.parametrize("seed", range(3))
def test_a_hundredth_of_nodes_and_edges_changes_neither_score_nor_ranking(finished, tmp_path, seed):
    """Two nodes and 1 % of the edges go, and as many come; communities are far apart: one of them ranks first."""
    folder, edges, labels = finished
    run, random = load_run(folder / "run"), np.random.default_rng(seed)
    gone = set(random.choice(sorted(labels), 2, replace=False).tolist())
    kept = [edge for edge in edges if not gone & set(edge)]
    members = [[node for node, kind in labels.items() if kind == each and node not in gone] for each in "abcd"]
    count = round(0.01 * len(edges))
    come = [tuple(random.choice(members[place % 4], 2, replace=False).tolist()) for place in range(count)]
    come += [(f"new{kind}", str(node)) for kind in (0, 1) for node in random.choice(members[kind], 8, replace=False)]
    kept = [kept[place] for place in random.permutation(len(kept))[count:]]
    found = by_id(predict_run(folder / "run", write_edges(tmp_path / "later.csv", [*kept, *come])))
    test = [run.ids[row] for row in np.flatnonzero(run.part == 2) if run.ids[row] in found]
    right = [run.class_names[found[node].argmax()] == labels[node] for node in test]
    low, high = run.metrics["test_metric_interval"]
    assert low <= np.mean(right) <= high
    before = dict(zip(run.ids, run.outputs, strict=True))
    for column, kind in enumerate(run.class_names):
        first = [set(sorted(each, key=lambda node: -each[node][column])[:30]) for each in (before, found)]
        assert len(first[0] & first[1]) > 0.8 * 30, kind


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


@pytest.mark.parametrize("val", [0.3, 0.1])
def test_a_warning_has_the_score_of_the_page(tmp_path, monkeypatch, val):
    """It is that of predictions by the decision; by folds, it is another than the page's and is not told."""
    monkeypatch.setattr("demonet.ensemble.ensemble.portfolio", lambda *problem: [Propagation(), NodeForest()])
    edges, labels = communities()
    random = np.random.default_rng(0)
    names = {node: "ab"[int(kind == "a" and random.random() < 0.6)] for node, kind in labels.items()}
    table = write_table(tmp_path / "labels.csv", ("node", "label"), names.items())
    settings = Settings(effort="quick", metric="balanced", val=val)
    run = fit_run(write_edges(tmp_path / "edges.csv", edges), table, out=tmp_path / "run", settings=settings)
    assert run.metrics["decision"]
    with pytest.warns(DemonetWarning, match="left out") as told:
        predict_run(tmp_path / "run", write_edges(tmp_path / "other.csv", communities(5, "other")[0]))
    score = f"validation balanced accuracy {run.metrics['val_metric']:.4g} with them"
    assert [score in str(one.message) for one in told if "left out" in str(one.message)] == [val == 0.3]
    assert val == 0.3 or not any("validation" in str(one.message) for one in told)


def test_new_and_corrected_labels_move_the_answers_near_them(finished, tmp_path, monkeypatch):
    folder, edges, labels = finished
    monkeypatch.setattr("demonet.ensemble.ensemble.portfolio", lambda *problem: [Propagation(), NodeForest()])
    fit_run(folder / "edges.csv", folder / "labels.csv", out=tmp_path / "run", settings=Settings(effort="quick"))
    friends = [("k000", f"new{i}") for i in range(4)]
    later = write_edges(tmp_path / "later.csv", [*edges, *friends, ("new0", "stranger")])
    without = by_id(predict_run(tmp_path / "run", later))
    known = write_table(tmp_path / "new.csv", ("node", "label"), [(f"new{i}", "d") for i in range(4)])
    found = predict_run(tmp_path / "run", later, labels=known)
    assert "4 labels given, 4 of them new" in found[0].standing
    outputs = by_id(found)
    assert outputs["stranger"][3] > without["stranger"][3]
    assert outputs["k000"][3] > without["k000"][3]
    trained = Split.load(tmp_path / "run" / "split.json").train.tolist()
    ids = load_run(tmp_path / "run").ids
    same = write_table(tmp_path / "same.csv", ("node", "label"), [(ids[row], labels[ids[row]]) for row in trained])
    again = predict_run(tmp_path / "run", later, labels=same)
    assert f"{len(trained)} labels given, 0 of them new" in again[0].standing
    np.testing.assert_array_equal(again[2], list(without.values()))
    with pytest.warns(DemonetWarning, match="labels: .*no difference"):
        predict_run(folder / "run", later, labels=known)


def test_a_label_that_cannot_be_is_named_with_its_line(finished, tmp_path):
    folder, _, _ = finished
    for rows, words in (
        ([("k000", "a"), ("k001", "z")], r"bad\.csv:3: .*'z'"),
        ([("k000", "a"), ("k000", "b")], r"bad\.csv:3: .*'k000'.*'b'.*'a'"),
    ):
        bad = write_table(tmp_path / "bad.csv", ("node", "label"), rows)
        with pytest.raises(DemonetError, match=words):
            predict_run(folder / "run", folder / "edges.csv", labels=bad)


def test_a_ranking_is_sorted_and_cut(finished, tmp_path):
    folder, _, _ = finished
    expected = by_id(predict_run(folder / "run", folder / "edges.csv"))
    command = ["predict", str(folder / "run"), str(folder / "edges.csv"), "--out", str(tmp_path / "r.csv")]
    assert CliRunner().invoke(app, [*command, "--rank", "c", "--top", "7", "--reasons", "2"]).exit_code == 0
    with (tmp_path / "r.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    ranked = sorted(expected, key=lambda node: -expected[node][2])[:7]
    assert {row["node"] for row in rows} == set(ranked)
    assert [float(row["c"]) for row in rows] == sorted((float(row["c"]) for row in rows), reverse=True)
    assert all(row["part"] for row in rows)
    assert all("neighbours together (+" in row["reasons"] for row in rows[:2])
    assert {row["reasons"] for row in rows[2:]} == {""}
    for options, words in (({"rank": "x"}, "rank: .*'x'"), ({"top": 3}, "rank: ")):
        with pytest.raises(DemonetError, match=words):
            predict_run(folder / "run", folder / "edges.csv", **options)


def test_nodes_without_edges_are_served(tmp_path):
    """Next month some customers have no transfer: id 1 is in no edge."""
    write_problem(tmp_path)
    edges, labels, features = (tmp_path / f"{name}.csv" for name in ("edges", "labels", "features"))
    fit_run(edges, labels, features, out=tmp_path / "run", settings=Settings(epochs=3))
    with features.open("a") as file:
        file.write("quiet,0.5,1.0\n")
    inputs, _, outputs = predict_run(tmp_path / "run", edges, features)
    assert inputs.ids[-1] == "quiet"
    assert np.isfinite(outputs[-1]).all()


def test_new_nodes_are_hidden_in_training_and_tested(finished, tmp_path, monkeypatch):
    folder, edges, labels = finished
    seen, fit_on = [], Ensemble.fit

    def fit(data, split, **options):
        seen.append((list(data.node_ids), data.edge_index.size(1), split))
        return fit_on(data, split, **options)

    monkeypatch.setattr("demonet.ensemble.ensemble.portfolio", lambda *problem: [Propagation(), NodeForest()])
    monkeypatch.setattr(Ensemble, "fit", fit)
    settings = Settings(effort="quick", new_nodes=True)
    run = fit_run(folder / "edges.csv", folder / "labels.csv", out=tmp_path / "run", settings=settings)
    (ids, arcs, split) = seen[0]
    hidden = {run.ids[row] for row in np.flatnonzero(run.part == 2)}
    assert len(hidden) == run.metrics["split"]["test"] > 0
    assert set(ids) == set(labels) - hidden
    assert arcs == 2 * sum(u not in hidden and v not in hidden for u, v in edges)
    assert {ids[row] for row in split.train} == {run.ids[row] for row in np.flatnonzero(run.part == 0)}
    np.testing.assert_allclose(predict_run(tmp_path / "run", folder / "edges.csv")[2], run.outputs, atol=1e-6)
    assert run.metrics["new_nodes"]
    assert run.metrics["test_metric"] > 0.5, "new nodes are joined to known ones"
    assert run.metrics["inductive"]["refit"]["test_metric"] < run.metrics["test_metric"]
    assert "hidden" in (tmp_path / "run" / "MODEL_CARD.md").read_text()


def test_new_numbers_are_in_the_units_of_the_labels(finished, tmp_path, monkeypatch):
    folder, edges, labels = finished
    monkeypatch.setattr("demonet.ensemble.ensemble.portfolio", lambda *problem: [Propagation()])
    prices = [(node, 1000 * "abcd".index(kind) + place / 7) for place, (node, kind) in enumerate(labels.items())]
    known = write_table(tmp_path / "prices.csv", ("node", "price"), prices)
    fit_run(folder / "edges.csv", known, out=tmp_path / "run", settings=Settings(effort="quick"))
    later = write_edges(tmp_path / "later.csv", [*edges, ("k000", "new"), ("new", "stranger")])
    before = by_id(predict_run(tmp_path / "run", later))
    for price in (-9000, 9000):
        new = write_table(tmp_path / "new.csv", ("node", "price"), [("new", price)])
        found = predict_run(tmp_path / "run", later, labels=new)
        assert "1 labels given, 1 of them new" in found[0].standing
        moved = by_id(found)["stranger"][0] - before["stranger"][0]
        assert np.sign(moved) == np.sign(price)
        assert 100 < abs(moved) < 10000
    bad = write_table(tmp_path / "bad.csv", ("node", "price"), [("k000", "3.5"), ("k001", "much")])
    with pytest.raises(DemonetError, match=r"bad\.csv:3: .*'much'"):
        predict_run(tmp_path / "run", later, labels=bad)
