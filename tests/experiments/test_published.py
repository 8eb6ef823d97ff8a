"""Claims: what is inside an interval, rows that are kept and not measured twice, protocols."""

from __future__ import annotations

import math
import sys

import pytest
import torch

from demonet import baselines
from demonet.experiments.published import __main__ as script
from demonet.experiments.published import claims
from demonet.experiments.published.claims import Claim, all_claims, is_within, keep, measure, read
from demonet.experiments.published.networks import few_labels


def claim(values, method="gin", published=0.8, std=0.05):
    return Claim(method, "MUTAG", "made up", published, std, lambda: values)


def test_a_row():
    row = measure(claim([0.7, 0.8, 0.9]))
    assert (row.measured, row.std, row.runs, row.within) == (pytest.approx(0.8), pytest.approx(0.1), 3, "yes")
    assert measure(claim([0.7, 0.72])).within == "no"
    assert not is_within(0.8, 0.01, 0.78, 0.5)  # a printed interval is not widened by our own spread


def test_rows_are_kept_in_the_order_of_the_claims(tmp_path):
    path, order = tmp_path / "a.csv", [claim([0.8], "gin"), claim([0.7], "gcn", std=math.nan)]
    keep(measure(order[1]), path, order)
    keep(measure(order[0]), path, order)
    assert [row.method for row in read(path)] == ["gin", "gcn"]
    keep(measure(claim([0.9], "gcn")), path, order)
    rows = read(path)
    assert [row.measured for row in rows] == [0.8, 0.9]
    assert math.isnan(rows[0].std)
    assert rows[0].runs == 1


def test_a_finished_row_is_not_measured_again(tmp_path, monkeypatch):
    calls = []
    made = Claim("gin", "MUTAG", "made up", 0.8, 0.1, lambda: calls.append(1) or [0.8, 0.9])
    monkeypatch.setattr(script, "all_claims", lambda: [made])
    for arguments, times in (([], 1), ([], 1), (["--fresh"], 2)):
        monkeypatch.setattr(sys, "argv", ["published", "--out", str(tmp_path / "a.csv"), *arguments])
        script.main()
        assert len(calls) == times


def test_every_claim_is_about_a_method_that_is_here():
    found = all_claims()
    assert {claim.method for claim in found} <= set(baselines.names())
    assert len({claim.key for claim in found}) == len(found)
    assert all(0 < claim.published < 1 for claim in found)
    assert claims.select(found, ["gin"], ["MUTAG"])[0].published == 0.894


def test_few_labels():
    y = torch.arange(300) % 3
    split = few_labels(y, 5, seed=1, validation=50, test=100)
    assert torch.bincount(y[split.train]).tolist() == [5, 5, 5]
    assert (split.val.numel(), split.test.numel()) == (50, 100)
    assert split != few_labels(y, 5, seed=2, validation=50, test=100)
