"""The parts: their cells exist, are there once, stand beside what is printed, and make rows of what has been run."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from demonet import methods
from demonet.data.catalog import CATALOG, find
from demonet.methods.demonet import DemoNet
from demonet.report.chart import Axis, Chart, Panel, Series
from demonet.report.page import Text
from demonet.sealed import canonical
from demonet_study.experiments.methods import family_in_catalog, method
from demonet_study.ledger.job import Cell, Job, Outcome, Result, Stamp, Wanted
from demonet_study.ledger.store import Ledger
from demonet_study.protocol import folds_of, train_share
from demonet_study.report.files import write_files
from demonet_study.report.grid import Layout
from demonet_study.report.parts import PARTS, Entry, Part

ACCURACY = ("nodes", "splits", "graphs", "layers", "ablation", "comparison", "reasons")
STAMP = Stamp("c0de", "{}", "cpu")


@pytest.mark.parametrize("part", ACCURACY)
def test_cells_are_there_once_and_name_what_exists(part):
    """A name or option that does not exist is an error here, not after hours."""
    found = [entry.cell for entry in PARTS[part].entries()]
    assert len(set(found)) == len(found)
    for cell in found:
        assert cell.kind == "accuracy"
        assert cell.dataset in CATALOG
        assert methods.get(cell.method).applies(family_in_catalog(cell.dataset))
        assert cell.options == canonical(json.loads(cell.options))
        assert cell.split == find(cell.dataset).protocol or train_share(cell.split) or folds_of(cell.split)
        made = method(cell.method, cell.preset, json.loads(cell.options))
        assert isinstance(made, DemoNet) == bool(cell.preset)
        if isinstance(made, DemoNet):
            made.preset(family_in_catalog(cell.dataset))


@pytest.mark.parametrize("part", ACCURACY)
def test_quick_is_a_part_of_the_whole(part):
    whole, quick = {entry.cell: entry for entry in PARTS[part].entries()}, PARTS[part].entries(quick=True)
    assert len({entry.cell for entry in quick}) == len(quick)
    for entry in quick:
        assert replace(entry, runs=0) == replace(whole[entry.cell], runs=0)
        assert entry.runs <= 3


def result(cell, seed, value, seconds=1.0, memory=500.0):
    return Result(Job(cell, seed), STAMP, Outcome(value, seconds, memory))


def test_rows_of_what_is_there():
    cell, empty = Cell("accuracy", "usa", "gcn", split="train:0.3"), Cell("accuracy", "usa", "gin", split="thirds")
    entries = [Entry(cell, 3, "train 30%", 0.5, 0.1), Entry(empty, 3, method="other")]
    part = Part("made", "Made", "How.", lambda: entries, lambda: entries[:1])
    done = {cell: [result(cell, seed, [0.5, 0.6, 0.7, 9.9][seed], seed, 500 + seed) for seed in (1, 0, 2, 3)]}
    row, other = part.rows(done)
    assert (row.part, row.dataset, row.method, row.variant, row.split) == (
        "made",
        "usa",
        "gcn",
        "train 30%",
        "train:0.3",
    )
    assert (row.train_fraction, row.paper, row.paper_std, row.device, row.code) == (0.3, 0.5, 0.1, "cpu", "c0de")
    assert row.values == (0.5, 0.6, 0.7)  # three are wanted, the fourth is left alone
    assert (row.mean, row.std) == (pytest.approx(0.6), pytest.approx(0.1))
    assert row.ci95 == pytest.approx(4.302652729911275 * 0.1 / math.sqrt(3))  # Student's t with 2 degrees of freedom
    assert (row.runs, row.wanted, row.seconds, row.peak_memory_mb) == (3, 3, 1.0, 500)
    assert (other.method, other.runs, other.wanted, other.values, other.device) == ("other", 0, 3, (), "")
    assert all(
        math.isnan(v) for v in (other.mean, other.std, other.seconds, other.peak_memory_mb, other.train_fraction)
    )
    assert part.rows(done, runs=2)[0].values == (0.5, 0.6)
    assert [r.method for r in part.rows(done, quick=True)] == ["gcn"]
    assert part.wanted(5) == [Wanted(cell, 5), Wanted(empty, 5)]


def test_a_new_part_is_one_entry_of_the_registry(tmp_path, monkeypatch):
    """Its runs, table, figure, further CSV file and page sections come from the part alone."""
    cell = Cell("accuracy", "brazil", "gcn", split="thirds")
    new = Part(
        "new",
        "A new table",
        "How it is made.",
        lambda: [Entry(cell, 2, "as it is")],
        list,
        layout=Layout(line=lambda row: row.variant, head="what"),
        charts=lambda rows, extra: {
            "new": Chart("New", [Panel("", [Series("a", [0, 1], list(rows[0].values))])], Axis("x"), Axis("y"))
        },
        sections=lambda shown: [*shown.tables, *shown.figures, Text(f"{len(shown.extra)} runs", anchor="new-text")],
        extra=lambda entries, results: [result.job for result in results[entries[0].cell]],
        files=lambda extra: {"new_jobs.csv": extra},
    )
    monkeypatch.setattr("demonet_study.report.parts.PARTS", {"new": new})
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        for seed, value in enumerate((0.25, 0.75)):
            ledger.record(Job(cell, seed), Stamp("", "{}", "cpu"), Outcome(value, 1.0, 1.0))
        written = write_files(ledger, [new], tmp_path, runs=None, quick=False, summary=None)
    names = ["new.csv", "new_jobs.csv", "tables/total.md", "tables/new.md", "tables/new.tex", "figures/new.svg"]
    assert [path.relative_to(tmp_path).as_posix() for path in written] == [*names, "paper.html"]
    assert "| as it is | **0.500 ± 0.354** |" in (tmp_path / "tables" / "new.md").read_text(encoding="utf-8")
    page = (tmp_path / "paper.html").read_text(encoding="utf-8")
    assert all(text in page for text in ("How it is made.", 'id="new-figure"', "2 runs"))
