"""``demonet reproduce``: runs what is missing, writes what is there, stops and goes on."""

import csv
import subprocess
import sys

import pytest
from tests.pages import ROOT
from tests.study.ledger.fakes import FORK, lines, perform, value
from typer.testing import CliRunner

from demonet import DemonetError, workers
from demonet.cli import app
from demonet.sealed import canonical
from demonet_study.ledger import job
from demonet_study.ledger import work as working
from demonet_study.ledger.job import Cell, Job, Outcome, Stamp
from demonet_study.ledger.store import Ledger
from demonet_study.report.files import write_files
from demonet_study.report.parts import PARTS, Entry, Part
from demonet_study.report.parts.part import accuracy_cell
from demonet_study.report.parts.tables import COMPARISON, NODES

METHODS = ("gcn", "majority", "demonet-hash")


def part(name, options="{}"):
    """A part with a few cells of real names and made-up numbers."""

    def entries(sets):
        cells = [Cell("accuracy", dataset, method, "", options, "thirds") for dataset in sets for method in METHODS]
        return [Entry(cell, 2, paper=0.5, paper_std=0.1) for cell in cells]

    return Part(name, name.title(), "By hand.", lambda: entries(("brazil", "usa")), lambda: entries(("brazil",)))


@pytest.fixture(autouse=True)
def cheap(monkeypatch, tmp_path):
    """Runs that cost nothing, in forked workers."""
    monkeypatch.setattr(workers, "CONTEXT", FORK)
    monkeypatch.setattr(working, "POLL", 0.02)
    monkeypatch.setattr(job, "perform", perform)
    monkeypatch.setattr(job, "code", lambda: "c0de")
    give(monkeypatch, part("nodes", canonical({"log": str(tmp_path / "log")})), part("graphs"))


def give(monkeypatch, *parts):
    """These parts and no others."""
    monkeypatch.setattr("demonet_study.report.parts.PARTS", {one.name: one for one in parts})


def run(tmp_path, *arguments):
    return CliRunner().invoke(app, ["reproduce", *arguments, "--out", str(tmp_path / "out")], env={"COLUMNS": "200"})


