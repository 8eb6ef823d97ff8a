"""Regression and multi-label runs: from tables to predictions, metrics and pages; how the task is decided."""

import json

import numpy as np
import pytest
from sklearn import metrics as sk
from tests.runs.files import FAST, read_table, roles, write_table, write_tu

from demonet import DEMONetClassifier, DemonetError, DemonetWarning
from demonet.data import Split
from demonet.methods.forest import NodeForest
from demonet.report.page import render, write
from demonet.report.run import run_page
from demonet.runs import Reading, Settings, embed_run, fit_run, load_run, predict_run
from demonet.runs.facts import RunFacts
from demonet.runs.inputs import read_inputs
from demonet.runs.targets import with_targets
from demonet.train.metrics import METRICS, Metric

TASKS = {"regress": "scores.csv", "multilabel": "tags.csv", "classify": "labels.csv"}


def write_page(run, path):
    write(run_page(run), path)


def run_of(labels, **options):
    settings = Settings(**{"epochs": 12} | options.pop("settings", {}))
    return fit_run("edges.csv", labels, out=options.pop("out", "run"), settings=settings, page=write_page, **options)


def numbers(cells):
    return np.array([[float(cell) if cell else np.nan for cell in row] for row in cells])


def test_a_regression_from_a_table_to_predictions(problem):
    run = run_of("scores.csv")
    written = json.loads((problem / "run" / "metrics.json").read_text())
    assert written == run.metrics
    assert (written["task"], written["metric"]) == ("regress", "rmse")
    assert (run.task, run.config["task"], run.config["metric"]) == ("regress", "regress", "rmse")
    head, *table = read_table(problem / "run" / "predictions.csv")
    assert head == ["node", "label", "part", "prediction"]
    assert run.class_names == ["score"]
    assert {row[2] for row in table} == {"train", "val", "test", ""}
    known = {row[0]: row[1] for row in read_table(problem / "scores.csv")[1:]}
    split = Split.load(problem / "run" / "split.json")
    parts = {part: getattr(split, part).tolist() for part in ("train", "val", "test")}
    true = np.array([float(known[row[0]] or "nan") for row in table])
    assert np.isnan(true).sum() == 2
    assert sorted(item for part in parts.values() for item in part) == np.flatnonzero(~np.isnan(true)).tolist()
    np.testing.assert_allclose(numbers(row[1:2] for row in table)[:, 0], true)
    predicted = numbers(row[3:] for row in table)[:, 0]
    test, val = parts["test"], parts["val"]
    rmse = sk.root_mean_squared_error(true[test], predicted[test])
    assert written["rmse"] == written["test_metric"] == pytest.approx(rmse, rel=1e-5)
    assert written["mae"] == pytest.approx(sk.mean_absolute_error(true[test], predicted[test]), rel=1e-5)
    assert written["r2"] == pytest.approx(sk.r2_score(true[test], predicted[test]), rel=1e-4)
    assert written["val_metric"] == pytest.approx(sk.root_mean_squared_error(true[val], predicted[val]), rel=1e-5)
    for name, (low, high) in written["intervals"].items():
        assert low <= written[name] <= high
    mean = true[parts["train"]].mean()
    assert written["floors"]["mean"] == pytest.approx(np.sqrt(((true[test] - mean) ** 2).mean()))
    assert set(written["floors"]) == {"mean", "degree-knn"}
    assert min(run.history["val_metric"]) == run.history["val_metric"][run.history["best_epoch"]]


