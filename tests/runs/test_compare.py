"""The comparison of methods on one's own files: the leaderboard, what is kept, what fails, and the command."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn import metrics as sk
from tests.runs.files import fit, write_classes, write_problem
from typer.testing import CliRunner

from demonet import DemonetError, DemonetWarning, cli, methods
from demonet.atomic import locked, part_of
from demonet.cli.console import print_table
from demonet.data.splits import thirds
from demonet.data.synthetic import flip_graph
from demonet.ensemble import Ensemble
from demonet.methods.cost import Size
from demonet.methods.simple import DegreeKNN
from demonet.runs import Reading, RunProgress, Settings, compare
from demonet.runs.compare import Comparing, compare_run
from demonet.runs.statistics import holm, paired
from demonet.sealed import write_sealed
from demonet.train.metrics import METRICS, metrics_for
from demonet.workers import attempt

FEW = ("majority", "degree-knn", "structural-lr")


class Here:
    """An engine that works in this process, one cell at a time, and remembers what it was given."""

    def __init__(self, slots: int = 1) -> None:
        self.slots, self.given, self.tasks, self.closed = slots, [], [], False

    def start(self, task):
        self.given.append((task.method, task.number))
        self.tasks.append(task)

    def wait(self, seconds):
        tasks, self.tasks = self.tasks, []
        return [attempt(compare.perform, task) for task in tasks]

    def close(self):
        self.closed = True


def run(*names, engine=None, features=None, **options):
    settings = {"methods": names or FEW, "splits": 3} | options.pop("settings", {})
    engine = engine or Here()
    board = compare_run(
        *("edges.csv", "labels.csv", features),
        **{"out": "out", "comparing": Comparing(**settings), "engine": lambda jobs: engine} | options,
    )
    return board, engine.given


def test_the_leaderboard_is_sorted_and_compares_each_with_the_best(problem):
    board, given = run()
    assert len(given) == len(FEW) * 3
    assert [row.status for row in board.rows] == ["compared"] * 3
    means = [row.mean for row in board.rows]
    assert means == sorted(means, reverse=True)
    best, *others = board.rows
    assert board.best is best
    assert best.difference is None
    gaps = [paired(list(row.values.values()), list(best.values.values()), 12 / 48) for row in others]
    for row, gap, p in zip(others, gaps, holm([gap.p for gap in gaps]), strict=True):
        assert row.difference == pytest.approx(gap.mean)
        assert row.difference_low == pytest.approx(max(-1.0, gap.low))
        assert row.difference_high == pytest.approx(min(1.0, gap.high))
        assert row.p == pytest.approx(p)
    for row in board.rows:
        assert 0 <= row.low <= row.mean + 1e-9 <= row.high + 2e-9 <= 1 + 3e-9
        assert row.seconds >= 0
        assert row.peak_memory_mb > 10


def test_files_are_written_and_agree_and_the_splits_are_the_same_for_all_methods(problem):
    board, _ = run(page=lambda board, path: path.write_text(str(len(board.rows))))
    cells = [json.loads(path.read_text()) for path in sorted(Path("out/cells").iterdir())]
    hashes = {number: {cell["split"] for cell in cells if cell["number"] == number} for number in range(3)}
    assert all(len(found) == 1 for found in hashes.values())
    assert len(set.union(*hashes.values())) == 3
    with open("out/leaderboard.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["method"] for row in rows] == [row.method for row in board.rows]
    assert float(rows[0]["mean"]) == pytest.approx(board.rows[0].mean, rel=1e-5)
    assert float(rows[1]["split 2"]) == pytest.approx(board.rows[1].values[2], rel=1e-5)
    for row in rows:
        own = [cell["metrics"] for cell in cells if cell["method"] == row["method"]]
        for name in metrics_for("classify"):
            mean = np.mean([metrics[name] for metrics in own])
            assert float(row[name]) == pytest.approx(mean, rel=1e-5)
    kept = json.loads(Path("out/leaderboard.json").read_text())
    assert [row["method"] for row in kept["rows"]] == [row.method for row in board.rows]
    assert Path("out/report.html").read_text() == "3"
    assert not list(Path("out").rglob("*.part"))


def test_a_second_call_computes_only_what_is_missing(problem):
    first, _ = run()
    again, given = run()
    assert given == []
    assert [row.values for row in again.rows] == [row.values for row in first.rows]
    _, given = run(settings={"splits": 4})
    assert given == [(name, 3) for name in given_order(FEW)]
    _, given = run(*FEW, "degree-svm")
    assert given == [("degree-svm", number) for number in range(3)]


def test_a_damaged_cell_is_computed_again(problem):
    first, _ = run("majority")
    path = Path("out/cells/majority-001.json")
    raw = path.read_bytes()
    digit = raw.index(b'"accuracy": 0.') + 14
    changed = raw[:digit] + bytes([raw[digit] ^ 1]) + raw[digit + 1 :]
    for content in (b"{", b"[" * 99_999, changed):
        path.write_bytes(content)
        with pytest.warns(DemonetWarning, match=r"majority-001\.json"):
            again, given = run("majority")
        assert given == [("majority", 1)]
        assert [row.values for row in again.rows] == [row.values for row in first.rows]


def test_a_cell_without_a_metric_of_today_is_computed_again(problem, monkeypatch):
    with monkeypatch.context() as before:
        before.setattr(compare, "metrics_for", lambda task: ["accuracy"])
        run("majority")
    _, given = run("majority")
    assert len(given) == 3
    assert "auc" in json.loads(Path("out/cells/majority-000.json").read_text())["metrics"]


def test_a_second_comparison_in_a_folder_is_refused_while_the_first_is_at_work(problem):
    run("majority")
    whole = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    with locked(Path("out/.lock")) as ours:
        assert ours
        for overwrite in (False, True):
            with pytest.raises(DemonetError, match="another process"):
                run("majority", "degree-knn", overwrite=overwrite)
    assert {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()} == whole
    assert run("majority", "degree-knn", overwrite=True)[0].rows


@pytest.mark.parametrize("earlier", [7, ["a"], [1, 2], None])
def test_a_list_of_earlier_files_that_is_none_is_refused(problem, earlier):
    run("majority")
    about = {
        name: value for name, value in json.loads(Path("out/compare.json").read_text()).items() if name != "sha256"
    }
    write_sealed(Path("out/compare.json"), about | {"earlier": earlier})
    with pytest.raises(DemonetError, match=r"compare\.json"):
        run("majority")


def test_a_kill_at_the_first_file_blocks_nothing(problem):
    Path("out").mkdir()
    Path("out", part_of("compare.json")).touch()
    board, _ = run("majority")
    assert board.best.method == "majority"
    assert not list(Path("out").rglob("*.part"))


def test_a_link_that_is_called_like_a_temporary_file_is_the_users(problem):
    run("majority")
    for name in (".compare.json.part", ".leaderboard.json.part"):
        Path("out", name).symlink_to("nowhere")
    assert len(run("majority", settings={"seed": 5}, overwrite=True)[1]) == 3
    assert len([path for path in Path("out").iterdir() if path.is_symlink()]) == 2


def given_order(names):
    return sorted(names, key=lambda name: methods.get(name).cost.fixed)


def test_other_files_or_settings_are_another_comparison(problem, refuses):
    run("majority")
    refuses(lambda: run("majority", settings={"seed": 5}), "out", "overwrite")
    _, given = run("majority", settings={"seed": 5}, overwrite=True)
    assert len(given) == 3
    assert run("majority", settings={"seed": 5})[1] == []
    lines = Path("labels.csv").read_text().splitlines()
    Path("labels.csv").write_text("\n".join([*lines[:-1], lines[-1].rsplit(",", 1)[0] + ",ring", ""]))
    refuses(lambda: run("majority", settings={"seed": 5}), "out")


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_of_something_else_is_left_alone(problem, refuses, overwrite):
    Path("out").mkdir()
    Path("out/thesis.txt").write_text("mine")
    refuses(lambda: run(overwrite=overwrite), "out")
    assert [path.name for path in Path("out").iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("name", ["cells/mine.json", "leaderboard.csv", "report.html"])
def test_files_that_no_comparison_has_written_are_neither_replaced_nor_removed(problem, refuses, name):
    run("majority")
    Path("out", name).write_text("mine")
    refuses(lambda: run("majority", settings={"seed": 5}, overwrite=True), f"out/{name}")
    assert Path("out", name).read_text() == "mine"


@pytest.mark.parametrize("name", ["cells", "cells/majority-000.json", "compare.json", "leaderboard.json"])
def test_links_in_a_comparison_are_not_followed(problem, refuses, name):
    run("majority")
    Path("out", name).rename("target")
    before = sorted(path.read_bytes() for path in (Path("target"), *Path("target").glob("*")) if path.is_file())
    Path("out", name).symlink_to(Path("target").absolute())
    refuses(lambda: run("majority", overwrite=True), f"out/{name}")
    after = sorted(path.read_bytes() for path in (Path("target"), *Path("target").glob("*")) if path.is_file())
    assert before == after


def test_a_comparison_that_cannot_be_replaced_stays_as_it_was(problem, monkeypatch):
    run("majority")
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    with monkeypatch.context() as patch:
        patch.setattr(compare, "write_sealed", lambda *given: (_ for _ in ()).throw(OSError(28, "No space left")))
        with pytest.raises(OSError, match="No space"):
            run("majority", settings={"seed": 5}, overwrite=True)
    assert {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()} == before
    assert run("majority")[1] == []


@pytest.mark.parametrize("after", ["write_sealed", "remove_listed"])
def test_a_kill_while_a_comparison_is_replaced_leaves_nothing_of_it(problem, monkeypatch, after):
    run("majority", "degree-knn", page=lambda board, path: path.write_text("page"))
    step = getattr(compare, after)
    with monkeypatch.context() as patch:
        patch.setattr(compare, after, lambda *given: (step(*given), exec("raise KeyboardInterrupt")))
        with pytest.raises(KeyboardInterrupt):
            run("majority", settings={"seed": 5}, overwrite=True)
    for count in (3, 0):
        assert len(run("majority", settings={"seed": 5})[1]) == count
        names = {path.name for path in Path("out").rglob("*") if path.is_file()}
        made = {*compare.OUTPUTS[:2], compare.ABOUT, compare.LOCK}
        assert names == made | {f"majority-00{number}.json" for number in range(3)}


@pytest.mark.parametrize("step", ["sha256_of", "remove_listed"])
def test_a_kill_while_results_are_written_blocks_nothing(problem, monkeypatch, step):
    run("majority", settings={"splits": 2})

    class Killed(BaseException):
        pass

    def die(*given):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(compare, step, die)
        with pytest.raises(Killed):
            run("majority", settings={"splits": 2})
    assert run("majority", settings={"splits": 2})[0].best.method == "majority"
    assert not list(Path("out").rglob("*.part"))


def test_a_kill_while_an_earlier_leaderboard_is_replaced_blocks_nothing(problem, monkeypatch):
    run("majority", settings={"splits": 2})
    removed, calls = compare.remove_listed, []

    def die(*given):
        calls.append(given)
        if len(calls) == 2:  # the new checksums are listed, and no file has its place yet
            raise KeyboardInterrupt
        removed(*given)

    with monkeypatch.context() as patch:
        patch.setattr(compare, "remove_listed", die)
        with pytest.raises(KeyboardInterrupt):
            run("majority", settings={"splits": 3})
    assert run("majority", settings={"splits": 4})[0].about["splits"] == 4
    assert not list(Path("out").rglob("*.part"))


def test_files_that_change_meanwhile_fail_the_cell(problem):
    class Meddling(Here):
        def wait(self, seconds):
            compare._plan.cache_clear()
            with open("labels.csv", "a") as file:
                file.write("\n")
            return super().wait(seconds)

    board, _ = run("majority", engine=Meddling())
    assert board.rows[0].status == "failed"
    assert "changed" in board.rows[0].reason


def test_a_method_that_fails_is_a_row_with_its_reason(problem, monkeypatch):
    fit = DegreeKNN.fit

    def failing(self, data, split, seed, **options):
        if seed == 1:
            raise DemonetError("no neighbours today", hint="try again")
        return fit(self, data, split, seed, **options)

    monkeypatch.setattr(DegreeKNN, "fit", failing)
    seen = []

    class Listening(RunProgress):
        def step(self, what):
            seen.append(what)

        def cell(self, method, split, done, total, result):
            seen.append((method, split, done, total))

    board, given = run(progress=Listening())
    assert seen[0] == "comparing"  # before the first cell, which may take long
    rows = {row.method: row for row in board.rows}
    assert rows["degree-knn"].status == "incomplete"
    assert "no neighbours today" in rows["degree-knn"].reason
    assert list(rows["degree-knn"].values) == [0]
    assert ("degree-knn", 2) not in given  # not tried again
    assert {rows["majority"].status, rows["structural-lr"].status} == {"compared"}
    assert seen[-1][2:] == (9, 9)
    monkeypatch.undo()
    monkeypatch.chdir(problem)
    board, given = run()  # a failure is not kept
    assert given == [("degree-knn", 1), ("degree-knn", 2)]
    assert {row.status for row in board.rows} == {"compared"}


def test_when_time_is_up_the_rest_is_said_to_be_missing(problem, monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(compare, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    engine = Here()
    board, given = run(engine=engine, settings={"time_limit": 8.0})
    assert engine.closed
    assert 0 < len(given) < 9
    finished = [len(row.values) for row in board.rows]
    assert finished == sorted(finished, reverse=True)
    assert all("time limit" in row.reason for row in board.rows if len(row.values) < 3)
    assert board.best is board.rows[0]
    assert Path("out/leaderboard.csv").exists()


def test_the_time_limit_counts_from_the_beginning(problem, monkeypatch):
    now, plan = [0.0], compare.make_plan

    def reading(*given):
        now[0] = max(now[0], 50.0)
        return plan(*given)

    class Slow(Here):
        def wait(self, seconds):
            now[0] += 6.0
            return super().wait(seconds)

    monkeypatch.setattr(compare, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(compare, "make_plan", reading)
    board, given = run(engine=Slow(), settings={"time_limit": 60.0})
    assert len(given) == 2
    assert [row.reason for row in board.rows if not row.values] == ["not finished within the time limit"]


def test_what_fit_fits_comes_first_on_every_split(problem):
    class Idle(Here):
        def wait(self, seconds):
            return [attempt(lambda task: {}["nothing"], self.tasks.pop())]

    _, given = run("majority", compare.RECOMMENDED, "structural-rf", engine=Idle())
    assert [name for name, _ in given] == [compare.RECOMMENDED, "majority", "structural-rf"]


def test_a_narrow_terminal_folds_names_and_cuts_no_number(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    print_table("scores", ["method", "mean", "interval"], [["a-method-with-a-very-long-name", "0.123", "0.10 to 0.20"]])
    shown = capsys.readouterr().out
    assert "0.123" in shown
    assert "0.10 to 0.20" in shown
    assert "…" not in shown


def test_expensive_methods_are_left_out_with_a_row_unless_asked_for(problem, monkeypatch):
    monkeypatch.setattr(compare, "methods_for", lambda inputs: ["majority", "structural-rf"])
    monkeypatch.setattr(compare, "MOST_SECONDS", 1.0)
    board, given = run(settings={"methods": None, "splits": 2})
    assert {name for name, _ in given} == {"majority"}
    row = board.rows[-1]
    assert (row.method, row.status) == ("structural-rf", "left out")
    assert row.reason
    for settings in ({"methods": None, "everything": True}, {"methods": ("structural-rf",)}):
        assert compare._left_out(compare._plan.__wrapped__(asked()), Comparing(**settings)) == {}


def asked():
    settings = {"splits": 2, "seed": 0, "val": 0.2, "test": 0.2, "effort": "quick", "metric": None, "positive": None}
    reading = vars(Reading())
    return json.dumps({"files": ["edges.csv", "labels.csv", None], "reading": reading, "settings": settings})


def test_a_small_graph_leaves_out_nothing_and_a_large_one_the_slow(problem):
    inputs = compare._plan.__wrapped__(asked()).inputs
    names = compare.methods_for(inputs)
    small, large = Size.of(inputs.graphs, 1000), Size(100.0, 2000.0, 0.001, 16, 100.0, 140)
    assert [name for name in names if methods.get(name).cost(small) > compare.MOST_SECONDS] == []
    slow = {name for name in names if methods.get(name).cost(large) > compare.MOST_SECONDS}
    assert {"struc2vec", "graphwave", "dcnn", "gat", "pna"} <= slow
    assert not {"majority", "degree-svm", "structural-rf", "gcn"} & slow


def test_nodes_and_graphs_are_compared(problem, monkeypatch):
    monkeypatch.setattr("demonet.runs.plan.epoch_limit", lambda *_: 2)
    nodes = ("demonet-kernel", "demonet-default", "demonet-hash", "attribute-lr", "gcn", "rolx")
    graphs = ("demonet-auto", "demonet-m-hash", "wl", "majority")
    for kind, names, files in (
        ("nodes", nodes, ("edges.csv", "labels.csv", "features.csv")),
        ("graphs", graphs, ("graphs.csv", "kinds.csv")),
    ):
        comparing = Comparing(methods=names, splits=2)
        board = compare_run(*files, out=kind, comparing=comparing, engine=lambda jobs: Here())
        assert {row.method: row.status for row in board.rows} == dict.fromkeys(names, "compared")
        assert board.about["kind"] == kind


def test_methods_that_do_not_apply_are_refused(problem, refuses):
    refuses(lambda: run("wl"), "wl")
    refuses(lambda: run("attribute-lr"), "attribute-lr")
    refuses(lambda: run("gnc"), "gnc")
    assert not Path("out").exists()
    with_attributes = compare._plan.__wrapped__(asked().replace("null]", '"features.csv"]')).inputs
    assert "attribute-lr" in compare.methods_for(with_attributes)


@pytest.mark.parametrize(
    ("labels", "names", "metric", "bad"),
    [
        ("scores.csv", ("degree-knn", "boosted-trees", "demonet-kernel"), "rmse", "accuracy"),
        ("tags.csv", ("degree-knn", "boosted-trees"), "average-precision", "rmse"),
    ],
)
def test_numbers_and_several_labels_are_compared(problem, refuses, labels, names, metric, bad):
    def compared(**settings):
        comparing, engine = Comparing(methods=names, splits=2, **settings), Here()
        return compare_run("edges.csv", labels, out="out", comparing=comparing, engine=lambda jobs: engine)

    board = compared()
    assert board.about["metric"] == metric
    assert {row.status for row in board.rows} == {"compared"}
    means = [row.mean for row in board.rows]
    assert means == sorted(means, reverse=board.about["larger_is_better"])
    assert bad in str(refuses(lambda: compared(metric=bad)))
    only = Comparing(methods=("gcn",))
    assert "gcn" in str(refuses(lambda: compare_run("edges.csv", labels, out="o", comparing=only)))


def test_a_comparison_by_another_metric_is_another_one(problem, refuses):
    accuracy, _ = run("majority")
    refuses(lambda: run("majority", settings={"metric": "balanced"}), "out", "metric", "overwrite")
    balanced, given = run("majority", settings={"metric": "balanced"}, overwrite=True)
    assert len(given) == 3
    assert balanced.rows[0].mean == pytest.approx(1 / 3)  # one of three classes is always right
    assert accuracy.rows[0].mean > 0.4


def test_a_comparison_of_a_version_that_did_not_choose_by_the_metric_is_not_mixed_in(problem, monkeypatch, refuses):
    about = compare._about

    def before(*given):
        found = about(*given)
        return found | {"settings": {name: found["settings"][name] for name in ("seed", "val", "test", "effort")}}

    with monkeypatch.context() as patch:
        patch.setattr(compare, "_about", before)
        run("majority")
    refuses(lambda: run("majority"), "out", "overwrite")
    assert len(run("majority", overwrite=True)[1]) == 3


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("names", "asked", "metric"),
    [
        (["rare", "common"], {}, "average-precision"),
        (["rare", "common"], {"metric": "average-precision", "positive": "common"}, "average-precision"),
        (["rare", "common"], {"metric": "balanced"}, "balanced"),
        (["a", "b", "c"], {}, "macro-f1"),
        (["a", "b", "c"], {"metric": "accuracy"}, "accuracy"),
    ],
)
def test_what_is_compared_is_what_fit_fits(problem, monkeypatch, names, asked, metric):
    """The same split, model and baselines with the same choices and decisions, so the same test metric."""
    write_problem(problem, motifs=40)
    write_classes(*names, shares=[*[0.05] * (len(names) - 1), 1.05 - 0.05 * len(names)])
    chosen, fit_ensemble = [], Ensemble.fit.__func__

    def fitting(cls, *given, **options):
        chosen.append((options.get("metric"), options.get("positive")))
        return fit_ensemble(cls, *given, **options)

    monkeypatch.setattr(Ensemble, "fit", classmethod(fitting))
    same = {"reading": Reading(directed=False)}
    fitted = fit(settings=Settings(model="auto", effort="quick", **asked), **same).metrics
    board, _ = run("demonet-auto", "majority", "degree-knn", settings={"splits": 2, **asked}, **same)
    assert board.about["metric"] == fitted["metric"] == metric
    assert chosen[0] == chosen[1]
    assert chosen[0][0] == metric
    found = {row.method: row.values[0] for row in board.rows}
    expected = {"demonet-auto": fitted["strict"]["test_metric"], **fitted["strict"]["floors"]}
    assert found == pytest.approx(expected, abs=1e-6)


def test_metrics_are_those_of_the_test_part_by_scikit_learn():
    data = flip_graph(0, num_nodes=200)
    split = thirds(data.y, 0, stratified=True)
    fitted = methods.get("structural-lr")().fit(data, split)
    metrics = {name: METRICS[name].of_class(0, 0) for name in metrics_for("classify")}
    found = compare.measured(fitted, data.y, split, METRICS["accuracy"], metrics)
    y, probability = data.y[split.test].numpy(), fitted.predict_proba()[split.test].numpy()
    assert found["auc"] == pytest.approx(sk.roc_auc_score(y, probability[:, 1]))
    assert found["average-precision"] == pytest.approx(sk.average_precision_score(y == 0, probability[:, 0]))
    assert found["accuracy"] == fitted.score(split.test, data.y)


def test_predictions_of_all_metrics_are_those_made_for_the_one_that_ranks():
    data = flip_graph(0, num_nodes=200)
    split = thirds(data.y, 0, stratified=True)
    fitted = methods.get("structural-lr")().fit(data, split)
    probability = fitted.predict_proba() * torch.tensor([1.0, 0.2])
    fitted._predicted = fitted.predict(), probability / probability.sum(1, keepdim=True)
    balanced, y = METRICS["balanced"], data.y[split.test].numpy()
    factors = np.array(balanced.choose_decision(fitted.predict_proba()[split.val].numpy(), data.y[split.val].numpy()))
    predicted = (fitted.predict_proba()[split.test].numpy() * factors).argmax(1)
    found = compare.measured(fitted, data.y, split, balanced, {name: METRICS[name] for name in metrics_for("classify")})
    assert found["balanced"] == pytest.approx(sk.balanced_accuracy_score(y, predicted))
    assert found["accuracy"] == pytest.approx(sk.accuracy_score(y, predicted))
    assert found["accuracy"] != fitted.score(split.test, data.y)


def test_a_loss_ranks_the_smallest_first_and_a_class_can_be_the_positive_one(problem, refuses):
    lines = Path("labels.csv").read_text().splitlines()
    names = sorted({line.rsplit(",", 1)[1] for line in lines[1:]})
    two = [line.replace(f",{names[2]}", f",{names[1]}") for line in lines]
    Path("labels.csv").write_text("\n".join([*two, ""]))
    board, _ = run(settings={"metric": "log-loss"}, out="loss")
    means = [row.mean for row in board.rows]
    assert means == sorted(means)
    asked = [{"metric": "average-precision", "positive": name} for name in names[:2]]
    both = [run(settings=settings, out=f"out{number}")[0] for number, settings in enumerate(asked)]
    assert [board.about["title"] for board in both] == [f"average precision of {name!r}" for name in names[:2]]
    majority = [next(row.mean for row in board.rows if row.method == "majority") for board in both]
    assert sum(majority) == pytest.approx(1.0)  # the share of each class
    rarer = min(names[:2], key=lambda name: sum(line.endswith(f",{name}") for line in two))
    assert run(settings={"metric": "average-precision"}, out=f"out{names.index(rarer)}")[1] == []  # the same comparison
    refuses(lambda: run(settings={"metric": "average-precision", "positive": "sphere"}), "sphere")
    refuses(lambda: run(settings={"metric": "accuracy", "positive": names[0]}), names[0])


def test_the_command_in_processes_of_its_own(problem):
    """A worker, a page, and then JSON from the finished cells."""
    arguments = ["compare", "edges.csv", "--labels", "labels.csv", "--out", "out", "--splits", "2"]
    arguments += ["--methods", "majority, degree-knn", "--jobs", "1", "--metric", "macro-f1"]
    result = CliRunner().invoke(cli.app, arguments, env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    assert "degree-knn" in result.stdout
    assert "4/4" in result.stderr
    [heads] = [line.split() for line in result.stdout.splitlines() if line.startswith("method")]
    assert heads[-4:] == ["p", "auc", "accuracy", "seconds"]
    shown = [float(line.rsplit(" ", 1)[1]) for line in result.stderr.splitlines() if "majority, split" in line]
    kept = {row["method"]: row for row in json.loads(Path("out/leaderboard.json").read_text())["rows"]}
    assert sorted(shown) == pytest.approx(sorted(kept["majority"]["values"].values()), abs=6e-4)
    assert Path("out/report.html").read_text(encoding="utf-8").lstrip().startswith("<!doctype html>")
    result = CliRunner().invoke(cli.app, [*arguments, "--json"])
    found = json.loads(result.stdout)
    assert {row["method"] for row in found["rows"]} == {"majority", "degree-knn"}
    assert "4 of 4" in result.stderr


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_the_command_fails_if_every_method_does(problem, monkeypatch, capsys, form):
    class Broken(Here):
        def wait(self, seconds):
            return [attempt(lambda task: {}["nothing"], self.tasks.pop())]

    monkeypatch.setattr(compare, "LocalEngine", lambda *_: Broken())
    command = ["demonet", "compare", "edges.csv", "--labels", "labels.csv", "--methods", "majority,degree-knn", *form]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert shown.err.splitlines()[-1].endswith("failed: majority, degree-knn")
    assert "KeyError: 'nothing'" in shown.out
