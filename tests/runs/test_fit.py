"""A run from Python: what its folder holds, what is trained on, and what is refused."""

import json
import re

import numpy as np
import pytest
import torch
from tests.runs.files import FAST, FILES, fit, page, read_table, write_table

from demonet import DEMONetClassifier, DemonetError
from demonet.data import Split, read_graph, synthetic
from demonet.runs import Reading, Settings, embed_run, fit_run, inputs, load_run, predict_run


def test_the_folder_is_complete_says_the_same_everywhere_and_is_read_back(problem):
    run = fit()
    assert sorted(file.name for file in (problem / "run").iterdir()) == FILES
    metrics = json.loads((problem / "run" / "metrics.json").read_text())
    assert metrics == run.metrics
    assert metrics["split"] | {"hash": 0} == {
        **{"name": "60/20/20, stratified", "seed": 0, "hash": 0, "train": 36, "val": 12, "test": 12}
    }
    assert set(metrics["floors"]) == {"majority", "degree-knn"}
    split = Split.load(problem / "run" / "split.json")
    head, *table = read_table(problem / "run" / "predictions.csv")
    assert head == ["node", "label", "part", "prediction", "confidence", "corner", "foot", "ring"]
    data = read_graph("edges.csv", "labels.csv")
    assert [row[0] for row in table] == data.node_ids
    names = np.array(data.class_names)[data.y.numpy()]
    assert [row[1] for row in table] == names.tolist()
    parts = {part: [i for i, row in enumerate(table) if row[2] == part] for part in ("train", "val", "test")}
    assert parts == {part: getattr(split, part).tolist() for part in parts}
    right = np.array([row[3] for row in table]) == names
    assert metrics["test_accuracy"] == right[split.test].mean()
    assert metrics["val_accuracy"] == right[split.val].mean()
    assert metrics["floors"]["majority"] == (names[split.test] == "corner").mean()
    low, high = metrics["test_interval"]
    assert low <= metrics["test_accuracy"] <= high
    assert metrics["epochs"] == len(run.history["val_loss"]) == 12
    card = (problem / "run" / "MODEL_CARD.md").read_text()
    assert f"{metrics['test_accuracy']:.3f}" in card
    assert re.search(r"\b36 nodes\b.*\b12\b.*\b12\b", card)
    back = load_run("run")
    for name in ("y", "part", "outputs", "degree", "place", "degrees", "degree_counts", "degree_task", "edges"):
        np.testing.assert_array_equal(getattr(run, name), getattr(back, name))
    assert (run.config, run.history, run.ids) == (back.config, back.history, back.ids)
    assert run.degrees.tolist() == [2, 4]
    assert run.degree_counts.tolist() == [48, 12]
    assert run.edges.shape == (2, 72)
    assert np.bincount(run.part).tolist() == [36, 12, 12]


def test_class_names_and_ids_are_those_of_the_files(problem):
    edges = [(f'a "{i}", b', f'a "{(i + 1) % 24}", b') for i in range(24)]
    write_table(problem / "edges.csv", ("source", "target"), edges)
    kinds = ["=1+2", "<script>, |x|", "*bold*"]
    write_table(problem / "labels.csv", ("node", "label"), [(u, kinds[i % 3]) for i, (u, _) in enumerate(edges)])
    run = fit()
    head, *table = read_table(problem / "run" / "predictions.csv")
    assert head[5:] == run.class_names == sorted(kinds)
    assert {row[0] for row in table} == {u for u, _ in edges}
    card = (problem / "run" / "MODEL_CARD.md").read_text()
    assert r"| \<script\>, \|x\| | 8 |" in card
    assert "<script>" not in card


def test_repeated_splits_have_a_mean_and_an_interval(problem):
    run = fit(settings=Settings(epochs=12, cv=3))
    over = run.metrics["cv"]
    assert over["splits"] == 3
    assert over["test_accuracy"][0] == run.metrics["test_accuracy"]
    assert over["mean"] == pytest.approx(np.mean(over["test_accuracy"]))
    assert over["std"] == pytest.approx(np.std(over["test_accuracy"], ddof=1))
    reach = 4.302652729911275 * over["std"] / 3**0.5  # Student's t with two degrees of freedom
    assert over["interval"] == pytest.approx([over["mean"] - reach, over["mean"] + reach])
    assert len(over["floors"]["degree-knn"]) == 3
    alone = fit(out="alone")
    np.testing.assert_array_equal(alone.outputs, run.outputs)


def test_graphs(problem):
    run = fit_run("graphs.csv", "kinds.csv", out="run", settings=FAST, page=page)
    assert run.kind == "graphs"
    assert run.ids == [f"g{i:02}" for i in range(24)]
    assert run.degree.tolist() == [5 + i % 4 + i % 2 for i in range(24)]
    assert run.edge_count.tolist() == [5 + i % 4 for i in range(24)]
    assert run.edges is None
    head, *table = read_table(problem / "run" / "predictions.csv")
    assert head == ["graph", "label", "part", "prediction", "confidence", "cycle", "star"]
    assert len(table) == 24
    np.testing.assert_array_equal(predict_run("run", "graphs.csv")[2], run.outputs)
    assert embed_run("run", "graphs.csv")[1].shape[0] == 24


