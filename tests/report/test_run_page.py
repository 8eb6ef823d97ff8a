"""What the page of a run says, for runs of every kind."""

import json
import math

import numpy as np
import pytest
import sklearn.metrics as sk

from demonet.report import run_items
from demonet.report.items import Items, Threshold
from demonet.report.page import Facts, Figure, Table, render, write
from demonet.report.run import run_page
from demonet.report.run_results import MOST_CLASSES, classes, shown_classes
from demonet.runs.facts import RunFacts


def section(page, title):
    (found,) = [part for part in page.sections if part.title == title]
    return found


def folded(page, name):
    return [part for part in page.sections if part.fold == name]


def facts(page):
    (found,) = [part.facts for part in page.sections if isinstance(part, Facts)]
    return found


def lists(page):
    """The ids of every list, in its order."""
    items = section(page, "The list")
    return {one.name: [items.ids[row] for row in items.order(one)] for one in items.lists}


@pytest.fixture
def run(make_run):
    """Ten test items, eight of them right, in three classes."""
    y = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2] * 2)
    prediction = y.copy()
    prediction[[0, 4]] = 1, 2
    probabilities = np.eye(3, dtype=np.float32)[prediction] * 0.9 + 0.1 / 3
    probabilities[4] = 0.01, 0.29, 0.7
    probabilities[10] = 0.34, 0.33, 0.33
    return make_run(20, 3, y=y, part=np.repeat([2, 0], 10).astype(np.int8), outputs=probabilities)


@pytest.fixture
def rare(make_run):
    """Two classes, 3 % of them "bad"; half of the items have no label. Accuracy is best if nothing is "bad"."""

    def make(count=400, **changes):
        random = np.random.default_rng(1)
        y = (random.random(count) < 0.04).astype(np.int64)
        score = np.clip(0.1 + 0.25 * y + random.normal(scale=0.08, size=count), 0, 0.49)
        part = np.where(np.arange(count) % 2, -1, np.arange(count) // 2 % 3).astype(np.int8)
        outputs = np.stack([1 - score, score], 1).astype(np.float32)
        known = np.where(part < 0, -1, y)
        return make_run(count, 2, y=known, part=part, outputs=outputs, class_names=["good", "bad"], **changes)

    return make


def test_accuracy_stands_with_its_interval_beside_the_floors(run):
    page = run_page(run)
    assert facts(page)["test accuracy"] == 0.8
    assert facts(page)["95 % interval, Wilson"] == "0.490–0.943"
    assert facts(page)["best simple baseline: degree only"] == 0.4
    rows = section(page, "Compared with simple baselines").numbers.rows
    assert [row[:2] for row in rows] == [["DEMO-Net", 0.8], ["degree only", 0.4], ["majority", 0.3]]
    assert rows[1][-1] == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("floors", "told"),
    [
        ({"majority": 0.3}, "below that interval"),
        ({"majority": 0.3, "degree-knn": 0.7}, "degree only, has 70.0\u00a0%, inside"),
        ({"majority": 0.9}, "does not beat it"),
        ({}, "80.0\u00a0%"),
    ],
)
def test_how_sure_it_is_is_what_the_numbers_say(run, floors, told):
    run.metrics["strict"]["floors"] = floors
    assert told in section(run_page(run), "How sure is it?").text
    assert any("simpler" in limit for limit in RunFacts(run).limits) == (floors.get("majority") == 0.9)


