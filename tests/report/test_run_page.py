"""What the page of a run says, for runs of every kind."""

from __future__ import annotations

import csv
import io
import math

import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support

from demonet.report import run_items
from demonet.report.page import Facts, Figure, Table, Text, render, write
from demonet.report.run import run_page
from demonet.report.run_items import unlabelled
from demonet.report.run_results import MOST_CLASSES, classes, shown_classes


def section(page, title):
    (found,) = [part for part in page.sections if part.title == title]
    return found


def facts(page):
    (found,) = [part.facts for part in page.sections if isinstance(part, Facts)]
    return found


def prose(page):
    return page.sections[0].text


def certain(y, prediction, classes):
    """Probabilities that make ``prediction`` sure."""
    return np.eye(classes, dtype=np.float32)[prediction] * 0.9 + 0.1 / classes


@pytest.fixture
def run(make_run):
    """Ten test items, eight of them right, in three classes."""
    y = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2] * 2)
    prediction = y.copy()
    prediction[[0, 4]] = 1, 2
    part = np.repeat([2, 0], 10).astype(np.int8)
    probabilities = certain(y, prediction, 3)
    probabilities[4] = 0.01, 0.29, 0.7
    probabilities[10] = 0.34, 0.33, 0.33
    return make_run(20, 3, y=y, part=part, outputs=probabilities)


def test_accuracy_stands_with_its_interval_beside_the_floors(run):
    page = run_page(run)
    assert facts(page)["test accuracy"] == 0.8
    assert facts(page)["95 % interval, Wilson"] == "0.490–0.943"
    assert facts(page)["best simple baseline: degree only"] == 0.4
    rows = section(page, "Accuracy compared with simple baselines, in numbers").rows
    assert [row[:2] for row in rows] == [["DEMO-Net", 0.8], ["degree only", 0.4], ["majority", 0.3]]
    assert rows[1][-1] == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("floors", "told"),
    [
        ({"majority": 0.3}, "below that interval"),
        ({"majority": 0.3, "degree-knn": 0.7}, "degree only, has 70.0\u00a0%, inside"),
        ({"majority": 0.9}, "does not beat it"),
    ],
)
def test_the_verdict_is_what_the_numbers_say(run, floors, told):
    run.metrics["strict"]["floors"] = floors
    assert " 8 correctly: 80.0\u00a0%" in prose(run_page(run))
    assert told in prose(run_page(run))


def test_without_baselines_the_page_has_the_model_alone(run):
    run.metrics["strict"]["floors"] = {}
    page = run_page(run)
    assert "simple baseline" not in prose(page)
    assert [row[0] for row in section(page, "Accuracy compared with simple baselines, in numbers").rows] == ["DEMO-Net"]


def test_repeated_splits_are_averaged_model_and_floors(run):
    values = {"test_metric": [0.7, 0.8, 0.9], "floors": {"degree-knn": [0.5, 0.5, 0.5], "majority": [0.1, None, 0.2]}}
    run.metrics["cv"] = {"splits": 3, "strict": values}
    table = section(run_page(run), "Over 3 splits, in numbers")
    assert table.rows[0][:4] == ["DEMO-Net", *(pytest.approx(value, abs=1e-3) for value in (0.8, 0.5516, 1.0))]
    assert table.rows[1:] == [["degree only", 0.5, 0.5, 0.5, pytest.approx(0.3)]]


def test_the_confusion_matrix_counts_the_test_part_alone(run):
    figure = section(run_page(run), "Confusion")
    assert figure.numbers.rows == [["class 0", 3, 1, 0], ["class 1", 0, 2, 1], ["class 2", 0, 0, 3]]
    assert all(fact in figure.caption for fact in ("“class 0”", "“class 1”", "1 of 4"))


def test_recall_and_precision_are_scikit_learns(run):
    rows = section(run_page(run), "Class by class").rows
    test = run.part == 2
    precision, recall, f1, support = precision_recall_fscore_support(run.y[test], run.prediction[test])
    np.testing.assert_allclose([row[1:] for row in rows], np.stack([support, recall, precision, f1], 1))