def test_several_targets(problem):
    run = run_of("sides.csv")
    assert (run.task, run.class_names) == ("regress", ["left", "right"])
    head, *table = read_table(problem / "run" / "predictions.csv")
    assert head == ["node", "left label", "right label", "part", "left", "right"]
    np.testing.assert_array_equal(np.float32(numbers(row[4:] for row in table)), run.outputs)
    np.testing.assert_allclose(numbers(row[1:3] for row in table), run.y)
    test = run.part == 2
    errors = [sk.root_mean_squared_error(run.y[test, i], run.outputs[test, i]) for i in range(2)]
    assert run.metrics["rmse"] == pytest.approx(np.mean(errors), rel=1e-5)
    assert "Residuals by degree, right" in [section.title for section in run_page(run).sections]
    assert any("mean over 2 targets" in told for told in RunFacts(run).decisions)
    starts = {told[0].partition(": ")[0] for told in run.metrics["reasons"].values()}
    assert starts == {"left", "right"}  # both, however large the numbers of one are


def test_columns_in_which_nothing_can_be_learned_are_told(problem):
    head, *rows = read_table(problem / "tags.csv")
    write_table(problem / "tags.csv", [*head, "nobody"], [[*row, "0"] for row in rows])
    with pytest.warns(DemonetWarning, match=r"tags\.csv: all known values are equal in 'nobody'"):
        run_of("tags.csv", settings={"epochs": 2})


def test_a_multi_label_run_from_a_table_to_predictions(problem):
    run_of("tags.csv", features="features.csv")
    written = json.loads((problem / "run" / "metrics.json").read_text())
    assert (written["task"], written["metric"]) == ("multilabel", "average-precision")
    head, *table = read_table(problem / "run" / "predictions.csv")
    names = ["corner", "foot", "odd, one"]
    labels = [f"{name} label" for name in names]
    assert head == ["node", *labels, "part", *names, *(f"{name} probability" for name in names)]
    predicted, probability = np.split(numbers(row[5:] for row in table), 2, axis=1)
    np.testing.assert_array_equal(predicted, probability >= 0.5)
    cells = {row[0]: row[1:] for row in read_table(problem / "tags.csv")[1:]}
    true = numbers(cells[row[0]] for row in table)
    test = Split.load(problem / "run" / "split.json").test.tolist()
    f1, precision = [], []
    for column, row in enumerate(written["labels"]):
        known = [i for i in test if not np.isnan(true[i, column])]
        y, found, p = true[known, column], predicted[known, column], probability[known, column]
        assert (row["name"], row["positives"], row["known"]) == (names[column], y.sum(), len(known))
        assert row["precision"] == pytest.approx(sk.precision_score(y, found, zero_division=0))
        assert row["recall"] == pytest.approx(sk.recall_score(y, found, zero_division=0))
        assert row["average_precision"] == pytest.approx(sk.average_precision_score(y, p))
        f1.append(sk.f1_score(y, found, zero_division=0))
        precision.append(row["average_precision"])
    assert written["macro_f1"] == pytest.approx(np.mean(f1))
    assert written["average_precision"] == written["test_metric"] == pytest.approx(np.mean(precision))
    assert set(written["floors"]) == {"majority", "degree-knn", "attribute-lr"}
    assert 0 <= written["test_metric_interval"][0] <= written["test_metric_interval"][1] <= 1