def test_the_rarer_class_ranks_first_and_hits_are_counted(rare):
    run = rare()
    page = run_page(run)
    assert page.title == "Which nodes have label “bad”?"
    waiting = np.flatnonzero(run.part == -1)
    expected = [run.ids[i] for i in waiting[np.argsort(-run.outputs[waiting, 1], kind="stable")]]
    assert lists(page)["Most probably bad"] == expected
    assert next(iter(lists(page))) == "Most probably bad"
    html = render(page)
    assert [html.index(name) for name in expected[:10]] == sorted(html.index(name) for name in expected[:10])
    test = run.part == 2
    y, score = run.y[test] == 1, run.outputs[test, 1]
    first = max(10, int(y.sum()))
    hits = int(y[np.argsort(-score, kind="stable")][:first].sum())
    assert page.sections[0].text.startswith(f"Of the {first} test nodes that rank first for “bad”, {hits} are “bad”.")
    asked = run_page(rare(config={"positive": "good", "metric": "average-precision"}))
    assert asked.title == "Which nodes have label “good”?"
    assert next(iter(lists(asked))) == "Most probably good"


def test_no_advice_on_accuracy_alone_where_classes_are_unequal(rare):
    run = rare()
    run.metrics["strict"] |= {"floors": {"majority": 0.99}, "auc": 0.9, "floors_auc": {"majority": 0.5}}
    assert not any("simpler" in limit for limit in RunFacts(run).limits)
    assert all(part in RunFacts(run).sure for part in ("accuracy says little", "0.900", "0.500"))
    assert "accuracy" not in RunFacts(run).others
    run.metrics["strict"]["floors_auc"] = {"degree-knn": 0.95}
    assert any("simpler" in limit for limit in RunFacts(run).limits)


def test_curves_and_the_threshold_are_scikit_learns(rare):
    run = rare(2000)
    page = run_page(run)
    test = run.part == 2
    y, score = run.y[test] == 1, run.outputs[test, 1]
    assert f"“bad” {sk.roc_auc_score(y, score):.3f}" in section(page, "ROC").caption
    curve = section(page, "ROC").figure.panels[0].series[1]
    assert np.trapezoid(curve.y, curve.x) == pytest.approx(sk.roc_auc_score(y, score), abs=5e-3)
    precise = section(page, "Precision and recall").figure.panels[0].series[0]
    precision, recall, _ = sk.precision_recall_curve(y, score)
    assert {(round(a, 5), round(b, 5)) for a, b in zip(precise.x, precise.y, strict=True)} <= {
        (round(a, 5), round(b, 5)) for a, b in zip(recall.tolist(), precision.tolist(), strict=True)
    }
    shown = section(page, "Reliability").figure.panels[0].series[1]
    bins = (score * 10).astype(int)
    assert list(shown.y) == pytest.approx([y[bins == i].mean() for i in np.unique(bins)], abs=1e-6)
    (threshold,) = [part for part in page.sections if isinstance(part, Threshold)]
    (steps,) = json.loads(threshold.json)["classes"]
    assert (steps["name"], steps["positives"], steps["items"]) == ("bad", int(y.sum()), y.size)
    for at, hits, alarms in list(zip(steps["at"], steps["hits"], steps["alarms"], strict=True))[1::40]:
        above = score >= np.float32(at)
        assert (hits, alarms) == (int((above & y).sum()), int((above & ~y).sum()))
    assert steps["hits"][-1] + steps["alarms"][-1] == y.size


def test_repeated_splits_are_averaged_model_and_floors(run):
    values = {"test_metric": [0.7, 0.8, 0.9], "floors": {"degree-knn": [0.5, 0.5, 0.5], "majority": [0.1, None, 0.2]}}
    run.metrics["cv"] = {"splits": 3, "strict": values}
    rows = section(run_page(run), "Over 3 splits").numbers.rows
    assert rows[0][:4] == ["DEMO-Net", *(pytest.approx(value, abs=1e-3) for value in (0.8, 0.5516, 1.0))]
    assert rows[1:] == [["degree only", 0.5, 0.5, 0.5, pytest.approx(0.3)]]