def test_accuracy_by_degree_adds_up(make_run):
    run = make_run(300)
    rows = section(run_page(run), "Accuracy by degree").numbers.rows
    assert sum(row[1] for row in rows) == 300
    assert sum(row[2] for row in rows) == (run.part == 2).sum()
    test = run.part == 2
    assert sum(row[3] for row in rows) == (run.prediction[test] == run.y[test]).sum()


def test_the_most_wrong_come_first(run):
    table = section(run_page(run), "Most wrong about")
    assert [row[0] for row in table.rows] == [run.ids[0], run.ids[4]]
    assert table.rows[1][1:5] == ["class 1", "class 2", pytest.approx(0.7), pytest.approx(0.29)]


def test_the_least_sure_are_outside_the_training_part(run):
    table = section(run_page(run), "Least sure about")
    assert table.rows[0][0] == run.ids[4], "item 10 is less sure still, but was trained on"
    assert table.rows[0][1:6] == ["class 2", pytest.approx(0.7), "class 1", pytest.approx(0.29), "class 1"]


def test_tasks_name_the_degrees_that_share_them(make_run):
    degrees = np.array([0, 1, 2, 3, 9])
    counts = np.array([4, 3, 2, 1, 1])
    run = make_run(degrees=degrees, degree_counts=counts, degree_task=np.array([7, 1, 1, 2, 2]))
    assert section(run_page(run), "Tasks").rows == [["0", 7, 4], ["1–2", 1, 5], ["3, 9", 2, 2]]


def test_settings_are_all_there(run):
    rows = section(run_page(run), "How it was made").rows
    assert ["files.edges", "edges.csv"] in rows
    assert ["split.train", "10"] in rows


def test_graphs_are_told_by_their_nodes_and_edges(make_run):
    page = run_page(make_run(200, kind="graphs"))
    assert section(page, "Accuracy by number of nodes")
    assert [column.name for column in section(page, "Most wrong about").columns][-2:] == ["nodes", "edges"]
    assert "test graphs" in prose(page)
    assert section(page, "Every graph").noun == "graph"


def hard(make_run, name):
    """Runs that are as odd as runs can be."""
    empty = np.zeros((2, 0), dtype=np.int64)
    gone = {"train_loss": [math.nan] * 3, "val_loss": [math.nan] * 3, "val_metric": [None] * 3, "best_epoch": 0}
    flat = np.zeros((30, 2), dtype=np.float32)
    none = np.zeros(30, dtype=np.int64)
    one = {"degree": none, "degrees": none[:1], "degree_counts": none[:1] + 30, "degree_task": none[:1]}
    return {
        "sixty classes": lambda: make_run(600, 60, class_names=[f"{i} " + "long " * 50 for i in range(60)]),
        "one class in test": lambda: make_run(30, y=none),
        "one class": lambda: make_run(30, 1),
        "empty test part": lambda: make_run(30, part=np.zeros(30, dtype=np.int8)),
        "no labels": lambda: make_run(30, y=none - 1, part=np.full(30, -1, dtype=np.int8)),
        "no history": lambda: make_run(30, history={}),
        "no edges": lambda: make_run(30, edges=empty, drawing=flat, place=flat, **one),
        "history is not a number": lambda: make_run(30, history=gone),
        "no place": lambda: make_run(30, place=flat * math.nan),
        "one node": lambda: make_run(1),
    }[name]()


HARD = (
    *("sixty classes", "one class in test", "one class", "empty test part", "no labels", "no history"),
    *("no edges", "history is not a number", "no place", "one node"),
)


@pytest.mark.parametrize("name", HARD)
def test_odd_runs_have_a_page(make_run, name):
    page = run_page(hard(make_run, name))
    html = render(page)
    shown = html.split("<main", 1)[1]
    assert ">nan" not in shown.lower()
    assert all(part.caption for part in page.sections if isinstance(part, Figure)), "a sentence under every plot"
    assert all(part.caption and part.rows for part in page.sections if isinstance(part, Table))
    assert isinstance(page.sections[0], Text)


