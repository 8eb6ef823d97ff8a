"""The comparison of all methods: cells from runs, resuming, and the table of the documents."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from demonet import baselines
from demonet.experiments import comparison
from demonet.experiments.comparison import OneRun, applies, fill, methods, read, rows, table
from demonet.experiments.rows import write_rows

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "baselines.md"


def runs_of(dataset, method, accuracies, seconds=2.0, peak=500.0):
    return [OneRun(dataset, method, seed, each, seconds + seed, peak + seed) for seed, each in enumerate(accuracies)]


def test_a_cell_needs_all_its_runs():
    """Three of three runs make a row, two of three none; more than asked for are left alone."""
    done = [
        *runs_of("MUTAG", "wl", [0.8, 0.9]),
        *runs_of("MUTAG", "gin", [0.7, 0.8, 0.9, 0.1]),
        *runs_of("brazil", "demonet-default", [0.5, 0.5, 0.8]),
    ]
    first, second = rows(done, 3)
    assert (first.dataset, first.method, first.runs) == ("brazil", "demonet-default", 3)
    assert (second.method, second.mean, second.std) == ("gin", pytest.approx(0.8), pytest.approx(0.1))
    assert second.ci95 == pytest.approx(4.302652729911275 * 0.1 / 3**0.5)  # Student's t with 2 degrees of freedom
    assert (second.seconds, second.peak_memory_mb) == (3.0, 502.0)


def test_the_table(tmp_path):
    done = (
        runs_of("MUTAG", "gin", [0.7, 0.9]) + runs_of("brazil", "gin", [0.5, 0.5]) + runs_of("MUTAG", "wl", [1.0] * 2)
    )
    write_rows(rows(done, 2), tmp_path / "a.csv")
    assert table(tmp_path / "a.csv").splitlines() == [
        "| method | brazil | s | MB | MUTAG | s | MB |",
        "|---|---|--:|--:|---|--:|--:|",
        "| `gin` | 0.500 ± 0.000 | 2.5 | 501 | 0.800 ± 0.141 | 2.5 | 501 |",
        "| `wl` | | | | 1.000 ± 0.000 | 2.5 | 501 |",
    ]


def test_who_is_asked_what():
    nodes = [method for method in methods() if applies(method, "nodes")]
    graphs = [method for method in methods() if applies(method, "graphs")]
    assert {"gcn", "demonet-hash", "majority"} <= set(nodes) & set(graphs)
    assert not {"wl", "deepwl", "demonet-m-hash", "attribute-lr"} & set(nodes)
    assert {"wl", "deepwl", "demonet-m-hash", "attribute-lr"} <= set(graphs)
    attributed = [method for method in methods() if applies(method, "attributes")]
    assert set(attributed) - set(nodes) == {"attribute-lr", "attribute-neighbour-lr", "attribute-adjacency-lr"}
    assert set(attributed) | set(graphs) == set(methods())


def test_peak_memory_is_that_of_this_process():
    before = comparison.peak_memory_mb()
    block = bytearray(int(before * 1e6) + 200_000_000)  # bytes are written, so all of it is resident
    assert comparison.peak_memory_mb() > before + 150
    assert len(block) > 0


@pytest.mark.data
def test_runs_that_are_there_are_not_run_again(tmp_path, monkeypatch):
    root = os.environ.get("DEMONET_DATA") or ROOT.parent / "shared" / "data"
    if not (Path(root) / "brazil-airports").is_dir():
        pytest.skip(f"brazil is not in {root}: set DEMONET_DATA to the folder that holds it")
    monkeypatch.setenv("DEMONET_DATA", str(root))
    path = tmp_path / "runs.csv"
    write_rows([OneRun("brazil", "majority", 0, 0.123, 1.0, 1.0)], path)
    fill("brazil", "majority", 3, path)
    done = read(path)
    assert [one.seed for one in done] == [0, 1, 2]
    assert done[0].accuracy == 0.123
    assert all(0.1 < one.accuracy < 0.4 and one.peak_memory_mb > 50 for one in done[1:])
    monkeypatch.setattr(comparison, "ProcessPoolExecutor", None)  # nothing is started any more
    fill("brazil", "majority", 3, path)
    assert read(path) == done


def test_a_method_that_fails_is_named_and_the_others_go_on(tmp_path, monkeypatch):
    def stand_in(dataset, method, runs, path, fresh):
        if method == "gin":
            raise ValueError("no such thing")
        write_rows([*read(path), *runs_of(dataset, method, [0.5] * runs)], path)

    monkeypatch.setattr(comparison, "fill", stand_in)
    monkeypatch.setattr(comparison, "load", lambda name: [])
    monkeypatch.setattr(
        sys, "argv", ["", "--sets", "MUTAG", "--methods", "gin", "wl", "--runs", "2", "--out", str(tmp_path)]
    )
    with pytest.raises(SystemExit, match="gin on MUTAG: no such thing"):
        comparison.main()
    assert "`wl` | | | | 0.500" in table(tmp_path / "comparison.csv")


def test_the_page_shows_the_committed_numbers():
    assert table(ROOT / "results" / "comparison.csv") in PAGE.read_text(encoding="utf-8")


def test_the_committed_cells_are_those_of_the_committed_runs(tmp_path):
    write_rows(rows(read(ROOT / "results" / "comparison_runs.csv"), comparison.RUNS), tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == (ROOT / "results" / "comparison.csv").read_text()


def test_the_page_speaks_of_every_method():
    described = set(re.findall(r"^\| `([a-z0-9-]+)`", PAGE.read_text(encoding="utf-8").split("## The table")[0], re.M))
    assert described == {*baselines.names(), *comparison.PRESETS}
