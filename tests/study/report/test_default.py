"""The part ``default``: its cells, where the ensemble stands, its members, the page and the short table."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from tests.study.report.paper_rows import filled

from demonet import methods
from demonet.data.catalog import CATALOG, find
from demonet.methods.demonet import DemoNet
from demonet.sealed import canonical
from demonet_study.experiments.accuracy import GENERATED, family_in_catalog, method, rule_method
from demonet_study.ledger.job import Cell, Job, Outcome, Result, Stamp
from demonet_study.ledger.store import Ledger
from demonet_study.protocol import folds_of, train_share
from demonet_study.report.claims import ALL, MethodPreset, answers, claim_sections, verdicts
from demonet_study.report.files import write_files
from demonet_study.report.parts import PARTS, Entry, Part
from demonet_study.report.parts.default import ARM_SETS, DEFAULT, RULES, SETS, inside, is_demo, members_table
from demonet_study.report.standing import in_words, standings

STAMP = Stamp("c0de", "{}", "cpu")
COMPARED = (*ARM_SETS, *GENERATED)


def rows(level, noise=0.01, seed=0):
    """All rows in full: ``level(row)`` and a little noise, other noise for every method."""
    generator = np.random.default_rng(seed)
    return [filled(row, level(row) + noise * generator.standard_normal(row.wanted)) for row in DEFAULT.rows({})]


def ours_above(by):
    return lambda row: 0.5 + by * (row.method == "demonet-auto")


def test_cells_are_there_once_under_each_rule_and_can_be_made():
    entries = DEFAULT.entries()
    assert len({(entry.cell, entry.rule) for entry in entries}) == len(entries)
    for entry in entries:
        if entry.cell.kind == "default":
            rule_method(entry.cell)  # a wrong name or option is an error here, not after hours
    own = [entry for entry in entries if not entry.borrowed]
    assert {entry.cell.kind for entry in own} == {"default"}
    strict, refit = ({entry.cell for entry in own if entry.rule == rule} for rule in RULES)
    assert strict == {entry.cell for entry in own}
    assert strict - refit == {cell for cell in strict if cell.method == "demonet-kernel" and cell.options != "{}"}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("by", "verdict"), [(0.2, "above all"), (-0.2, "below some"), (0.0, "level")])
def test_where_the_ensemble_stands(rule, by, verdict):
    found = standings(rows(ours_above(by)), rule)
    assert [one.ours.dataset for one in found] == list(SETS)
    assert {one.over_splits.words for one in found} == {one.new_data.words for one in found} == {verdict}
    for one in found:
        assert one.difference.low < by < one.difference.high or one.difference.mean == pytest.approx(by, abs=0.02)
        assert bool(one.new_data.below) == bool(one.over_splits.below) == (by < 0)
        assert one.missing == ()
    said = in_words(found, rule)
    assert f"`{rule}`" in said
    assert "11 of 11" in said
    assert "Flickr" in said


def test_one_rival_above_is_enough_and_is_named():
    def level(row):
        strong = row.method == "wl-1nn" and row.dataset == "ENZYMES" and row.rule == "refit"
        return 0.9 if strong else ours_above(0.2)(row)

    made = rows(level)
    assert {one.new_data.words for one in standings(made, "strict")} == {"above all"}
    found = {one.ours.dataset: one for one in standings(made, "refit")}
    assert found["ENZYMES"].new_data.words == "below some"
    assert found["ENZYMES"].new_data.below == ("nearest, WL colours",) == (found["ENZYMES"].best.full_name,)
    assert {one.new_data.words for name, one in found.items() if name != "ENZYMES"} == {"above all"}
    assert "10 of 11" in in_words(list(found.values()), "refit")


def test_a_missing_run_leaves_the_verdict_open():
    made = rows(ours_above(0.2))
    short = [
        filled(row, row.values[:-1]) if (row.dataset, row.method, row.rule) == ("usa", "gcn", "strict") else row
        for row in made
    ]
    found = {one.ours.dataset: one for one in standings(short, "strict")}
    assert found["usa"].new_data.words == "not yet run"
    assert len(found["usa"].missing) == 1 or set(found["usa"].missing) == {"GCN", "GCN, our inputs"}
    assert found["usa"].best is None  # the best of some rivals would flatter us
    assert {one.new_data.words for name, one in found.items() if name != "usa"} == {"above all"}
    assert {one.new_data.words for one in standings(short, "refit")} == {"above all"}
    empty = standings(DEFAULT.rows({}), "strict")
    assert {one.new_data.words for one in empty} == {"not yet run"}
    assert "not yet run" in in_words(empty, "strict")


def test_the_fourth_claim_is_paired_corrected_and_strict():
    def level(row):
        pays = row.dataset in ("flickr", "flip") and row.method == "demonet-kernel" and row.rule == "strict"
        return 0.5 + 0.2 * pays

    made = rows(level)
    found = [one for one in answers(made) if one.claim == "degree"]
    single = {(one.rival.name, one.over): one for one in found if one.over != ALL}
    assert {over for _, over in single} == set(COMPARED)
    for rival in ("demonet-kernel-none", "demonet-kernel-shuffled"):
        assert {over for over in COMPARED if single[rival, over].verdict == "holds"} == {"flickr", "flip"}
        (over_all,) = [one for one in found if (one.over, one.rival.name) == (ALL, rival)]
        assert set(over_all.sets) == set(ARM_SETS)  # generated graphs do not count in the mean
        assert over_all.difference.mean == pytest.approx(0.2 / len(ARM_SETS), abs=0.01)
    assert [v.subject for v in verdicts(answers(made)) if v.claim.name == "degree"] == [MethodPreset("demonet-kernel")]
    sections = {section.anchor: section for section in claim_sections(verdicts(answers(made)), answers(made))}
    assert [column.name for column in sections["claim-degree-sets"].head][-1] == "generated"


def run_of(cell, seed, extra):
    return Result(Job(cell, seed), STAMP, Outcome(0.7, 12.0, 500.0, extra))


def ensemble_results():
    cell = Cell("default", "brazil", "demonet-auto", split="thirds")
    extras = [
        {"refit": 0.8, "validation": 0.75, "weights": weights, "log_loss": {"strict": 0.6, "refit": loss}}
        for weights, loss in (({"machine": 0.5, "forest-degree": 0.5}, 0.5), ({"machine": 0.1, "network": 0.9}, 0.3))
    ]
    return {cell: [run_of(cell, seed, extra) for seed, extra in enumerate(extras)]}


def test_the_worth_of_members():
    found = inside(DEFAULT.entries(), ensemble_results())
    weights = {one.member: (one.weight, one.demo, one.runs) for one in found.members}
    assert weights == {
        "machine": (pytest.approx(0.3), True, 2),
        "forest-degree": (0.25, False, 2),
        "network": (0.45, True, 2),
    }
    (losses,) = found.losses
    assert (losses.log_loss_strict, losses.log_loss_refit) == (pytest.approx(0.6), pytest.approx(0.4))
    assert losses.demo_weight == pytest.approx(0.75)
    assert (losses.validation, losses.seconds) == (0.75, 12.0)
    table = members_table(found)
    assert [name for name, _ in table.groups] == ["DEMO-Net", "Others", "All together"]
    assert members_table(inside(DEFAULT.entries(), {})) is None
    assert not is_demo("forest-wl")


def test_borrowed_runs_alone_do_not_begin_the_part(tmp_path):
    """Tables 4 and 5 have been run, this part has not: the page leaves it out."""
    borrowed = next(entry.cell for entry in DEFAULT.entries() if entry.borrowed)
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.record(Job(borrowed, 0), STAMP, Outcome(0.5, 1.0, 1.0))
        written = write_files(ledger, [PARTS["nodes"], PARTS["graphs"]], tmp_path, runs=None, quick=False, summary=None)
    assert not any("default" in path.name for path in written)
    shown = (tmp_path / "tables" / "readme.md").read_text(encoding="utf-8").splitlines()[2:]
    assert {tuple(line.split(" | ")[1:5]) for line in shown} == {("not yet run",) * 4}


def test_rows_are_of_the_wanted_runs_in_the_order_of_seeds():
    cell, empty = Cell("accuracy", "usa", "gcn", split="train:0.3"), Cell("accuracy", "usa", "gin", split="thirds")
    entries = [Entry(cell, 3, "train 30%"), Entry(empty, 3, method="other")]
    part = Part("made", "Made", "How.", lambda: entries, lambda: entries[:1])
    values = ((1, 0.6), (0, 0.5), (2, 0.7), (3, 9.9))  # the fourth is not wanted
    done = {cell: [Result(Job(cell, seed), STAMP, Outcome(value, seed, 500 + seed)) for seed, value in values]}
    row, other = part.rows(done)
    assert (row.values, row.runs, row.wanted, row.seconds, row.peak_memory_mb) == ((0.5, 0.6, 0.7), 3, 3, 1.0, 500)
    assert (other.method, other.runs, other.wanted, other.values, other.device) == ("other", 0, 3, (), "")
    assert math.isnan(other.mean)
    assert part.rows(done, runs=2)[0].values == (0.5, 0.6)
    assert [each.method for each in part.rows(done, quick=True)] == ["gcn"]


ACCURACY = ("nodes", "splits", "graphs", "layers", "ablation", "comparison", "reasons")


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
