"""Claims are answered from rows: what is there decides, what is missing is said to be missing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from demonet.runs.statistics import holm, paired, spread
from demonet_study.experiments.statistics import ratio_of
from demonet_study.report.grid import ResultRow
from demonet_study.report.hypotheses import ALL, CLAIMS, MethodPreset, answers, verdicts
from demonet_study.report.parts import PARTS

RUNS = 10


def row(part, dataset, method, preset, split, values, wanted=RUNS):
    nan = math.nan
    return ResultRow(
        *(part, dataset, method, preset, "", split, nan, *spread(list(values))),
        *(len(values), wanted, nan, nan, nan, nan, "cpu", "code", tuple(values)),
    )


def made(part, level, *, noise=0.01, seed=0):
    """Rows for every cell of a part: ``level(dataset, method, preset)`` and a little noise, the same splits for all."""
    generator = np.random.default_rng(seed)
    return [
        row(part, c.dataset, c.method, c.preset, c.split, level(c.dataset, c.method, c.preset) + noise * draw)
        for c in (entry.cell for entry in PARTS[part].entries())
        for draw in [generator.standard_normal(RUNS)]
    ]


def ours_above(by):
    return lambda dataset, method, preset: 0.5 + by * method.startswith("demonet")


def said(rows, claim):
    return {verdict.subject: verdict for verdict in verdicts(answers(rows)) if verdict.claim.name == claim}


def test_without_runs_nothing_is_said():
    assert {verdict.verdict for verdict in verdicts(answers([]))} == {"not yet run"}
    for answer in answers([]):
        assert answer.verdict == "not yet run"
        assert answer.missing
        assert math.isnan(answer.difference)
        assert math.isnan(answer.corrected)
        assert answer.runs == 0


def test_the_claims_are_the_papers():
    """Every comparison names methods that the part has, so that each can be answered some day."""
    for claim in CLAIMS:
        cells = {
            (e.cell.dataset, MethodPreset(e.method or e.cell.method, e.cell.preset), e.cell.split)
            for e in PARTS[claim.part].entries()
        }
        for pair in claim.pairs:
            for dataset in (*claim.sets, *claim.generated):
                for split in claim.splits(dataset):
                    assert all((dataset, method, split) in cells for method in pair)
        assert {method for _, method, _ in cells} >= {method for pair in claim.beside for method in pair}
    assert [len(claim.pairs) for claim in CLAIMS] == [30, 9, 2, 2]


@pytest.mark.parametrize(("by", "verdict"), [(0.1, "holds"), (-0.1, "does not hold"), (0.0, "undecided")])
def test_networks(by, verdict):
    found = said(made("nodes", ours_above(by)), "networks")
    assert {one.verdict for one in found.values()} == {verdict}
    assert set(found) == {
        *(
            MethodPreset(f"demonet-{scheme}", preset)
            for scheme in ("hash", "weight")
            for preset in ("paper", "authors")
        ),
        MethodPreset("demonet-default", "default"),
    }
    for one in found.values():
        assert len(one.answers) == 6
        assert all(a.difference == pytest.approx(by, abs=0.02) and a.low < by < a.high for a in one.answers)


def test_one_network_above_is_enough():
    def level(dataset, method, preset):
        return 0.9 if method == "gat" else ours_above(0.1)(dataset, method, preset)

    found = said(made("nodes", level), "networks")[MethodPreset("demonet-hash", "paper")]
    assert found.verdict == "does not hold"
    by_rival = {answer.rival.name: answer.verdict for answer in found.answers}
    assert by_rival.pop("gat") == "does not hold"
    assert set(by_rival.values()) == {"holds"}
    assert str(found) == (
        "demonet-hash (paper): does not hold: above sage, gcn, gcn-cheby, union, intersection; below gat"
    )


def test_gin_and_floors_stand_beside():
    def level(dataset, method, preset):
        return 0.9 if method in ("gin", "degree-knn") else ours_above(0.1)(dataset, method, preset)

    rows = made("nodes", level)
    assert {one.verdict for one in said(rows, "networks").values()} == {"holds"}
    beside = [a for a in answers(rows) if a.claim == "networks" and a.beside and a.over == ALL]
    assert {a.verdict for a in beside if a.rival.name in ("gin", "degree-knn")} == {"does not hold"}
    attributes = {a.sets for a in beside if a.rival.name == "attribute-lr"}
    assert attributes == {("blogcatalog", "flickr")}


def test_a_missing_set_is_named_and_leaves_the_claim_open():
    rows = [r for r in made("nodes", ours_above(0.1)) if (r.dataset, r.method) != ("flickr", "gat")]
    found = said(rows, "networks")[MethodPreset("demonet-hash", "paper")]
    assert found.verdict == "not yet run"
    (gat,) = [answer for answer in found.answers if answer.rival.name == "gat"]
    assert gat.missing == ("flickr",)
    assert "flickr" not in gat.sets
    assert gat.difference == pytest.approx(0.1, abs=0.02)
    assert math.isnan(gat.corrected)
    assert {a.verdict for a in found.answers if a is not gat} == {"holds"}


def test_fewer_runs_than_wanted_are_shown_and_not_judged():
    rows = [r if r.method != "gcn" else row(*key(r), r.values[:4]) for r in made("nodes", ours_above(0.1))]
    for answer in answers(rows):
        if answer.claim == "networks" and answer.rival.name == "gcn":
            assert answer.verdict == "not yet run"
            assert answer.runs == 4


def key(r):
    return r.part, r.dataset, r.method, r.preset, r.split


def test_one_set_is_the_paired_test_of_that_set():
    rows = made("nodes", ours_above(0.01), noise=0.02)
    (answer,) = [
        a
        for a in answers(rows)
        if (a.subject, a.rival.name, a.over) == (MethodPreset("demonet-hash", "paper"), "gcn", "brazil")
    ]
    values = {(r.method, r.preset): r.values for r in rows if r.dataset == "brazil"}
    direct = paired(values["demonet-hash", "paper"], values["gcn", ""], ratio_of("thirds"))
    assert (answer.difference, answer.low, answer.high, answer.p) == pytest.approx(
        (direct.mean, direct.low, direct.high, direct.p)
    )


def test_corrections_are_over_the_whole_claim():
    rows = made("nodes", ours_above(0.01), noise=0.03)
    found = [a for a in answers(rows) if a.claim == "networks" and not a.beside]
    for family in ([a for a in found if a.over == ALL], [a for a in found if a.over != ALL]):
        assert [a.corrected for a in family] == pytest.approx(holm([a.p for a in family]))
    assert len(found) == 30 + 30 * 7


def test_embeddings_average_the_shares_of_training_nodes_within_a_run():
    rows = made("splits", ours_above(0.05), noise=0.02)
    found = said(rows, "embeddings")
    assert {one.verdict for one in found.values()} == {"holds"}
    (answer,) = [
        a for a in answers(rows) if (a.subject.name, a.rival.name, a.over) == ("demonet-weight", "rolx", "usa")
    ]
    first, second = (
        np.mean([r.values for r in rows if (r.dataset, r.method) == ("usa", name)], axis=0).tolist()
        for name in ("demonet-weight", "rolx")
    )
    assert answer.difference == pytest.approx(np.mean(first) - np.mean(second))
    # From 10 % to 90 % in equal steps, half of the nodes are tested on average: as many as are known.
    assert answer.p == pytest.approx(paired(first, second, 1.0).p)
    assert answer.runs == RUNS


def test_one_share_missing_leaves_the_set_open():
    rows = [r for r in made("splits", ours_above(0.1)) if (r.method, r.split) != ("rolx", "train:0.9")]
    found = [a for a in answers(rows) if a.claim == "embeddings" and a.rival.name == "rolx"]
    assert {a.verdict for a in found} == {"not yet run"}
    assert all(math.isnan(a.difference) for a in found)


def test_pooling_compares_each_scheme_with_its_own_mean():
    def level(dataset, method, preset):
        return {"demonet-hash": 0.7, "demonet-m-hash": 0.6, "demonet-weight": 0.5, "demonet-m-weight": 0.6}.get(
            method, 0.4
        )

    found = said(made("graphs", level), "pooling")
    assert {str(subject): one.verdict for subject, one in found.items()} == {
        "demonet-hash (paper)": "holds",
        "demonet-weight (paper)": "does not hold",
    }


def test_other_parts_are_not_mixed_in():
    rows = made("nodes", ours_above(0.1))
    elsewhere = [row("comparison", *key(r)[1:], [0.0] * RUNS) for r in rows]
    assert answers(rows + elsewhere)[:40] == answers(rows)[:40]