@pytest.mark.parametrize("options", [{"model": "auto", "effort": "quick", "epochs": None}, {}])
def test_labels_are_predicted_from_thresholds_that_validation_chose(problem, options, monkeypatch):
    """By the model, its file, its page and its floors; here all of them choose the same ones."""
    asked = []

    def given(metric, outputs, y):
        asked.append(np.nansum(y))
        return 0.2, 0.4, 0.3

    monkeypatch.setattr(Metric, "choose_decision", given)
    monkeypatch.setattr("demonet.ensemble.ensemble.portfolio", lambda *problem: [NodeForest()])
    run = run_of("tags.csv", settings={"metric": "macro-f1", "val": 0.4, **options})
    floors = len(run.metrics["floors"])
    assert asked[-floors:] == [np.nansum(run.y[run.part == 1])] * floors
    assert run.metrics["decision"] == {"thresholds": [0.2, 0.4, 0.3]}
    np.testing.assert_array_equal(run.prediction, run.outputs >= [0.2, 0.4, 0.3])
    assert (run.prediction != (run.outputs >= 0.5)).any()
    _, *table = read_table(problem / "run" / "predictions.csv")
    np.testing.assert_array_equal(numbers(row[5:8] for row in table), run.prediction)
    test, f1 = run.part == 2, []
    for column in range(3):
        known = test & ~np.isnan(run.y[:, column])
        f1.append(sk.f1_score(run.y[known, column], run.prediction[known, column], zero_division=0))
    np.testing.assert_allclose([row["f1"] for row in run.metrics["labels"]], f1)
    assert run.metrics["test_metric"] == pytest.approx(np.mean(f1))
    loaded = DEMONetClassifier.load("run/model.safetensors")
    inputs = predict_run("run", "edges.csv")[0]
    assert loaded.objective_.decision == load_run("run").decision == inputs.decision == (0.2, 0.4, 0.3)
    np.testing.assert_array_equal(loaded.predict(read_inputs("edges.csv", None, None, Reading()).data), run.prediction)
    (rows,) = [part.rows for part in run_page(run).sections if getattr(part, "title", "") == "Label by label"]
    assert [row[-1] for row in rows] == [0.2, 0.4, 0.3]


@pytest.mark.parametrize("task", TASKS)
def test_every_task_is_predicted_embedded_repeated_and_shown(problem, task):
    run = run_of(TASKS[task], settings={"cv": 2})
    assert run.task == task
    assert len(run.metrics["cv"]["test_metric"]) == 2
    np.testing.assert_array_equal(predict_run("run", "edges.csv")[2], run.outputs)
    assert embed_run("run", "edges.csv")[1].shape[0] == 60
    back = load_run("run")
    np.testing.assert_array_equal(back.y, run.y)
    page = render(run_page(back))
    assert page == (problem / "run" / "report.html").read_text(encoding="utf-8")
    assert run.metric.title in (problem / "run" / "MODEL_CARD.md").read_text(encoding="utf-8")
    if run.metric.larger_is_better:
        low, high = run.metrics["cv"]["interval"]
        assert 0 <= low <= high <= 1


@pytest.mark.parametrize(("task", "metric"), [("classify", "auc"), ("multilabel", "log-loss"), ("regress", "mae")])
def test_the_metric_chooses_the_epoch_and_is_reported(problem, task, metric):
    run = run_of(TASKS[task], features="features.csv", settings={"metric": metric, "epochs": 4})
    assert run.metrics["metric"] == run.config["metric"] == metric
    curve = [value for value in run.history["val_metric"] if value is not None]
    best = (max if METRICS[metric].larger_is_better else min)(curve)
    assert run.metrics["val_metric"] == pytest.approx(best, rel=1e-4)
    assert len(run.metrics["floors"]) == 3
    assert f"test {METRICS[metric].title}" in render(run_page(run))


def test_a_regression_of_graphs(problem):
    kinds = [row[0] for row in read_table(problem / "kinds.csv")[1:]]
    table = write_table(problem / "sizes.csv", ("graph", "x"), [(g, i % 5 + 0.25) for i, g in enumerate(kinds)])
    run = fit_run("graphs.csv", str(table), out="run", settings=FAST, page=write_page)
    assert (run.kind, run.task, run.y.shape) == ("graphs", "regress", (24, 1))
    assert read_table(problem / "run" / "predictions.csv")[0] == ["graph", "label", "part", "prediction"]
    np.testing.assert_array_equal(predict_run("run", "graphs.csv")[2], run.outputs)


@pytest.mark.parametrize("classes", [False, True])
def test_graph_attributes_of_a_tu_folder(problem, classes):
    numbers = [f"{g / 7:.3f}" for g in range(20)]
    labels = {"graph_labels": [str(g % 2) for g in range(20)]} if classes else {}
    write_tu(problem, 20, graph_attributes=numbers, **labels)
    run = fit_run("SET", out="run", settings=FAST)
    assert run.task == ("classify" if classes else "regress")
    run = fit_run("SET", out="again", settings=Settings(epochs=3, task="regress"))
    np.testing.assert_allclose(run.y[:, 0], [float(number) for number in numbers])


