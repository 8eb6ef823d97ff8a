"""The page of the paper's experiments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from demonet.report import chart_plotly
from demonet.report.chart import Chart
from demonet.report.page import Facts, Figure, Legend, Page, Section, Table, Text
from demonet.report.table_cells import Beside, Cell, Column, Verdict
from demonet_study.report import parts as registry
from demonet_study.report.claims import CLAIMS, WORDS, ClaimVerdict, answers, claim_sections, verdicts
from demonet_study.report.grid import NOT_YET, Grid, ResultRow, beside, grids, verdict
from demonet_study.report.parts.part import Part, Shown
from demonet_study.report.reasons import count_table, counts, miss_sections, misses

Rows = Mapping[str, Sequence[ResultRow]]  # of each part
Extras = Mapping[str, Any]  # the extra data of the parts that have any

TITLE = "DEMO-Net, reproduced"
SUBTITLE = "The experiments of Wu, He and Xu (KDD'19), with every printed number and with simple baselines (floors)"
READING = """Every number is a mean over runs. Run i of every method uses split i and seed i, so methods are compared \
run by run. Epochs and settings are selected on the validation part; the test part is used once. Floors are simple \
baselines without a network: some use the degree, some local structure or the attributes alone, some add the \
neighbours' attributes or count Weisfeiler-Lehman colours. A network that is below them has not shown that it is needed.

