"""The command line from the first mistake to a finished run, in processes of its own where that matters."""

import itertools
import json
import multiprocessing
import os
import re
import signal
import statistics
import subprocess
import sys
import time

import pytest
from tests.runs.files import FILES, roles, write_table

from demonet import cli
from demonet.methods.closed_form import Kernel
from demonet.methods.kernel_ridge import NodeKernel
from demonet.runs import Settings, fit_run
from demonet.runs.storing import store_graph

FORK = multiprocessing.get_context("fork")
COMMAND = [sys.executable, "-c", "from demonet.cli import main; main()"]
FIT = ["fit", "edges.csv", "--labels", "labels.csv", "--out", "run"]


@pytest.fixture
def few(monkeypatch):
    """Two quick candidates in place of the portfolio."""
    members = [Kernel("machine", task="classes", members=1), NodeKernel("kernel-degree", kernel="degree")]
    monkeypatch.setattr("demonet.ensemble.ensemble.portfolio", lambda *_: members)


def command(arguments, out, err):
    """In a process that is forked: an interpreter of its own would import torch for seconds."""
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    sys.argv = ["demonet", *arguments]
    cli.main()


def wait_for_another(path, process, seconds=120.0):
    """Until a file is there, or another of its name."""
    end, before = time.monotonic() + seconds, path.stat().st_mtime_ns if path.exists() else None
    while not path.exists() or path.stat().st_mtime_ns == before:
        assert process.is_alive()
        assert time.monotonic() < end
        time.sleep(0.01)


def test_killed_then_resumed_gives_the_same_predictions(problem, main):
    """kill -9 after the first checkpoint, then Ctrl-C, then to the end: the bits of a run that nobody stopped."""
    long = ["--epochs", "1500"]
    code, _, _ = main(*FIT[:-1], "whole", *long)
    assert code == 0
    for number, (sign, code) in enumerate(((signal.SIGKILL, -9), (signal.SIGINT, 130))):
        said = [problem / "out.txt", problem / "err.txt"]
        process = FORK.Process(target=command, args=([*FIT, *long, *["--resume"] * number], *said))
        process.start()
        wait_for_another(problem / "run" / "unfinished" / "checkpoint-000.safetensors", process)
        os.kill(process.pid, sign)
        process.join(60)
        out, err = (path.read_text() for path in said)
        assert (process.exitcode, out) == (code, "")
        assert "Traceback" not in err
        assert [file.name for file in (problem / "run").iterdir() if file.name != ".lock"] == ["unfinished"]
    assert err.splitlines()[-1].startswith("interrupted: ")
    code, _, err = main(*FIT, *long)
    assert code == 2
    assert "--resume" in err
    code, out, _ = main(*FIT, *long, "--resume", "--json")
    assert code == 0
    assert (
        json.loads(out)["metrics"]["epochs"] == json.loads((problem / "whole" / "metrics.json").read_text())["epochs"]
    )
    for name in ("predictions.csv", "split.json"):
        assert (problem / "run" / name).read_bytes() == (problem / "whole" / name).read_bytes()


