"""Claims: what is inside an interval, rows that are kept and not measured twice, pieces that survive a stop."""

from __future__ import annotations

import math
import os
import sys
from functools import partial

import pytest
from tests.experiments.published.far import process_and_number
from tests.pages import ROOT

from demonet import baselines
from demonet.experiments.published import __main__ as script
from demonet.experiments.published import claims
from demonet.experiments.published.claims import Claim, all_claims, compare, is_within, keep, read, table
from demonet.experiments.published.pieces import measure


def claim(values, method="gin", published=0.8, std=0.05):
    return Claim(method, "MUTAG", "made up", published, std, len(values), values.__getitem__)


def row(*arguments, **named):
    made = claim(*arguments, **named)
    return compare(made, [made.piece(number) for number in range(made.pieces)], 1.0)


def test_a_row():
    found = row([0.7, 0.8, 0.9])
    assert (found.measured, found.std, found.runs, found.within) == (pytest.approx(0.8), pytest.approx(0.1), 3, "yes")
    assert row([0.7, 0.72]).within == "no"
    assert not is_within(0.8, 0.01, 0.78, 0.5)  # a printed interval is not widened by our own spread


def test_rows_are_kept_in_the_order_of_the_claims(tmp_path):
    path, order = tmp_path / "a.csv", [claim([0.8], "gin"), claim([0.7], "gcn", std=math.nan)]
    keep(row([0.7], "gcn", std=math.nan), path, order)
    keep(row([0.8], "gin"), path, order)
    assert [found.method for found in read(path)] == ["gin", "gcn"]
    keep(row([0.9], "gcn"), path, order)
    rows = read(path)
    assert [found.measured for found in rows] == [0.8, 0.9]
    assert math.isnan(rows[0].std)
    assert rows[0].runs == 1


def test_a_finished_row_is_not_measured_again(tmp_path, monkeypatch):
    calls = []
    made = Claim("gin", "MUTAG", "made up", 0.8, 0.1, 2, lambda number: calls.append(number) or 0.8)
    monkeypatch.setattr(script, "all_claims", lambda: [made])
    for arguments, times in (([], 2), ([], 2), (["--fresh"], 4)):
        monkeypatch.setattr(sys, "argv", ["published", "--out", str(tmp_path / "a.csv"), *arguments])
        script.main()
        assert len(calls) == times
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]


def test_pieces_that_ended_survive_a_stop(tmp_path):
    calls, broken = [], {1}

    def piece(number):
        calls.append(number)
        if number in broken:
            raise KeyboardInterrupt
        return 0.1 * number

    made = Claim("gin", "MUTAG", "made up", 0.8, 0.1, 3, piece)
    with pytest.raises(KeyboardInterrupt):
        measure(made, tmp_path / "pieces")
    broken.clear()
    assert measure(made, tmp_path / "pieces").measured == pytest.approx(0.1)
    assert calls == [0, 1, 1, 2]
    assert not (tmp_path / "pieces").exists()


def test_pieces_side_by_side(tmp_path):
    """In other processes than this one, and in order however they end."""
    seen = []
    made = Claim(
        "gin", "M", "p", 0.8, 0.1, 3, partial(process_and_number, 5), lambda found: seen.extend(found) or [0.8]
    )
    measure(made, tmp_path / "pieces", jobs=2)
    assert [number for _, number in seen] == [5, 6, 7]
    assert os.getpid() not in {process for process, _ in seen}


def test_the_page_shows_the_file():
    page = (ROOT / "docs" / "baselines.md").read_text(encoding="utf-8")
    shown = page.split("<!-- published: results/published.csv -->\n")[1].split("\n<!-- end -->")[0]
    assert shown == table(read(ROOT / "results" / "published.csv"))


def test_no_row_is_of_a_claim_that_is_gone():
    assert {found.key for found in read(ROOT / "results" / "published.csv")} <= {made.key for made in all_claims()}


def test_every_claim_is_about_a_method_that_is_here():
    found = all_claims()
    assert {claim.method for claim in found} <= set(baselines.names())
    assert len({claim.key for claim in found}) == len(found)
    assert all(0 < claim.published < 1 for claim in found)
    assert claims.select(found, ["gin"], ["MUTAG"])[0].published == 0.894