The tint and mark of a cell show how our mean compares with the number that the paper prints. Two standard deviations \
are those of single runs, ours or the printed ones, whichever is larger; differences that rounding to three digits may \
cause count as none. A cell that has not been run is empty and says so; one with fewer runs than wanted says how many \
it has. Click the head of a column to sort by it, and again to reverse the order."""
_IT = {"holds": "holds", "does not hold": "does not hold", "undecided": "is undecided", "not yet run": "is not yet run"}
SAMPLE = "ours, mean ± standard deviation; below it, the printed number"
MEANING: dict[Verdict, str] = {
    "same": "the printed mean is inside our 95\u00a0% interval",
    "near": "less than two standard deviations away",
    "above": "we are above by more than that",
    "below": "we are below by more than that",
}


def part_charts(rows: Rows, extras: Extras) -> dict[str, dict[str, Chart]]:
    """The figures of each part by name; those without data are left out."""
    drawn = {}
    for name, members in rows.items():
        charts = registry.PARTS[name].charts(members, extras.get(name))
        drawn[name] = {figure: chart for figure, chart in charts.items() if chart is not None}
    return drawn


def paper_page(rows: Rows, *, facts: Mapping[str, Any], extras: Extras | None = None) -> Page:
    """The page: the parts in the order of their rows, then facts, each a name with a text or number."""
    extras = extras or {}
    charts = part_charts(rows, extras)
    found = answers([row for members in rows.values() for row in members])
    judged = verdicts(found)
    sections: list[Section] = [
        *_opening(printed_rows(rows), judged),
        Text(READING, title="How to read this page", anchor="reading"),
        Legend(SAMPLE, MEANING, _example(printed_rows(rows))),
        _summary(rows),
        *claim_sections(judged, found),
    ]
    for name, members in rows.items():
        part = registry.PARTS[name]
        figures = [_figure(figure, chart) for figure, chart in charts[name].items()]
        shown = part.sections(Shown(members, figures, part_tables(part, members), extras.get(name)))
        sections += [Text(part.protocol, title=part.title, anchor=name), *(section for section in shown if section)]
    sections += miss_sections(misses(printed_rows(rows)))
    if facts:
        sections.append(Facts(facts, title="Versions and runs", anchor="versions"))
    return Page(TITLE, SUBTITLE, sections, contents=True)


def _opening(printed: Sequence[ResultRow], judged: Sequence[ClaimVerdict]) -> list[Section]:
    """What came out: printed cells of DEMO-Net that are alike, above and below, and a sentence for each claim."""
    ours = [row for row in printed if row.preset in ("paper", "authors") and not math.isnan(row.paper)]
    found = counts(ours)
    alike, missing = found["same"] + found["near"], found[NOT_YET]
    shown: dict[str, Cell] = {"like the printed number": alike, "above it": found["above"], "below it": found["below"]}
    if missing:
        shown[NOT_YET] = missing
    told = [
        f"The paper prints {len(ours)} cells of DEMO-Net that we compare with. Of the {len(ours) - missing} that were "
        f"run, {alike} are like the printed number ({found['same']} with it inside our 95\u00a0% interval, "
        f"{found['near']} less than two standard deviations away), {found['above']} are above it "
        f"and {found['below']} below."
    ]
    for number, claim in enumerate(CLAIMS, start=1):
        by: dict[str, list[str]] = {word: [] for word in WORDS}
        for one in judged:
            if one.claim.name == claim.name:
                by[one.verdict].append(str(one.subject))
        said = "; ".join(f"{_IT[word]} for {', '.join(names)}" for word, names in by.items() if names)
        told.append(f"Claim {number}. {claim.statement} It {said}.")
    return [Facts(shown, title="The verdict", anchor="verdict"), Text("\n\n".join(told))]


def part_tables(part: Part, rows: Sequence[ResultRow]) -> list[Section]:
    """The tables of a part."""
    found = grids(part.layout, rows)
    anchors = [f"{part.name}-table{f'-{index}' if len(found) > 1 else ''}" for index in range(1, len(found) + 1)]
    return [_grid_table(grid, anchor) for grid, anchor in zip(found, anchors, strict=True)]


def _grid_table(grid: Grid, anchor: str) -> Section:
    """A grid as a section; a click sorts the lines inside each group."""
    layout = grid.layout
    columns = [Column(layout.head)]
    for name in grid.columns:
        columns.append(Column(name, digits=layout.digits, best=layout.best, words=layout.words))
        columns += [Column("s", digits=1), Column("MB", digits=0)] if layout.cost else []
    rows: list[list[Cell]] = [
        [line.name, *(cell for row in line.rows for cell in (beside(row), *(_cost(row) if layout.cost else ())))]
        for line in grid.lines
    ]
    groups = [(name, len(lines)) for name, lines in grid.groups.items()]
    return Table(columns, rows, _caption(grid), groups, sortable=True, title=grid.title, anchor=anchor, below=True)


def _cost(row: ResultRow | None) -> tuple[Cell, Cell]:
    known = [] if row is None else [row.seconds, row.peak_memory_mb]
    return (None, None) if not known or any(map(math.isnan, known)) else (known[0], known[1])


def _caption(grid: Grid) -> str:
    """What the numbers of a table mean."""
    rows = [row for line in grid.lines for row in line.rows if row is not None]
    runs = sorted({row.runs for row in rows if row.runs})
    sentences = {
        "Mean ± standard deviation over the runs.": any(not math.isnan(row.std) for row in rows),
        "Below it, smaller: the printed number.": any(not math.isnan(row.paper) for row in rows),
        "The best of each column is bold.": grid.layout.best is not None,
        f"{runs[0]} to {runs[-1]} runs per cell." if runs else "": len(runs) > 1,
        f"{runs[0]} runs per cell." if runs else "": len(runs) == 1 and runs[0] > 1,
    }
    return " ".join(sentence for sentence, holds in sentences.items() if holds)


def _figure(name: str, chart: Chart) -> Section:
    drawn = chart_plotly.draw(chart)
    return Figure(drawn, chart.alt, chart.note, title=chart.title, anchor=f"{name}-figure", below=True)


def printed_rows(rows: Rows) -> list[ResultRow]:
    """The rows of the tables that the paper prints; other parts repeat some of them."""
    return [row for name, part in registry.PARTS.items() if part.printed for row in rows.get(name, ())]


def _example(rows: Sequence[ResultRow]) -> Beside | None:
    """The first cell that has both our runs and a printed number."""
    return next((beside(row) for row in rows if verdict(row)), None)


def _summary(rows: Rows) -> Section:
    printed = printed_rows(rows)
    kinds = {
        "DEMO-Net, preset paper": [row for row in printed if row.preset == "paper"],
        "DEMO-Net, preset authors": [row for row in printed if row.preset == "authors"],
        "baselines": [row for row in printed if not row.preset],
    }
    return count_table(kinds, anchor="summary", title="How many cells agree")