def test_right_and_wrong_are_counted_on_the_test_part_alone(run):
    page = run_page(run)
    figure = section(page, "Confusion")
    assert figure.numbers.rows == [["class 0", 3, 1, 0], ["class 1", 0, 2, 1], ["class 2", 0, 0, 3]]
    assert all(fact in figure.caption for fact in ("“class 0”", "“class 1”", "1 of 4"))
    test = run.part == 2
    precision, recall, f1, support = sk.precision_recall_fscore_support(run.y[test], run.prediction[test])
    rows = section(page, "Class by class").rows
    np.testing.assert_allclose([row[1:] for row in rows], np.stack([support, recall, precision, f1], 1))
    rows = section(page, "Accuracy by degree").numbers.rows
    assert (sum(row[1] for row in rows), sum(row[2] for row in rows)) == (10, 8)


def test_lists_of_what_is_wrong_and_what_is_doubtful(run):
    page = run_page(run)
    wrong = lists(page)["Wrong in the test: check their labels"]
    assert wrong[:2] == [run.ids[0], run.ids[4]], "the lowest probability of the true class first"
    doubtful = lists(page)["Least certain: labels for these help most"]
    assert doubtful[0] == run.ids[4], "item 10 is less sure still, but was trained on"
    certain = lists(page)["Most certain first"]
    assert len(certain) == 10
    assert set(lists(page)) >= {f"Most probably class {i}" for i in range(3)}


def test_a_large_run_keeps_the_first_items_of_each_list_and_their_edges(make_run, monkeypatch):
    monkeypatch.setattr(run_items, "MOST_ITEMS", 50)
    random = np.random.default_rng(0)
    run = make_run(90, 2, edges=random.integers(0, 90, (2, 200)))
    items = section(run_page(run), "The list")
    assert len(items.ids) <= 50
    assert f"{len(items.ids)} of 90 nodes" in items.caption
    whole = lists(run_page(make_run(40, 2)))
    assert len(next(iter(whole.values()))) == (np.arange(40) % 3 == 2).sum()
    first = items.lists[0]
    test = np.flatnonzero(run.part == 2)
    best = test[np.argsort(-run.outputs[test, int(first.by[1:])], kind="stable")]
    kept = [items.ids[row] for row in items.order(first)]
    assert kept[:10] == [run.ids[i] for i in best[:10]]
    real = {frozenset((run.ids[a], run.ids[b])) for a, b in run.edges.T.tolist()}
    assert {frozenset((items.ids[a], items.ids[b])) for a, b in items.edges.T.tolist()} <= real


def test_reasons_and_importance_stand_where_they_are_known(rare):
    importance = [
        {"name": "age", "value": 0.01, "interval": [-0.01, 0.03]},
        {"name": "the degree", "value": 0.2, "interval": [0.1, 0.3]},
    ]
    run = rare()
    page = run_page(run)
    assert "What matters" not in [part.title for part in page.sections]
    first = list(run.ids).index(lists(page)["Most probably bad"][0])
    run.metrics.update(importance=importance, reasons={str(first): ["3 of 4 neighbours are <b>bad</b>", "age 7"]})
    page = run_page(run)
    bars, _ = section(page, "What matters").figure.panels[0].series
    assert list(bars.x) == [0.2, 0.01]
    items = section(page, "The list")
    assert items.shown[0][-1].text == "3 of 4 neighbours are <b>bad</b>; age 7"
    assert "<b>bad</b>" not in render(page)


def test_tasks_name_the_degrees_that_share_them(make_run):
    degrees, counts = np.array([0, 1, 2, 3, 9]), np.array([4, 3, 2, 1, 1])
    run = make_run(degrees=degrees, degree_counts=counts, degree_task=np.array([7, 1, 1, 2, 2]))
    page = run_page(run)
    assert section(page, "Tasks").rows == [["0", 7, 4], ["1–2", 1, 5], ["3, 9", 2, 2]]
    assert list(section(page, "Degrees").figure.panels[0].series[0].x) == [0.5, 1, 2, 3, 9]