def table(tmp_path, name="nodes"):
    with (tmp_path / "out" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def ended(tmp_path):
    return len(lines(tmp_path / "log", "end"))


def test_it_does_what_is_missing_and_writes_everything(tmp_path):
    first = run(tmp_path, "nodes", "--jobs", "2")
    assert first.exit_code == 0, first.output
    rows = table(tmp_path)
    assert [(row["dataset"], row["method"]) for row in rows] == [(d, m) for d in ("brazil", "usa") for m in METHODS]
    for row in rows:
        cell = Cell("accuracy", row["dataset"], row["method"])
        mean = (value(Job(cell, 0)) + value(Job(cell, 1))) / 2
        assert float(row["mean"]) == pytest.approx(mean, rel=1e-3)
        assert (row["runs"], row["wanted"], row["paper"], row["device"], row["code"]) == (
            "2",
            "2",
            "0.5",
            "cpu",
            "c0de",
        )
    assert "values" not in rows[0]
    assert first.stderr.startswith("0 of 12 runs, time left not known yet, gcn log:")
    assert "\n12 of 12 runs\n12 runs in" in first.stderr
    for name in ("nodes.csv", "tables/nodes.md", "tables/nodes.tex", "paper.html", "ledger.parquet"):
        assert (tmp_path / "out" / name).stat().st_size > 0
        assert f"Wrote {tmp_path / 'out' / name}" in first.stdout
    assert not (tmp_path / "out" / "graphs.csv").exists()
    again = run(tmp_path, "nodes")
    assert "No run was missing." in again.stderr
    assert ended(tmp_path) == 12
    more = run(tmp_path, "nodes", "--runs", "3")
    assert "6 runs in" in more.stderr
    assert {row["runs"] for row in table(tmp_path)} == {"3"}


def test_all_is_all_parts_and_quick_is_less(tmp_path):
    result = run(tmp_path, "all", "--quick", "--runs", "1")
    assert result.exit_code == 0, result.output
    assert "6 runs in" in result.stderr
    assert [len(table(tmp_path, name)) for name in ("nodes", "graphs")] == [3, 3]


def test_a_choice_of_sets_and_methods_leaves_the_other_cells_empty(tmp_path):
    result = run(tmp_path, "nodes", "--sets", "brazil", "--methods", "gcn, majority")
    assert result.exit_code == 0, result.output
    done = {(row["dataset"], row["method"]): (int(row["runs"]), row["mean"]) for row in table(tmp_path)}
    assert [runs for runs, _ in done.values()] == [2, 2, 0, 0, 0, 0]
    assert done["usa", "gcn"] == (0, "nan")


def test_runs_made_elsewhere_are_merged_and_rendered_here(tmp_path):
    """Without rendering nothing but the ledger is written; the next command adds its runs and writes the rest."""
    other = tmp_path / "other.sqlite"
    first = run(tmp_path, "nodes", "--sets", "brazil", "--no-render", "--ledger", str(other))
    assert first.exit_code == 0, first.output
    assert not (tmp_path / "out").exists()
    run(tmp_path, "nodes", "--sets", "usa")
    result = run(tmp_path, "nodes", "--render-only", "--merge", str(other))
    assert result.exit_code == 0, result.output
    assert "Added 6 runs" in result.stderr
    assert {row["runs"] for row in table(tmp_path)} == {"2"}
    assert ended(tmp_path) == 12
    with Ledger(tmp_path / "again.sqlite") as ledger:
        assert ledger.import_runs(tmp_path / "out" / "ledger.parquet") == 12


WITHOUT = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("plotly", "gensim", "grakel", "pyarrow", "ray"):
            raise ModuleNotFoundError(f"{name} is not here", name=name)
sys.meta_path.insert(0, Blocked())
from tests.study.ledger.fakes import FORK
from tests.study.experiments.tiny import tiny
from demonet.cli import main
from demonet_study.experiments import accuracy
from demonet import workers
workers.CONTEXT, accuracy.load = FORK, tiny
sys.argv = ["demonet", "reproduce", "default", *sys.argv[1:]]
main()
"""


def test_runs_need_no_libraries_for_figures_and_no_parquet(tmp_path):
    """As on a machine that has only what the methods need; the ledger is read here."""
    options = ["--sets", "brazil", "--methods", "degree-knn", "--runs", "1"]
    ledger = tmp_path / "ledger.sqlite"
    command = [sys.executable, "-c", WITHOUT, *options, "--no-render", "--ledger", str(ledger)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    with Ledger(ledger) as opened:
        assert sum(runs for _, runs, _ in opened.seconds()) == 1


def test_other_parts_stay_whole_whatever_is_asked_of_one(tmp_path):
    run(tmp_path, "all")
    before = (tmp_path / "out" / "tables" / "graphs.md").read_text(encoding="utf-8")
    for option in (("--runs", "1"), ("--quick",)):
        result = run(tmp_path, "nodes", "--render-only", *option)
        assert result.exit_code == 0, result.output
        assert (tmp_path / "out" / "tables" / "graphs.md").read_text(encoding="utf-8") == before
    assert [len(table(tmp_path, name)) for name in ("nodes", "graphs")] == [3, 6]


def test_runs_of_a_committed_export_count(tmp_path):
    run(tmp_path, "nodes")
    for path in (tmp_path / "out").glob("ledger.sqlite*"):
        path.unlink()
    result = run(tmp_path, "nodes", "--ledger", str(tmp_path / "other.sqlite"))
    assert "No run was missing." in result.stderr
    assert (tmp_path / "other.sqlite").exists()
    assert not (tmp_path / "out" / "ledger.sqlite").exists()


def test_whole_cells_outlive_other_code_and_parts_of_cells_do_not(tmp_path, monkeypatch):
    run(tmp_path, "nodes", "--sets", "brazil")
    run(tmp_path, "nodes", "--sets", "usa", "--runs", "1")
    monkeypatch.setattr(job, "code", lambda: "other")
    result = run(tmp_path, "nodes")
    assert "6 runs in" in result.stderr  # both of each cell that was not whole
    assert [row["code"] for row in table(tmp_path)] == ["c0de"] * 3 + ["other"] * 3
    assert "6 runs in" in run(tmp_path, "nodes", "--fresh").stderr  # the whole ones, with the code as it is now
    assert [row["code"] for row in table(tmp_path)] == ["other"] * 6


def test_a_failed_run_is_told_after_all_is_written(tmp_path, monkeypatch):
    give(monkeypatch, part("nodes", canonical({"fail": 1})))
    for _ in range(2):
        result = run(tmp_path, "nodes")
        assert result.exit_code == 1
        assert "failed: gcn fail:1 on brazil, thirds, seed 1: ValueError: no such luck" in result.stderr
        assert "6 of 12 runs, 6 failed\n" in result.stderr
        assert "6 runs failed" in result.stderr
        assert {row["runs"] for row in table(tmp_path)} == {"1"}


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("node",), ("'node'", "'nodes'")),
        (("nodes", "--sets", "brasil"), ("'brasil'", "'brazil'")),
        (("nodes", "--methods", "GNC,"), ("'GNC'", "'gcn'")),
        (("nodes", "--methods", "xyz"), ("'xyz'", "demonet-hash, gcn, majority")),
        (("nodes", "--device", "gpu"), ("'gpu'",)),
    ],
)
def test_names_that_are_not_there_are_expected_errors(tmp_path, arguments, facts):
    result = run(tmp_path, *arguments)
    assert isinstance(result.exception, DemonetError)
    assert all(fact in str(result.exception) for fact in facts)
    assert ended(tmp_path) == 0


def test_the_parts_are_those_that_the_help_names():
    told = " ".join(CliRunner().invoke(app, ["reproduce", "--help"], env={"COLUMNS": "300"}).stdout.split())
    assert f"{', '.join(PARTS)}, or all." in told


def test_time_is_compared_on_one_kind_of_device(tmp_path, monkeypatch):
    """A run on a GPU counts for the accuracy of Table 4 and not for what a method costs beside others."""
    monkeypatch.setattr("demonet_study.report.parts.PARTS", {part.name: part for part in (NODES, COMPARISON)})
    cell = accuracy_cell("brazil", "gcn")
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        for seed, device in ((0, "a GPU"), (1, "a GPU"), (0, "cpu")):
            ledger.record(Job(cell, seed), Stamp("", "{}", device), Outcome(0.5, 1.0, 1.0))
        write_files(ledger, [NODES, COMPARISON], tmp_path, runs=None, quick=False, summary=None)
    counted = {}
    for part in ("nodes", "comparison"):
        with (tmp_path / f"{part}.csv").open(encoding="utf-8") as lines:
            counted[part] = {(row["runs"], row["device"]) for row in csv.DictReader(lines) if int(row["runs"])}
    assert counted == {"nodes": {("2", "a GPU")}, "comparison": {("1", "cpu")}}


def test_a_folder_of_something_else_is_not_filled(refuses, tmp_path):
    """Before, nodes.csv, tables and paper.html of the user were replaced."""
    for name, command in (("nodes.csv", ["reproduce", "nodes", "--quick"]), ("bench.csv", ["bench", "--quick"])):
        (tmp_path / name).write_text("of the user")
        arguments = [*command, "--out", str(tmp_path)]
        refuses(lambda given=arguments: CliRunner().invoke(app, given, catch_exceptions=False), str(tmp_path))
        assert [path.name for path in tmp_path.iterdir()] == [name]
        (tmp_path / name).unlink()
