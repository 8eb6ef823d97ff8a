"""Cells and tables of the paper's page: how a cell lies to the printed one, who is best, what is compared with what."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.conftest import HOSTILE
from tests.study.report.paper_rows import row

from demonet_study.report.compare import against_best_table, ranked
from demonet_study.report.grid import Layout, beside, verdict
from demonet_study.report.markup import escape_latex, escape_markdown, markdown
from demonet_study.report.page import part_tables
from demonet_study.report.parts import PARTS
from demonet_study.report.parts.changes import changes_table
from demonet_study.report.parts.tables import TABLE_4, TABLE_5


@pytest.mark.parametrize(
    ("values", "paper", "paper_std", "found"),
    [
        ([0.5, 0.6, 0.7], 0.65, math.nan, "same"),
        ([0.59, 0.6, 0.61] * 10, 0.615, math.nan, "near"),
        ([0.59, 0.6, 0.61] * 10, 0.5, math.nan, "above"),
        ([0.59, 0.6, 0.61] * 10, 0.7, 0.001, "below"),
        ([0.59, 0.6, 0.61] * 10, 0.7, 0.06, "near"),
        ([0.9984, 0.9984], 0.998, 0.0, "same"),
        ([0.6, 0.61], 0.64, math.nan, "below"),
        ([0.6], 0.7, math.nan, None),
        ([0.6], 0.7, 0.06, "near"),
        ([], 0.7, 0.06, None),
        ([0.6, 0.7], math.nan, math.nan, None),
    ],
)
def test_how_a_cell_lies_to_the_printed_one(values, paper, paper_std, found):
    assert verdict(row(values=values, paper=paper, paper_std=paper_std)) == found


def test_a_cell_says_what_is_missing():
    assert beside(None) is None
    assert beside(row(paper=0.7)).note == "not yet run"
    assert beside(row(values=[0.5, 0.6], wanted=50)).note == "2 of 50 runs"
    assert beside(row(values=[0.5, 0.6])).note == ""
    shown = part_tables(PARTS["nodes"], [row(paper=0.7)])[0].shown[0][1]
    assert (shown.text, shown.printed, shown.note, shown.order) == ("–", "0.700", "not yet run", "")


def test_what_lacks_runs_is_nobodys_best():
    """Neither the best baseline that others are compared with, nor ranked."""
    whole = [row(method=name, values=[value, value + 0.01, value]) for name, value in (("majority", 0.3), ("gin", 0.5))]
    short = row(method="degree-knn", values=[0.9, 0.91], wanted=50)
    ours = row(method="demonet-hash", preset="paper", values=[0.6, 0.61, 0.62])
    (line,) = against_best_table([*whole, short, ours], anchor="a").shown
    assert line[1].note.endswith("GIN")
    assert ranked([*whole, short, ours]).sets == ()


def test_a_run_without_a_number_is_not_called_missing():
    none = row(values=[math.nan, 0.5])
    assert beside(none).note == "a run gave no number"
    assert "a run gave no number" in markdown(Layout(), [none], "Nodes")


def test_differences_from_the_best_baseline_have_their_sign_p_and_rival():
    high, low = [0.8, 0.81, 0.82, 0.8] * 3, [0.5, 0.52, 0.51, 0.5] * 3
    table = against_best_table(
        [row(values=low), row(method="gin", values=low[::-1]), row(method="demonet-hash", preset="paper", values=high)],
        anchor="a",
    )
    ((name, cell),) = table.shown
    assert (name.text, cell.text, cell.verdict) == ("DEMO-Net (hash), paper", "+0.300", "above")
    assert cell.note.startswith("p < 0.001, G")
    assert against_best_table([row(values=[0.5])], anchor="a") is None


def test_changes_over_a_kind_of_sets_have_their_sign_and_say_what_is_missing():
    low, high = [0.5, 0.51, 0.5, 0.52] * 3, [0.8, 0.82, 0.81, 0.8] * 3
    full, changed = (row("ablation", variant=name, values=some) for name, some in (("full", high), ("less", low)))
    short = [replace(one, dataset="MUTAG", wanted=50) for one in (full, changed)]
    table = changes_table([full, changed, *short, row("ablation", "PTC", variant="less", wanted=10)], anchor="a")
    ((name, air, graphs),) = table.shown
    assert [column.name for column in table.head] == ["what is changed", "airports", "graphs"]
    assert (name.text, air.text, air.verdict, air.note) == ("less", "−0.300", "below", "p < 0.001")
    assert (graphs.text, graphs.verdict, graphs.note) == ("−0.300", None, "MUTAG, PTC: runs missing")
    assert "Airports: Brazil. Graphs: MUTAG, PTC." in table.caption
    assert changes_table([full], anchor="a") is None


def test_ranks_are_over_the_sets_that_have_every_method():
    some = [row(dataset=name, method=who, values=[value, value])
            for name in ("brazil", "usa") for who, value in (("gcn", 0.5), ("gin", 0.7))]  # fmt: skip
    found = ranked([*some, row(dataset="europe", values=[0.5]), row(dataset="europe", method="gin")])
    assert found.ranks == {"GCN": 2.0, "GIN": 1.0}
    assert (found.sets, found.left_out) == (("Brazil", "USA"), ("Europe",))
    assert list(PARTS["nodes"].charts(some, None)) == ["nodes-ranks"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_escaped(text):
    assert not re.search(r"(?<!\\)[&%#_]", escape_latex(text).replace(r"\textless", "").replace("$", ""))
    assert not re.search(r"[<>\u2028]", escape_markdown(text))
    assert not re.search(r"(?<!\\)[|`*]", escape_markdown(text))


SOURCE = Path(__file__).parents[3].parent / "shared" / "paper" / "demo-net-kdd19.tex.txt"
NAMES = {
    "sage": "GraphSAGE",
    "gcn": "GCN",
    "gcn-cheby": r"GCN\_cheby",
    "union": "{Union}",
    "intersection": "{Intersection}",
    "gat": "GAT",
    "deepwl": "DeepWL",
    "dcnn": "DCNN",
    "patchy-san": "PATCHY-SAN",
    "diffpool": "DIFFPOOL",
    "demonet-hash": r"\demonet (hash)",
    "demonet-weight": r"\demonet (weight)",
    "demonet-m-hash": r"\demonet\_m(hash)",
    "demonet-m-weight": r"\demonet\_m(weight)",
}


@pytest.mark.parametrize(
    ("table", "label", "sets", "methods"),
    [(TABLE_4, "tab:node_classification", 7, 8), (TABLE_5, "tab:graph_classification", 4, 8)],
)
def test_every_cell_is_the_one_in_the_source(table, label, sets, methods):
    assert len(table) == sets * methods
    if not SOURCE.exists():
        pytest.skip(f"the paper's source is not at {SOURCE}")
    text = SOURCE.read_text(encoding="utf-8")
    text = text[: text.index(rf"\label{{{label}}}")].rpartition(r"\begin{tabular}")[2]
    for method in {method for _, method in table}:
        line = next(line for line in text.splitlines() if re.match(rf"\s*{re.escape(NAMES[method])}[\s~&\\]", line))
        cells = re.findall(r"(0\.\d+)(?:\s*\\textpm\s*(0\.\d+))?", line)
        found = [(float(mean), float(std) if std else math.nan) for mean, std in cells]
        ours = [cell for (_, name), cell in table.items() if name == method]
        assert repr(found) == repr(ours), method