def test_settings_are_all_there_and_nothing_stands_twice(run):
    page = run_page(run)
    (table,) = folded(page, "Settings")
    assert ["files.edges", "edges.csv"] in table.rows
    assert ["split.train", "10"] in table.rows
    titles = [part.title for part in page.sections if part.title]
    assert len(titles) == len(set(titles))


def test_graphs_are_told_by_their_nodes_and_edges(make_run):
    page = run_page(make_run(200, kind="graphs"))
    assert section(page, "Accuracy by number of nodes")
    assert [column.name for column in section(page, "The list").head][-2:] == ["nodes", "edges"]
    assert "test graphs" in page.sections[0].text
    assert "Around a node" not in [part.title for part in page.sections]


FLAT, NONE_KNOWN = np.zeros((30, 2), dtype=np.float32), np.zeros(30, dtype=np.int64)
GONE = {"train_loss": [math.nan] * 3, "val_loss": [math.nan] * 3, "val_metric": [None] * 3, "best_epoch": 0}
ALONE = {"degree": NONE_KNOWN, "degrees": NONE_KNOWN[:1], "degree_counts": NONE_KNOWN[:1] + 30}
HARD = {
    "one class in test": {"y": NONE_KNOWN},
    "one class": {"classes": 1},
    "empty test part": {"part": np.zeros(30, dtype=np.int8)},
    "no labels": {"y": NONE_KNOWN - 1, "part": np.full(30, -1, dtype=np.int8)},
    "no history": {"history": {}},
    "no edges": {"edges": np.zeros((2, 0), dtype=np.int64), "place": FLAT, "degree_task": NONE_KNOWN[:1], **ALONE},
    "history is not a number": {"history": GONE},
    "no place": {"place": FLAT * math.nan},
    "one node": {"count": 1},
}


@pytest.mark.parametrize("name", HARD)
def test_odd_runs_have_a_page(make_run, name):
    page = run_page(make_run(**{"count": 30} | HARD[name]))
    assert ">nan" not in render(page).split("<main", 1)[1].lower()
    assert all(part.caption for part in page.sections if isinstance(part, Figure)), "a sentence under every plot"
    assert all(part.caption and part.rows for part in page.sections if isinstance(part, Table))


@pytest.mark.parametrize("make", ["make_run", "make_numbers", "make_labels"])
def test_without_a_test_part_the_page_claims_nothing(request, make):
    make = request.getfixturevalue(make)
    run = make(part=np.zeros(len(make().ids), np.int8))
    run.metrics["labels"] = None
    page = run_page(run)
    assert render(page)
    assert "unknown" in section(page, "How sure is it?").text
    assert facts(page) == {name: value for name, value in facts(page).items() if name.endswith(", test")}
    assert {"Confusion", "Accuracy by degree", "ROC"}.isdisjoint(part.title for part in page.sections)