def decided(problem, *cells):
    """The task of a table of labels, the other one that the line names, and the names."""
    nodes = list(roles()[1])
    names = ("node", *"abc"[: len(cells[0])])
    table = write_table(problem / "l.csv", names, [(node, *row) for node, row in zip(nodes, cells, strict=False)])
    inputs, line = with_targets(read_inputs("edges.csv", str(table), None, Reading()))
    assert line.startswith(f"task: {inputs.task} (")
    return inputs.task, line.arguments.get("task"), inputs.names


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["0.5", "1", "2"], ("regress", "classify")),
        ([str(i) for i in range(21)], ("regress", "classify")),
        ([str(i) for i in range(20)], ("classify", "regress")),
        ([str(i % 25) for i in range(60)], ("classify", "regress")),
        (["1", "2", "x"], ("classify", None)),
        (["1.0", "2.0", "nan"], ("classify", "regress")),
    ],
)
def test_one_column_is_a_regression_if_it_measures(problem, values, expected):
    assert decided(problem, *([value] for value in values))[:2] == expected


@pytest.mark.parametrize("word", ["about 5", "12,5"])
def test_a_word_in_a_column_of_numbers_names_the_cell(problem, word):
    cells = [(f"{number}.25",) for number in range(30)]
    with pytest.raises(DemonetError, match=rf"l\.csv:6: '{word}'.*'a'.*task='classify'"):
        decided(problem, *cells[:4], (word,), *cells[5:])
    inputs = read_inputs("edges.csv", "l.csv", None, Reading())
    assert with_targets(inputs, "classify")[0].task == "classify"


def test_several_columns(problem):
    assert decided(problem, (0, 1), (1, ""), (1, 0)) == ("multilabel", "regress", ["a", "b"])
    assert decided(problem, (0, 1), (1, 2), (1, 0)) == ("regress", "classify", ["a", "b"])
    with pytest.raises(DemonetError, match=r"l\.csv: .*'b' \(a note, another.*label_column='a'"):
        decided(problem, (0, "a note"), (1, "another"), (1, ""))


@pytest.mark.parametrize(
    ("labels", "settings", "parts"),
    [
        ("labels.csv", {"task": "regress"}, ("labels.csv", "task", "'corner'")),
        ("labels.csv", {"task": "multilabel"}, ("labels.csv", "task", "multilabel")),
        ("sides.csv", {"task": "multilabel"}, ("sides.csv", "task", "column 'left'")),
        ("scores.csv", {"metric": "accuracy"}, ("metric", "'accuracy'", "'regress'", "rmse, mae, r2")),
        ("scores.csv", {"class_weight": "balanced"}, ("class_weight", "'regress'")),
    ],
)
def test_what_does_not_fit_the_task_is_refused(problem, labels, settings, parts):
    with pytest.raises(DemonetError) as error:
        run_of(labels, settings=settings)
    assert all(part in str(error.value) for part in parts), str(error.value)
    assert "\n" not in str(error.value)
    assert not (problem / "run").exists()


def test_minus_one_is_unknown_where_labels_are_asked_for(problem):
    text = (problem / "tags.csv").read_text().replace(",,", ",-1,-1")
    (problem / "tags.csv").write_text(text)
    run = run_of("tags.csv", settings={"task": "multilabel", "epochs": 2})
    assert set(np.unique(run.y[~np.isnan(run.y)])) == {0, 1}
    assert np.isnan(run.y).any()


def test_a_multi_label_table_with_text_names_the_cell(problem):
    text = (problem / "tags.csv").read_text().splitlines()
    text[3] = text[3].split(",")[0] + ",1,x,0"
    (problem / "tags.csv").write_text("\n".join(text))
    with pytest.raises(DemonetError, match=r"^tags\.csv:4: 'x' .*column 'foot'"):
        run_of("tags.csv", settings={"task": "multilabel"})
