"""Published results: what is inside an interval; rows that are kept; every fold is a run of the ledger."""

from __future__ import annotations

import math
import sys
from functools import partial

import pytest
from tests.pages import ROOT
from tests.study.experiments.published.far import accuracy
from tests.study.ledger.fakes import FORK

from demonet.errors import DemonetError
from demonet.runs import workers
from demonet_study.experiments.published import __main__ as script
from demonet_study.experiments.published import results
from demonet_study.experiments.published.results import (
    PublishedResult,
    compare,
    is_within,
    keep,
    measure,
    read,
)
from demonet_study.ledger import job
from demonet_study.ledger import work as working
from demonet_study.ledger.job import Cell, Job, Outcome, Result, Stamp
from demonet_study.ledger.store import Ledger


def published(values, method="gin", printed=0.8, std=0.05):
    return PublishedResult(method, "MUTAG", "made up", printed, std, len(values), values.__getitem__)


def row(*arguments, **named):
    made = published(*arguments, **named)
    outcomes = [Outcome(0.0, 0.5, 1.0, {"answer": made.piece(number)}) for number in range(made.pieces)]
    return compare(made, [Result(Job(made.cell, i), Stamp("", "", ""), one) for i, one in enumerate(outcomes)])


def table(rows):
    """The rows as a Markdown table."""
    lines = ["| method | set | protocol | printed | measured | within |", "|---|---|---|---|---|---|"]
    for row in rows:
        spread = "" if math.isnan(row.published_std) else f" ± {row.published_std:.3f}"
        measured = f"{row.measured:.3f} ± {row.std:.3f}"
        printed = f"{row.published:.3f}{spread}"
        lines.append(f"| `{row.method}` | {row.dataset} | {row.protocol} | {printed} | {measured} | {row.within} |")
    return "\n".join(lines)


def test_a_row():
    found = row([0.7, 0.8, 0.9])
    assert (found.measured, found.std, found.runs, found.within) == (pytest.approx(0.8), pytest.approx(0.1), 3, "yes")
    assert found.seconds == 1.5
    assert row([0.7, 0.72]).within == "no"
    assert not is_within(0.8, 0.01, 0.78, 0.5)  # a printed interval is not widened by our own spread


def test_rows_are_kept_in_the_order_of_the_results(tmp_path):
    path, order = tmp_path / "a.csv", [published([0.8], "gin"), published([0.7], "gcn", std=math.nan)]
    keep(row([0.7], "gcn", std=math.nan), path, order)
    keep(row([0.8], "gin"), path, order)
    assert [found.method for found in read(path)] == ["gin", "gcn"]
    keep(row([0.9], "gcn"), path, order)
    rows = read(path)
    assert [found.measured for found in rows] == [0.8, 0.9]
    assert math.isnan(rows[0].std)
    assert rows[0].runs == 1


def test_a_piece_is_a_run(monkeypatch):
    made = published([[0.7, 0.9], 0.5])
    monkeypatch.setattr(results, "all_results", lambda: [made])
    outcome = measure(Job(made.cell, 0))
    assert (outcome.value, outcome.extra) == (pytest.approx(0.8), {"answer": [0.7, 0.9]})
    assert measure(Job(made.cell, 1)).value == 0.5
    with pytest.raises(DemonetError, match="nothing"):
        measure(Job(Cell("published", "MUTAG", "gin", options='{"protocol":"nothing"}'), 0))


def test_finished_pieces_survive_a_stop_and_finished_rows_stay(tmp_path, monkeypatch):
    """The ledger resumes; a row of the file is measured again only if asked for and if the code has changed."""
    made = PublishedResult("gin", "MUTAG", "made up", 0.8, 0.1, 3, partial(accuracy, 0.5))
    monkeypatch.setattr(workers, "CONTEXT", FORK)
    monkeypatch.setattr(working, "POLL", 0.02)
    for module in (script, results):
        monkeypatch.setattr(module, "all_results", lambda: [made])
    monkeypatch.setattr(job, "code", lambda: "first")
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        working.work(ledger, [job.Wanted(made.cell, 2)], job.perform)  # as far as a stopped command came

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["published", "--out", str(tmp_path / "a.csv"), *arguments])
        script.main()
        with Ledger(tmp_path / "ledger.sqlite") as ledger:
            return sum(runs for _, runs, _ in ledger.seconds())

    assert run() == 3
    assert read(tmp_path / "a.csv")[0].measured == pytest.approx(0.6)
    monkeypatch.setattr(job, "code", lambda: "second")
    assert run() == 3
    assert run("--fresh") == 6
    assert run("--fresh") == 6


def test_the_page_shows_the_file():
    page = (ROOT / "docs" / "baselines.md").read_text(encoding="utf-8")
    shown = page.split("<!-- published: results/published.csv -->\n")[1].split("\n<!-- end -->")[0]
    assert shown == table(read(ROOT / "results" / "published.csv"))
