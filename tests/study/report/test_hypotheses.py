"""Claims are answered from rows: what is there decides, what is missing is said to be missing."""

import math

import numpy as np
import pytest
from tests.study.report.paper_rows import filled

from demonet.runs.statistics import holm, paired
from demonet_study.report.claims import ALL, CLAIMS, MethodPreset, answers, verdicts
from demonet_study.report.parts import PARTS

RUNS = 10


def made(part, level, *, noise=0.01, seed=0):
    """Rows for every cell of a part: ``level(dataset, method, preset)`` and a little noise, the same splits for all."""
    generator = np.random.default_rng(seed)
    return [
        filled(row, level(row.dataset, row.method, row.preset) + noise * generator.standard_normal(row.wanted))
        for row in PARTS[part].rows({}, RUNS)
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
        assert answer.difference is None
        assert math.isnan(answer.corrected)


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
        assert all(a.difference.mean == pytest.approx(by, abs=0.02) for a in one.answers)
        assert all(a.difference.low < by < a.difference.high for a in one.answers)


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


def test_a_missing_set_is_named_and_leaves_the_claim_open():
    rows = [r for r in made("nodes", ours_above(0.1)) if (r.dataset, r.method) != ("flickr", "gat")]
    found = said(rows, "networks")[MethodPreset("demonet-hash", "paper")]
    assert found.verdict == "not yet run"
    (gat,) = [answer for answer in found.answers if answer.rival.name == "gat"]
    assert gat.missing == ("flickr",)
    assert "flickr" not in gat.sets
    assert gat.difference.mean == pytest.approx(0.1, abs=0.02)
    assert math.isnan(gat.corrected)
    assert {a.verdict for a in found.answers if a is not gat} == {"holds"}


def test_corrections_are_over_the_whole_claim():
    rows = made("nodes", ours_above(0.01), noise=0.03)
    found = [a for a in answers(rows) if a.claim == "networks" and not a.beside]
    for family in ([a for a in found if a.over == ALL], [a for a in found if a.over != ALL]):
        assert [a.corrected for a in family] == pytest.approx(holm([a.difference.p for a in family]))
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
    assert answer.difference.mean == pytest.approx(np.mean(first) - np.mean(second))
    # From 10 % to 90 % in equal steps, half of the nodes are tested on average: as many as are known.
    assert answer.difference.p == pytest.approx(paired(first, second, 1.0).p)
    assert answer.difference.runs == RUNS