def test_without_a_test_part_the_page_claims_nothing(make_run):
    page = run_page(hard(make_run, "empty test part"))
    assert "unknown" in prose(page)
    assert "test accuracy" not in facts(page)
    assert {"Confusion", "Accuracy by degree"}.isdisjoint(part.title for part in page.sections)


def test_a_hundred_thousand_nodes_fit_into_six_megabytes(make_run, tmp_path):
    write(run_page(make_run(100_000, 5)), tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 6_000_000


def test_a_regression_says_how_far_off_it_is(make_numbers):
    run = make_numbers()
    page = run_page(run)
    assert facts(page)["test RMSE"] == run.metrics["test_metric"]
    assert facts(page)["R², test"] == 0.8
    assert facts(page)["best simple baseline: majority"] == 0.3, "the smallest error"
    assert "does not beat it" in prose(page)
    table = section(page, "RMSE compared with simple baselines, in numbers")
    assert [row[0] for row in table.rows] == ["DEMO-Net", "majority", "degree only"]
    assert table.columns[1].best == "min"
    known = np.flatnonzero((run.part == 2) & ~np.isnan(run.y[:, 0]))
    numbers = section(page, "Predicted against true").numbers.rows
    assert [row[0] for row in numbers] == [run.ids[i] for i in known]
    worst = known[np.abs(run.y[known, 0] - run.outputs[known, 0]).argmax()]
    assert section(page, "Largest errors").rows[0][0] == run.ids[worst]
    rows = section(page, "Residuals by degree").numbers.rows
    assert sum(row[1] for row in rows) == known.size
    assert "Accuracy by degree" not in [part.title for part in page.sections]


def test_a_regression_of_several_targets_has_figures_of_each(make_numbers):
    titles = [part.title for part in run_page(make_numbers(columns=2, kind="graphs")).sections]
    for name in ("target 0", "target 1"):
        assert {f"Predicted against true, {name}", f"Residuals by number of nodes, {name}"} <= set(titles)
    assert render(run_page(make_numbers(columns=9)))


def test_labels_stand_in_a_table_of_their_own(make_labels):
    run = make_labels()
    page = run_page(run)
    assert section(page, "Label by label").rows[1] == ["label 1", 20, 9, 0.8, 0.7, 0.75, None]
    rows = section(page, "Accuracy by degree").numbers.rows
    test = run.part == 2
    known = ~np.isnan(run.y[test])
    assert sum(row[3] for row in rows) == known.sum()
    assert sum(row[4] for row in rows) == ((run.prediction == run.y)[test] & known).sum()
    worst = section(page, "Most wrong about").rows
    assert worst[0][1] == max(row[1] for row in worst)


@pytest.mark.parametrize("make", ["make_numbers", "make_labels"])
def test_other_tasks_without_a_test_part_or_floors(request, make):
    make = request.getfixturevalue(make)
    run = make(part=np.zeros(len(make().ids), np.int8))
    run.metrics["labels"] = None
    assert render(run_page(run))
    assert "unknown" in prose(run_page(run))


NONE = {"status": "fitted", "reason": "", "score": None, "interval": None, "loss": None, "seconds": 0.0}
NONE |= {"refit_seconds": 0.0, "weight": 0.0, "inductive_weight": 0.0}
CANDIDATES = [
    {
        **NONE,
        **{"name": "<b>forest</b>", "kind": "forest", "loss": 0.5, "weight": 0.3, "inductive_weight": 0.3},
        **{"score": 0.75, "interval": [0.6, 0.85], "seconds": 2.0, "refit_seconds": 0.5},
    },
    {
        **NONE,
        **{"name": "machine", "kind": "kernel", "loss": 0.4, "weight": 0.7, "inductive_weight": 0.7},
        **{"score": 0.8, "interval": [0.7, 0.9], "seconds": 1.0, "refit_seconds": 0.5},
    },
    {**NONE, "name": "network", "kind": "network", "status": "skipped", "reason": "no time"},
]
GAIN = {"best": "machine", "best_score": 0.8, "ensemble_score": 0.82, "difference": 0.02, "interval": [-0.01, 0.05]}
EFFECT = {
    **{
        "accuracy": {"degree": 0.8, "none": 0.7, "shuffled": 0.6},
        "loss": {"degree": 0.5, "none": 0.7, "shuffled": 0.8},
    },
    "gain": {arm: {"accuracy": [0.1, 0.05, 0.15], "loss": [-0.2, -0.3, -0.1]} for arm in ("none", "shuffled")},
    **{"items": 40, "regression": False, "degrees": [1, 2, 9], "verdict": "Yes, it does.", "weight": 0.7},
    "sharing": [[1.0, 0.9, 0.4], [0.9, 1.0, 0.5], [0.4, 0.5, 1.0]],
}


@pytest.fixture
def ensemble_run(make_run):
    """A run of ``auto``, as ``make_run`` makes them."""

    def make(**changes):
        run = make_run(degree_task=None, history={})
        tested = {"test_metric": 0.7, "test_metric_interval": [0.5, 0.8], "floors": {"majority": 0.25}}
        facts = {
            **{"model": "auto", "effort": "quick", "rule": "refit", "strict": tested, "refit": tested},
            **{"candidates": CANDIDATES, "judged": {"items": 40, "by": "validation"}, "gain": {"accuracy": GAIN}},
            "degree_effect": EFFECT,
        }
        run.metrics.pop("epochs")
        run.metrics.update(facts | changes)
        return run

    return make


def test_candidates_stand_with_score_weight_and_time(ensemble_run):
    page = run_page(ensemble_run())
    sections = {section.title: section for section in page.sections if section.title}
    table = sections["Candidates, in numbers"]
    assert [row[0] for row in table.rows] == ["machine", "<b>forest</b>", "network"]
    assert table.rows[0][1:] == [0.8, "0.700–0.900", 0.4, 0.7, 1.5, ""]
    assert "no time" in table.rows[2][-1]
    bars, _ = sections["Weights"].figure.panels[0].series
    assert list(bars.x) == [0.7, 0.3]
    told = sections["Candidates"].text
    assert all(fact in told for fact in ("0.820", "machine", "0.020 better", "-0.010 to +0.050", "2 of 3"))
    opening = page.sections[0].text
    assert all(fact in opening for fact in ("Refit", "Strict", "0.700", "majority 0.250"))
    html = render(page)
    assert "<b>forest</b>" not in html
    assert "Learning curves" not in sections
    assert "Degrees" in sections


def test_whether_the_degree_matters_is_answered(ensemble_run):
    sections = {section.title: section for section in run_page(ensemble_run()).sections if section.title}
    assert EFFECT["verdict"] in sections["Does the degree matter on your graph?"].text
    rows = sections["The degree-specific term, in numbers"].rows
    assert [row[1:3] for row in rows] == [[0.5, 0.8], [0.7, 0.7], [0.8, 0.6]]
    assert rows[1][3:] == ["-0.200 (-0.300 to -0.100)", "+0.100 (+0.050 to +0.150)"]
    curves = sections["Learned kernel of degrees"].figure.panels[0].series
    assert [list(curve.y) for curve in curves] == EFFECT["sharing"]


def test_a_skipped_diagnosis_and_a_network_are_said(ensemble_run, make_run):
    skipped = run_page(ensemble_run(degree_effect={"skipped": "it would take an hour"}))
    sections = {section.title: section for section in skipped.sections if section.title}
    assert "it would take an hour" in sections["Does the degree matter on your graph?"].text
    assert "Learned kernel of degrees" not in sections
    titles = {section.title for section in run_page(make_run()).sections}
    assert not {"Candidates", "Does the degree matter on your graph?"} & titles


def test_a_page_of_many_items_has_a_sample_and_says_so(make_run, monkeypatch):
    monkeypatch.setattr("demonet.report.run.MOST_ITEMS", 50)
    run = make_run(60)
    explorer = section(run_page(run), "A sample of the nodes")
    assert len(explorer.ids) == len(set(explorer.ids)) == 50
    assert "50 of 60 nodes" in explorer.views["place"].caption
    rows = [list(run.ids).index(name) for name in explorer.ids]
    np.testing.assert_array_equal(explorer.channels["size"].values, run.degree[rows])
    np.testing.assert_array_equal(explorer.views["place"].place, run.place[rows])
    whole = section(run_page(make_run(50)), "Every node")
    assert len(whole.ids) == 50
    assert "of 50 nodes" not in whole.views["place"].caption


def many(make_run, size):
    """Two items a class; class 7 has fifty, and 900 is always taken for 901."""
    y = np.concatenate([np.repeat(np.arange(size), 2), np.full(48, 7)])
    taken, count = np.where(y == 900, 901, y), len(y)
    outputs = np.zeros((count, size), np.float32)
    outputs[np.arange(count), taken] = 1
    changes = {"y": y, "outputs": outputs, "part": np.full(count, 2, np.int8), "ids": [f"n{i}" for i in range(count)]}
    changes |= {"class_names": [f"class {i}" for i in range(size)], "degree": np.full(count, 3)}
    return make_run(**changes, place=np.zeros((count, 2), np.float32), edges=None, drawing=None)


def test_the_page_does_not_grow_with_the_square_of_the_classes(make_run):
    sizes = [len(render(run_page(many(make_run, size)))) for size in (1000, 2000)]
    assert sizes[1] - sizes[0] < 200_000


def test_the_largest_and_the_most_confused_are_shown(make_run):
    run = many(make_run, 1000)
    shown = shown_classes(run.y, run.prediction, 1000)
    assert len(shown) == MOST_CLASSES
    assert {7, 900, 901} <= set(shown.tolist())
    figure, table = classes(run)
    assert len(table.rows) == MOST_CLASSES
    numbers = np.array([row[1:] for row in figure.numbers.rows])
    assert numbers.shape == (MOST_CLASSES + 1, MOST_CLASSES + 1)
    assert numbers.sum() == len(run.y)
    assert shown_classes(np.zeros(3, np.int64), np.ones(3, np.int64), 2).tolist() == [0, 1]


def rows_of(file: tuple[str, str]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(file[1])))