def test_attributes_that_are_no_counts_are_standardised(problem):
    run = fit(features="features.csv")
    assert run.config["features"] == "encoded+structure"
    model = DEMONetClassifier.load("run/model.safetensors", graph="edges.csv", attributes="features.csv")
    found = model.features_.transform(model.graph_)[:, :2]
    np.testing.assert_allclose(found.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(found.std(0, correction=0), 1, atol=1e-5)
    by_kind = fit(out="by-kind", features="features.csv", settings=Settings(epochs=12, preset="default"))
    assert by_kind.config["features"] == "columns"
    assert run.columns == ["height", "age"]
    assert set(run.metrics["floors"]) == {"majority", "degree-knn", "attribute-lr"}


def test_folders_that_are_no_runs_are_left_alone(problem):
    (problem / "mine").mkdir()
    (problem / "mine" / "thesis.txt").write_text("years of work")
    for overwrite in (False, True):
        with pytest.raises(DemonetError, match=r"^mine: (?!.*overwrite)"):
            fit(out="mine", overwrite=overwrite)
    with pytest.raises(DemonetError, match=r"^edges\.csv: .*file"):
        fit(out="edges.csv")
    assert [file.name for file in (problem / "mine").iterdir()] == ["thesis.txt"]


def test_bad_input_leaves_no_folder(problem):
    for options, message in (
        ({"settings": Settings(val=0.001)}, r"\bval: .*0\.001\b.*\b60\b"),
        ({"settings": Settings(split=problem / "none.json")}, r"none\.json: "),
    ):
        with pytest.raises(DemonetError, match=message):
            fit(**options)
    write_table(problem / "labels.csv", ("node", "label"), [("r0", "one"), ("r1", "one")])
    with pytest.raises(DemonetError, match=r"labels.*'one'"):
        fit()
    with pytest.raises(DemonetError, match=r"^edges\.csv: .*\blabels\b"):
        fit_run("edges.csv", out="run")
    with pytest.raises(DemonetError, match=r"^brasil: .*'brazil'"):
        fit_run("brasil", out="run")
    assert not (problem / "run").exists()


def test_a_split_of_ones_own(problem):
    first = fit()
    split = problem / "mine.json"
    (problem / "run" / "split.json").rename(split)
    again = fit(out="again", settings=Settings(epochs=12, split=split))
    np.testing.assert_array_equal(first.outputs, again.outputs)


def test_curves_for_tensorboard(problem):
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    fit(settings=Settings(epochs=12, log="tensorboard"))
    events = event_accumulator.EventAccumulator(str(problem / "run" / "tensorboard" / "split-000"))
    events.Reload()
    curve = [event.value for event in events.Scalars("val_loss")]
    assert curve == pytest.approx(load_run("run").history["val_loss"])
    fit(overwrite=True)
    assert not (problem / "run" / "tensorboard").exists()


def test_a_network_in_batches(problem):
    run = fit(settings=Settings(epochs=3, batch_size=8, neighbours=2))
    assert run.model == "network"
    assert (run.config["estimator"]["batch_size"], run.config["estimator"]["neighbours"]) == (8, 2)
    np.testing.assert_allclose(predict_run("run", "edges.csv")[2], run.outputs, atol=1e-6)
    with pytest.raises(DemonetError, match="batch_size: 0"):
        Settings(batch_size=0)
    with pytest.raises(DemonetError, match=r"neighbours: .*'auto'|neighbours: 3"):
        Settings(model="auto", neighbours=3)


def test_class_names_that_are_not_sorted_keep_their_order(problem, monkeypatch):
    """Classes of wiki-vote are degree ranges, sorted by degree and not by name: accuracy was that of other classes."""
    data = synthetic.role_graph(0, motifs=12)
    order = sorted(range(len(data.class_names)), key=lambda code: -code)
    data.class_names = [data.class_names[code] for code in order]
    data.y = torch.tensor([order.index(code) for code in data.y.tolist()])
    monkeypatch.setattr(inputs, "load", lambda name, self_loops: data)
    monkeypatch.setattr(inputs.download, "locate", lambda entry: problem)
    run = fit_run("brazil", out="run", settings=Settings(epochs=80))
    assert run.class_names == data.class_names
    model = DEMONetClassifier.load("run/model.safetensors", graph=data)
    test = np.flatnonzero(run.part == 2)
    named = np.array(data.class_names)[data.y.numpy()]
    assert run.metrics["test_accuracy"] == (model.predict()[test] == named[test]).mean()


def test_loops_that_the_user_keeps_are_trained_on(problem):
    """They were dropped again by the estimator, in whose preset they are dropped."""
    with (problem / "edges.csv").open("a") as file:
        file.write("r0,r0\nr1,r1\n")
    kept = fit_run("edges.csv", "labels.csv", out="kept", settings=FAST, reading=Reading(self_loops="keep"))
    with pytest.warns(match="2 self-loops"):
        dropped = fit_run("edges.csv", "labels.csv", out="dropped", settings=FAST)
    assert not np.array_equal(kept.outputs, dropped.outputs)
    assert kept.config["sizes"]["edges"] == dropped.config["sizes"]["edges"] + 2
