"""The paper's numbers, as they stand in its source."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from demonet_study.report.printed import TABLE_4, TABLE_5

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