def test_items_without_a_label_are_counted_listed_from_both_ends_and_saved(make_run, monkeypatch):
    run = make_run(90, 3)
    run.y[::2], run.part[::2] = -1, -1
    text, table = unlabelled(run, run.ids)
    assert "45 of 90 nodes" in text.text
    counts = np.bincount(run.prediction[::2])
    assert all(f"{name} {count}" in text.text for name, count in zip(run.class_names, counts, strict=True))
    assert [size for _, size in table.groups] == [10, 10]
    shown, everyone = [row[2] for row in table.rows], np.sort(run.confidence[::2])
    assert shown[:10] == pytest.approx(everyone[:-11:-1])
    assert shown[10:] == pytest.approx(everyone[:10])
    saved = rows_of(table.file)
    assert sorted(row["node"] for row in saved) == sorted(run.ids[::2])
    place = {name: i for i, name in enumerate(run.ids)}
    assert all(row["prediction"] == run.class_names[run.prediction[place[row["node"]]]] for row in saved)
    monkeypatch.setattr(run_items, "MOST_SAVED", 44)
    assert unlabelled(run, run.ids)[1].file is None, "it would be too large"
    run.y[12:], run.part[12:] = 0, 0
    _, table = unlabelled(run, run.ids)
    assert (len(table.rows), list(table.groups)) == (6, [])
    assert unlabelled(make_run(30), []) == []


@pytest.mark.parametrize("make", ["make_numbers", "make_labels"])
def test_other_tasks_have_items_without_a_label_too(make, request):
    made = request.getfixturevalue(make)()
    made.y[:25], made.part[:25] = np.nan, -1
    text, table = unlabelled(made, made.ids)
    missing = int((~made.known).sum())
    assert f"{missing} of {len(made.ids)}" in text.text
    assert len(rows_of(table.file)) == missing
    assert "unlabelled" in {section.anchor for section in run_page(made).sections}
