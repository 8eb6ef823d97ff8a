"""Markdown and LaTeX tables, by hand."""

from __future__ import annotations

import re

import pytest
from tests.report.conftest import HOSTILE
from tests.study.report.paper_rows import row

from demonet_study.report.grid import Layout
from demonet_study.report.markup import escape_latex, escape_markdown, markdown

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


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_escaped(text):
    assert not re.search(r"(?<!\\)[&%#_]", escape_latex(text).replace(r"\textless", "").replace("$", ""))
    assert not re.search(r"[<>\u2028]", escape_markdown(text))
    assert not re.search(r"(?<!\\)[|`*]", escape_markdown(text))