def test_two_hundred_thousand_nodes_fit_into_three_megabytes(make_run, tmp_path):
    random = np.random.default_rng(0)
    run = make_run(200_000, 2, edges=random.integers(0, 200_000, (2, 20_000)))
    write(run_page(run), tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 3_000_000


def test_a_regression_says_how_far_off_it_is(make_numbers):
    run = make_numbers()
    groups = [{"values": [1.0, 2.5], "count": 3, "quartiles": [-1.0, 0.5, 1.0]}]
    run.metrics["residuals"] = [{"target": "target 0", "column": "<b>", "follows": 0.2, "groups": groups}]
    page = run_page(run)
    assert facts(page)["test RMSE"] == run.metrics["test_metric"]
    assert facts(page)["best simple baseline: majority"] == 0.3, "the smallest error"
    assert "does not beat it" in section(page, "How sure is it?").text
    table = section(page, "Compared with simple baselines").numbers
    assert [row[0] for row in table.rows] == ["DEMO-Net", "majority", "degree only"]
    assert table.columns[1].best == "min"
    known = np.flatnonzero((run.part == 2) & ~np.isnan(run.y[:, 0]))
    errors = np.abs(run.y[known, 0] - run.outputs[known, 0])
    assert f"{np.median(errors):.3f}" in page.sections[0].text
    assert len(section(page, "Predicted against true").figure.panels[0].series[1].x) == known.size
    assert lists(page)["Largest error in the test"][0] == run.ids[known[errors.argmax()]]
    waiting = np.flatnonzero(run.part == -1)
    assert not waiting.size
    test = np.flatnonzero(run.part == 2)
    assert lists(page)["Largest prediction"][0] == run.ids[test[run.outputs[test, 0].argmax()]]
    rows = section(page, "Residuals by degree").numbers.rows
    assert sum(row[1] for row in rows) == known.size
    assert section(page, "Residuals by <b>").numbers.rows == [["1–2.5", 3, -1.0, 0.5, 1.0]]


def test_a_regression_of_several_targets_has_figures_and_lists_of_each(make_numbers):
    page = run_page(make_numbers(columns=2, kind="graphs"))
    titles = [part.title for part in page.sections]
    for name in ("target 0", "target 1"):
        assert {f"Predicted against true, {name}", f"Residuals by number of nodes, {name}"} <= set(titles)
        assert f"Largest prediction of {name}" in lists(page)
    assert render(run_page(make_numbers(columns=9)))


def test_every_label_has_a_list_and_a_row(make_labels):
    run = make_labels()
    page = run_page(run)
    assert section(page, "Label by label").rows[1] == ["label 1", 20, 9, 0.8, 0.7, 0.75, None, 0.5]
    test = np.flatnonzero(run.part == 2)
    assert lists(page)["Most probably label 1"][0] == run.ids[test[run.outputs[test, 1].argmax()]]
    rows = section(page, "Accuracy by degree").numbers.rows
    known = ~np.isnan(run.y[test])
    assert sum(row[1] for row in rows) == known.sum()
    assert sum(row[2] for row in rows) == ((run.prediction == run.y)[test] & known).sum()
    wrong = ((run.prediction != run.y) & ~np.isnan(run.y)).sum(1)
    assert wrong[list(run.ids).index(lists(page)["Most wrong labels in the test"][0])] == wrong[test].max()


def test_what_labels_are_predicted_from_and_how_they_were_calibrated(make_labels):
    run = make_labels()
    size = len(run.class_names)
    moved = {"method": "bias", "temperature": 1.5, "losses": {"none": 0.6, "temperature": 0.5, "bias": 0.4}}
    run.metrics["calibration"] = {"labels": [moved, *[{"method": "none", "losses": {}}] * (size - 1)]}
    run.metrics["decision"] = {"thresholds": np.linspace(0.25, 0.75, size).tolist()}
    first, second = RunFacts(run).decisions
    assert "0.250 to 0.750" in first
    assert all(told in second for told in (f"1 of {size}", "1.50", "0.400", "0.600"))
    assert section(run_page(run), "Label by label").rows[0][-1] == 0.25


@pytest.mark.parametrize("rare", [0, 1])
def test_thresholds_and_odds_are_those_of_the_rarer_class(make_run, rare):
    run = make_run(classes=2, y=np.where(np.arange(60) % 5 == 0, rare, 1 - rare))
    run.metrics["decision"] = {"thresholds": [0.2, 0.8], "factors": [1.0, 0.25]}
    losses = {"none": 0.6, "temperature": 0.5, "bias": 0.4}
    run.metrics["calibration"] = {"method": "bias", "temperature": 1.5, "bias": math.log(4), "losses": losses}
    first, second = RunFacts(run).decisions[-2:]
    name = f"“{run.class_names[rare]}”"
    assert f"{name} is predicted from a probability of {(0.2, 0.8)[rare]:.3f}" in first
    assert f"{(0.25, 4)[rare]:.2f} times the odds of {name}" in second


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
    "loss": {"degree": 0.5, "none": 0.7, "shuffled": 0.8},
    "gain": {arm: {"loss": [-0.2, -0.3, -0.1]} for arm in ("none", "shuffled")},
    **{"items": 40, "regression": False, "degrees": [1, 2, 9], "verdict": "Yes, it does.", "weight": 0.7},
    "sharing": [[1.0, 0.9, 0.4], [0.9, 1.0, 0.5], [0.4, 0.5, 1.0]],
}
MATTER = "Does the degree matter here?"