def test_a_process_of_its_own_prints_one_json_object_and_predicts_to_the_last_bit(problem, main):
    code, out, err = main(*FIT, "--epochs", "10", "--json")
    assert code == 0
    printed = json.loads(out)
    assert printed["run"] == "run"
    assert printed["metrics"] == json.loads((problem / "run" / "metrics.json").read_text())
    assert "validation" in err
    assert sorted(file.name for file in (problem / "run").iterdir()) == FILES
    predict = [*COMMAND, "predict", "run", "edges.csv", "--out", "again.csv"]
    done = subprocess.run(predict, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Wrote again.csv: 60 nodes.\n", "")
    assert (problem / "again.csv").read_bytes() == (problem / "run" / "predictions.csv").read_bytes()


def test_nothing_is_written_over_an_input_or_a_file_of_the_run(problem, main, monkeypatch):
    fit_run("edges.csv", "labels.csv", "features.csv", out="run", settings=Settings(epochs=2))
    store_graph("edges.csv", None, "features.csv", out="graph.store")
    (problem / "link.csv").symlink_to("edges.csv")
    os.link("features.csv", "same.csv")
    (problem / "run" / "other.csv").write_text("of the user")
    before = {path: path.read_bytes() for path in problem.rglob("*") if path.is_file()}
    inputs = ["edges.csv", "./run/../edges.csv", "link.csv", "features.csv", "same.csv"]
    inputs += [f"run/{path.name}" for path in sorted((problem / "run").iterdir()) if path.name != "other.csv"]
    given = ["edges.csv", "--features", "features.csv"]
    commands = [["predict", "run", *given, "--out", name] for name in inputs]
    commands += [["embed", "run", *given, "--out", name] for name in inputs if name.endswith(".csv")]
    commands += [["export", "run", "--onnx", name] for name in inputs]
    commands += [["demo", "--out", name] for name in inputs]
    commands += [["predict", "run", "graph.store", "--out", "graph.store/manifest.json"]]
    commands += [["fit", "edges.csv", "--labels", "run/predictions.csv", "--out", "run", "--overwrite"]]
    with monkeypatch.context() as patch:  # before any work
        patch.setattr("demonet.runs.inference.load_model_of", None)
        patch.setattr("demonet.runs.load_run", None)
        patch.setattr("demonet.runs.fit.make_plan", None)
        patch.setattr("demonet.runs.demo.run", None)
        for command in commands:
            code, _, error = main(*command)
            assert code == 2, command
            assert len(error.splitlines()) == 1, command
    assert {path: path.read_bytes() for path in problem.rglob("*") if path.is_file()} == before
    for name in ("new.csv", "run/new.csv"):
        assert main("predict", "run", *given, "--out", name)[0] == 0


def test_a_file_of_something_else_is_replaced_only_when_asked(problem, main):
    """Tables of predictions and embeddings are replaced, and those of a run are not, whoever asks."""
    for name, labels in (("run", "labels.csv"), ("other", "labels.csv"), ("tags", "tags.csv"), ("both", "sides.csv")):
        fit_run("edges.csv", labels, out=name, settings=Settings(epochs=2))
    (problem / "empty.csv").touch()
    (problem / "mine.xlsx").write_bytes(b"PK not a workbook")
    (problem / "mine.parquet").write_bytes(b"no Parquet")
    (problem / "split.csv").write_text("node,label,part\nr0,ring,test\n")
    edges, labels = roles(3)
    write_table(problem / "next.csv", ("source", "target"), [(f"x{u}", f"x{v}") for u, v in edges])
    mine = [
        "labels.csv",
        "sides.csv",
        "split.csv",
        "mine.xlsx",
        "mine.parquet",
        "other/predictions.csv",
    ]
    before = {name: (problem / name).read_bytes() for name in mine}
    for name in mine:
        for command in ("predict", "embed"):
            code, _, error = main(command, "run", "edges.csv", "--out", name)
            assert (code, len(error.splitlines())) == (2, 1)
            assert ("--overwrite" in error) == (not name.startswith("other"))
    assert main("predict", "run", "edges.csv", "--out", "other/predictions.csv", "--overwrite")[0] == 2
    assert {name: (problem / name).read_bytes() for name in mine} == before
    for run, given in itertools.product(("run", "tags", "both"), ("edges.csv", "next.csv")):
        for name in ("p.csv", "p.parquet", "p.xlsx", "empty.csv"):
            assert main("predict", run, given, "--out", name, "--overwrite")[0] == 0
            code, _, error = main("embed", run, given, "--out", name)
            anybodys = run == "both" and given == "next.csv"  # columns of numbers
            assert (code, "--overwrite" in error) == (2 * anybodys, anybodys)
    excel = [["--excel", mark] for mark in (".", ",")]
    for more in (*excel, ["--reasons", "2"], ["--top", "3", "--rank", "ring"]):
        assert main("predict", "run", "edges.csv", "--out", "q.csv", *more)[0] == 0
    assert main("embed", "run", "edges.csv", "--out", "q.csv")[0] == 0
    assert main("predict", "run", "edges.csv", "--out", "labels.csv", "--overwrite")[0] == 0


def test_numbers_and_labels_from_the_command(problem, main):
    code, out, err = main("fit", "edges.csv", "--labels", "scores.csv", "--out", "run", "--epochs", "5")
    assert code == 0
    assert err.splitlines()[1].startswith("edges: 60 nodes, 72 edges, 58 labelled; ")
    assert err.splitlines()[2].startswith("task: regress")
    assert "--task classify" in err.splitlines()[2]
    assert re.search(r"trained: validation RMSE [\d.]+, test RMSE", err)
    assert re.search(r"mean +\d\.\d{3}", out)
    assert main("predict", "run", "edges.csv", "--out", "again.csv")[0] == 0
    assert (problem / "again.csv").read_bytes() == (problem / "run" / "predictions.csv").read_bytes()
    assert main("embed", "run", "edges.csv", "--out", "e.npy")[0] == 0
    page = (problem / "run" / "report.html").read_bytes()
    assert main("report", "run")[0] == 0
    assert (problem / "run" / "report.html").read_bytes() == page
    tags = ["fit", "edges.csv", "--labels", "tags.csv", "--out", "tags", "--epochs", "5", "--metric", "macro-f1"]
    code, out, err = main(*tags, "--json")
    assert code == 0
    printed = json.loads(out)
    assert (printed["task"], printed["metrics"]["metric"], len(printed["metrics"]["labels"])) == (
        *("multilabel", "macro-f1"),
        3,
    )
    assert main(*tags, "--resume")[0] == 0
    assert main("predict", "tags", "edges.csv", "--out", "again.csv")[0] == 0
    assert (problem / "again.csv").read_bytes() == (problem / "tags" / "predictions.csv").read_bytes()


MESSY = """source,target,weight
ann,bob,1.5
bob,cid,heavy
cid,ann,1
ann,bob,1.5
dan,dan,1
dan,ann,2
"""


def one_line(text, start, *facts):
    assert text.startswith(start)
    assert text.count("\n") == 1
    assert [fact for fact in facts if fact not in text] == []


def test_from_the_first_mistake_to_the_last(problem, main):
    """A bad weight, a header of other names, an unknown node, too few labels; then what was changed is said."""
    edges, labels = problem / "edges.csv", problem / "labels.csv"
    edges.write_text(MESSY)
    labels.write_text("name,kind\nann,a\nbob,b\nzoe,b\n")
    code, out, err = main(*FIT)
    assert (code, out) == (2, "")
    one_line(err, "edges.csv:3: ", "'heavy'", "'weight'")
    edges.write_text(MESSY.replace("heavy", "1"))
    code, _, err = main(*FIT)
    assert code == 2
    header, error = err.splitlines(keepends=True)
    one_line(header, "warning: labels.csv: ", "'name, kind'", "header")
    one_line(error, "labels.csv:4: ", "'zoe'", "--add-isolated")
    code, _, err = main(*FIT, "--add-isolated")
    assert code == 2
    _, loops, duplicates, error = err.splitlines(keepends=True)
    one_line(loops, "warning: edges.csv: 1 self-loop", "--self-loops keep")
    one_line(duplicates, "warning: edges.csv: 1 duplicate")
    one_line(error, "edges.csv: --val: ", "0.2", "3 labelled nodes")
    assert not (problem / "run").exists()


def test_errors_stay_on_one_line_in_a_narrow_terminal(problem, main, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    long = "a very long name of a file that is not there " * 4 + ".csv"
    code, out, err = main("fit", long, "--labels", "labels.csv", "--out", "run")
    assert (code, out) == (2, "")
    one_line(err, f"{long}: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "edges.csv"),
        ("fit", "edges.csv", "--out", "run", "--preset", "best"),
        (*FIT, "--val", "0.7", "--test", "0.3"),
        (*FIT, "--resume", "--overwrite"),
        (*FIT, "--metric", "rmse"),
        ("predict", "run", "edges.csv", "--out", "p.csv"),
        ("embed", "run", "edges.csv", "--out", "e.txt"),
        ("report", "run"),
        ("export", "run", "--onnx", "m.onnx"),
    ],
)
def test_mistakes_are_exit_code_2(problem, main, arguments):
    code, out, err = main(*arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert not (problem / "run").exists()


def test_a_known_set_by_its_name(problem, main, use_paper_data):
    code, out, err = main("fit", "Brazil", "--out", "run", "--epochs", "5", "--json")
    assert code == 0
    assert json.loads(out)["metrics"]["split"]["train"] == 79
    assert "71 self-loops" in err


def test_with_class_weights_progress_and_table_have_one_number(problem, main, monkeypatch):
    """Progress told the weighted accuracy, the table the accuracy."""
    monkeypatch.setattr("demonet.cli.console.SECONDS", 0.0)
    code, out, err = main(*FIT, "--class-weight", "balanced", "--epochs", "3", "--json")
    assert code == 0
    metrics = json.loads(out)["metrics"]
    told = dict(re.findall(r"epoch (\d+), .*validation balanced accuracy ([\d.]+)", err))
    assert float(told[str(metrics["best_epoch"])]) == pytest.approx(metrics["val_metric"], abs=6e-4)
    assert re.search(r"trained: validation balanced accuracy ([\d.]+)", err)[1] == told[str(metrics["best_epoch"])]
    assert set(metrics["floors"]) == {"majority", "degree-knn"}
    assert metrics["floors"]["majority"] == pytest.approx(1 / 3)  # in the same metric
    low, high = metrics["test_metric_interval"]
    assert 0 <= low <= metrics["test_metric"] <= high <= 1


def test_names_are_completed(problem, monkeypatch):
    from demonet.cli.console import complete_edges

    assert complete_edges("bra") == ["brazil"]
    assert {"edges.csv", "features.csv", "labels.csv"} <= set(complete_edges(""))
    assert complete_edges("./lab") == ["./labels.csv"]
    assert complete_edges(f"{problem}/ed") == [f"{problem}/edges.csv"]
    assert complete_edges("none/x") == []


def test_a_run_of_candidates_from_the_command(problem, main, few):
    """Progress for each, both rules, the floors over all splits, the verdict, and what has no ONNX form."""
    code, out, err = main(*FIT, "--effort", "quick", "--cv", "2")
    assert code == 0
    model = next(line for line in err.splitlines() if line.startswith("model: "))
    assert model.startswith("model: auto ")
    assert "--model network" in model
    assert re.search(r"split 1 of 2: [12]/2 machine: accuracy [\d.]+, loss [\d.]+, [\d.]+ s", err)
    assert re.search(r"split 2 of 2: [12]/2 kernel-degree: ", err)
    row = r"^(DEMO-Net|degree only|majority) +(\S+) ± (\S+) \((\S+) to (\S+)\) +(\S+) ± (\S+) "
    rows = {name: list(map(float, numbers)) for name, *numbers in re.findall(row, out, re.MULTILINE)}
    metrics = json.loads((problem / "run" / "metrics.json").read_text())
    over = metrics["cv"]
    for name, floor in (("DEMO-Net", None), ("degree only", "degree-knn"), ("majority", "majority")):
        mean, spread, low, high, *strict = rows[name]
        for rule, found in (("refit", [mean, spread]), ("strict", strict)):
            values = over[rule]["floors"][floor] if floor else over[rule]["test_metric"]
            assert found == pytest.approx([statistics.mean(values), statistics.stdev(values)], abs=6e-4)
        assert 0 <= low <= mean + 6e-4
        assert mean - 6e-4 <= high <= 1
    assert metrics["degree_effect"]["verdict"] in out
    code, out, err = main("export", "run", "--onnx", "m.onnx")
    assert (code, out) == (2, "")
    one_line(err, "run: ", "'auto'", "--model network")
    assert main("predict", "run", "edges.csv", "--out", "again.csv")[0] == 0
    assert (problem / "again.csv").read_bytes() == (problem / "run" / "predictions.csv").read_bytes()
    before = (problem / "run" / "report.html").read_text()
    assert main("report", "run")[0] == 0
    assert (problem / "run" / "report.html").read_text() == before
    assert "Candidates" in before
