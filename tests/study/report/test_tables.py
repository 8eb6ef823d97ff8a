"""Markdown and LaTeX tables, by hand."""

from __future__ import annotations

import re
from functools import partial

import pytest
from tests.report.conftest import HOSTILE
from tests.study.report.paper_rows import paper_rows, row

from demonet_study.report.grid import Layout
from demonet_study.report.markup import escape_latex, escape_markdown, latex, markdown, readme
from demonet_study.report.parts import PARTS

ROWS = [
    row(method="demonet-hash", preset="paper", values=[0.6, 0.7], paper=0.614, paper_std=0.069),
    row(method="gcn-cheby", values=[0.5, 0.6], wanted=50),
    row(dataset="usa", method="gcn-cheby"),
    row(dataset="usa", method="majority", values=[0.25, 0.25]),
]


def test_markdown_by_hand():
    table = markdown(Layout(), ROWS, "Table 4").split("\n\n")[-1]
    assert table.splitlines() == [
        "| method | Brazil | USA |",
        "|---|--:|--:|",
        "| *DEMO-Net* |  |  |",
        "| DEMO-Net (hash), paper | **0.650 ± 0.071** (0.614) ● | – |",
        "| *Compared with* |  |  |",
        r"| GCN\_cheby | 0.550 ± 0.071, 2 of 50 runs | not yet run |",
        "| *Floors* |  |  |",
        "| majority | – | **0.250 ± 0.000** |",
    ]


def test_latex_by_hand():
    text = latex("nodes", Layout(), ROWS, "Table 4")
    assert r"\begin{tabular}{lrr}" in text
    assert r"DEMO-Net (hash), paper & \textbf{0.650 $\pm$ 0.071} (0.614) $\bullet$ & -- \\" in text
    assert r"GCN\_cheby & 0.550 $\pm$ 0.071, 2 of 50 runs & not yet run \\" in text
    assert [text.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 3, 1]


def test_every_table_of_a_part_has_its_own_label():
    text = latex("graphs", PARTS["graphs"].layout, paper_rows(quick=True)["graphs"], "Table 5")
    assert re.findall(r"\\label{(.*)}", text) == ["tab:graphs-thirds", "tab:graphs-nested-10-fold"]
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 2


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_escaped(text):
    assert not re.search(r"(?<!\\)[&%#_]", escape_latex(text).replace(r"\textless", "").replace("$", ""))
    assert not re.search(r"[<>\u2028]", escape_markdown(text))
    assert not re.search(r"(?<!\\)[|`*]", escape_markdown(text))


def test_fewer_milliseconds_are_better():
    speed = [row("speed", "uniform-1000", method, values) for method, values in (("gcn", [2.0]), ("gat", [9.0]))]
    assert "| GCN | **2.0** |" in markdown(PARTS["speed"].layout, speed, "Figure")


def test_the_short_table_of_the_readme():
    nodes = [
        row(method="demonet-hash", preset="paper", values=[0.6, 0.6], paper=0.614),
        row(method="demonet-hash", preset="authors", values=[0.9, 0.9]),
        row(method="demonet-weight", preset="paper", paper=0.543),
    ]
    graphs = [row("graphs", "MUTAG", "gin", [0.8], split="nested:10"), row("graphs", "PTC", "gin", [0.6, 0.6])]
    brazil, ptc = [line.split(" | ") for line in readme(nodes, graphs).splitlines()[2:]]
    assert brazil == ["| Brazil", *["not yet run"] * 4, "0", "0.600 / not yet run", "0.614 / 0.543 |"]
    assert ptc == ["| PTC", *["not yet run"] * 4, "0", "–", "– |"]


@pytest.mark.parametrize(("write", "bold"), [(markdown, "**0.700"), (partial(latex, "nodes"), r"\textbf{0.700")])
def test_a_cell_whose_runs_are_missing_is_not_the_best(write, bold):
    few, whole = row(values=[0.9, 0.9], wanted=10), row(method="gat", values=[0.6, 0.8])
    text = write(Layout(), [few, whole], "Table")
    assert bold in text
    assert "0.900" in text
    assert bold.replace("700", "900") not in text