@pytest.fixture
def ensemble_page(make_run):
    """The page of a run of ``auto``, as ``make_run`` makes them."""

    def make(**changes):
        run = make_run(degree_task=None, history={})
        tested = {"test_metric": 0.7, "test_metric_interval": [0.5, 0.8], "floors": {"majority": 0.25}}
        facts = {
            **{"model": "auto", "effort": "quick", "rule": "refit", "strict": tested, "refit": tested},
            **{"candidates": CANDIDATES, "judged": {"items": 40, "by": "validation"}, "gain": {"accuracy": GAIN}},
            "degree_effect": EFFECT,
        }
        run.metrics.update(facts | changes)
        return run_page(run)

    return make


def test_candidates_and_rules_stand_once_and_folded(ensemble_page):
    page = ensemble_page()
    text, table = folded(page, "Candidates")
    assert [row[0] for row in table.rows] == ["machine", "<b>forest</b>", "network"]
    assert table.rows[0][1:] == [0.8, "0.700–0.900", 0.4, 0.7, 1.5, ""]
    assert "no time" in table.rows[2][-1]
    assert all(fact in text.text for fact in ("0.820", "machine", "0.020 better", "-0.010 to +0.050", "2 of 3"))
    rules, scores = folded(page, "Rules: what was fitted on what, and use elsewhere")
    assert "Refit" in rules.text
    assert scores.rows[1] == ["majority", *(["0.250 (0.112 to 0.469)"] * 2)]
    html = render(page)
    assert "<b>forest</b>" not in html
    assert "Refit" not in html[: html.index('<details class="fold"')]


def test_whether_the_degree_matters_is_told_by_the_loss_that_decided(ensemble_page):
    text, gains, kernel = folded(ensemble_page(), MATTER)
    assert EFFECT["verdict"] in text.text
    assert [row[:2] for row in gains.numbers.rows] == [
        ["with the term", 0.5],
        ["without the term", 0.7],
        ["with shuffled degrees", 0.8],
    ]
    assert gains.numbers.rows[1][2:] == [0.2, 0.1, 0.3]
    assert [list(curve.y) for curve in kernel.figure.panels[0].series] == EFFECT["sharing"]


def test_a_member_without_a_weight_has_no_section_and_a_skipped_diagnosis_is_said(ensemble_page):
    assert folded(ensemble_page(degree_effect=EFFECT | {"weight": 0.0}), MATTER) == []
    (text,) = folded(ensemble_page(degree_effect={"skipped": "it would take an hour"}), MATTER)
    assert "it would take an hour" in text.text


def many(make_run, size):
    """Two items a class; class 7 has fifty, and 900 is always taken for 901."""
    y = np.concatenate([np.repeat(np.arange(size), 2), np.full(48, 7)])
    taken, count = np.where(y == 900, 901, y), len(y)
    outputs = np.zeros((count, size), np.float32)
    outputs[np.arange(count), taken] = 1
    changes = {"y": y, "outputs": outputs, "part": np.full(count, 2, np.int8), "ids": [f"n{i}" for i in range(count)]}
    changes |= {"class_names": [f"class {i}" for i in range(size)], "degree": np.full(count, 3)}
    return make_run(**changes, place=np.zeros((count, 2), np.float32))


def test_of_many_classes_the_largest_and_the_most_confused_are_shown(make_run):
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
    assert len(render(run_page(run))) < 3_000_000
    (items,) = [part for part in run_page(run).sections if isinstance(part, Items)]
    assert len(items.lists) <= run_items.MOST_LISTS + 3
