"""The tables of the page: grids of a part, differences from the best baseline, ranks, misses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from demonet.data.catalog import CATALOG
from demonet.experiments.changes import BY_DEGREE, Change, kind_of, over_kinds
from demonet.experiments.statistics import AgainstBest, Difference, Ranks, against_best, average_ranks, ratio_of
from demonet.report.cells import Beside, Cell, Column, Verdict
from demonet.report.page import Section, Table, Text
from demonet.report.paper.account import Miss, counts
from demonet.report.paper.grid import NOT_YET, Grid, beside, grids
from demonet.report.paper.words import OURS, group_of, row_name, set_name

if TYPE_CHECKING:
    from demonet.experiments.parts.row import Row

LEVEL = 0.05
MISSES = """Cells of the presets `paper` and `authors` whose mean is more than two standard deviations off the printed \
one, by the larger of our deviation and the printed one, and why."""


def part_tables(part: str, rows: Sequence[Row]) -> list[Section]:
    """A table for each grid of a part."""
    found = grids(part, rows)
    anchors = [f"{part}-table{f'-{index}' if len(found) > 1 else ''}" for index in range(1, len(found) + 1)]
    return [
        _grid_table(grid, anchor=anchor, cost=part == "comparison") for grid, anchor in zip(found, anchors, strict=True)
    ]


def _grid_table(grid: Grid, *, anchor: str, cost: bool) -> Section:
    """A grid as it stands in the page: groups apart, a click sorts inside each; with ``cost``, seconds and memory."""
    columns = [Column(grid.head)]
    for name in grid.columns:
        columns.append(Column(name, digits=grid.digits, best=grid.best, words=grid.words))
        columns += [Column("s", digits=1), Column("MB", digits=0)] if cost else []
    rows: list[list[Cell]] = [
        [line.name, *(cell for row in line.rows for cell in (beside(row), *(_cost(row) if cost else ())))]
        for line in grid.lines
    ]
    groups = [(name, len(lines)) for name, lines in grid.groups.items()]
    return Table(columns, rows, _caption(grid), groups, sortable=True, title=grid.title, anchor=anchor, below=True)


def _cost(row: Row | None) -> tuple[Cell, Cell]:
    known = [] if row is None else [row.seconds, row.peak_memory_mb]
    return (None, None) if not known or any(map(math.isnan, known)) else (known[0], known[1])


def _caption(grid: Grid) -> str:
    """What the numbers of a table are, as far as it has such numbers."""
    rows = [row for line in grid.lines for row in line.rows if row is not None]
    runs = sorted({row.runs for row in rows if row.runs})
    said = {
        "Mean ± standard deviation over the runs.": any(not math.isnan(row.std) for row in rows),
        "Below it, smaller: what the paper prints.": any(not math.isnan(row.paper) for row in rows),
        "The best of each column is bold.": grid.best is not None,
        f"{runs[0]} to {runs[-1]} runs a cell." if runs else "": len(runs) > 1,
        f"{runs[0]} runs a cell." if runs else "": len(runs) == 1 and runs[0] > 1,
    }
    return " ".join(words for words, holds in said.items() if holds)


def against_best_table(rows: Sequence[Row], *, anchor: str) -> Section | None:
    """Each of our methods beside the best baseline of a set, floors included, on the same splits."""
    found: dict[tuple[str, str], AgainstBest] = {}
    for dataset in dict.fromkeys(row.dataset for row in rows):
        here = [row for row in rows if row.dataset == dataset]
        ours = [row for row in here if group_of(row.method) == OURS]
        rivals = [row for row in here if row not in ours and row.whole]
        values = {row_name(row): row.values for row in (*ours, *rivals)}
        for one in against_best(values, [row_name(row) for row in rivals], ratio_of(here[0].split)):
            found[one.method, dataset] = one
    if not found:
        return None
    sets = list(dict.fromkeys(dataset for _, dataset in found))
    methods = list(dict.fromkeys(method for method, _ in found))
    cells: list[list[Cell]] = [[method, *(_gap(found.get((method, name))) for name in sets)] for method in methods]
    columns = [Column("method"), *(Column(set_name(name), signed=True) for name in sets)]
    caption = (
        "Mean difference of test accuracy from the best baseline of the set, floors included, run by run on the same "
        "splits, ± half its 95 % interval by the corrected resampled t-test; p by Holm over all comparisons of a set. "
        f"▲ and ▼: p below {LEVEL}."
    )
    title = "Against the best baseline"
    return Table(columns, cells, caption, sortable=True, title=title, anchor=anchor, below=True)


def _gap(found: AgainstBest | None) -> Cell:
    if found is None:
        return Beside(math.nan, math.nan, note=NOT_YET)
    return _tested(found.difference, found.corrected, f"p {in_words(found.corrected)}, {found.baseline}")


def _tested(gap: Difference, p: float, note: str) -> Beside:
    """A difference, ± half its interval, marked where p is small."""
    verdict: Verdict | None = None
    if p < LEVEL:
        verdict = "above" if gap.mean > 0 else "below"
    return Beside(gap.mean, (gap.high - gap.low) / 2, verdict=verdict, note=note)


def changes_table(rows: Sequence[Row], *, anchor: str) -> Section | None:
    """What each change to one model brings over the sets of a kind."""
    found = {(one.variant, one.kind): one for one in over_kinds(rows)}
    if not found:
        return None
    variants, kinds = (list(dict.fromkeys(key[i] for key in found)) for i in (0, 1))
    cells: list[list[Cell]] = [
        [variant, *(_brings(found.get((variant, kind))) for kind in kinds)] for variant in variants
    ]
    columns = [Column("what is changed"), *(Column(kind, signed=True) for kind in kinds)]
    members = {kind: list(dict.fromkeys(row.dataset for row in rows if kind_of(row.dataset) == kind)) for kind in kinds}
    caption = (
        "Mean difference of test accuracy from the full model, run by run on the same splits, each set counting once, "
        "± half its 95 % interval by the corrected resampled t-test; p by Holm over the whole table. "
        f"▲ and ▼: p below {LEVEL}. "
        + " ".join(f"{kind.capitalize()}: {', '.join(map(set_name, sets))}." for kind, sets in members.items())
    )
    title = f"Over the sets of a kind: {row_name(rows[0])}"
    return Table(columns, cells, caption, sortable=True, title=title, anchor=anchor, below=True)


def _brings(found: Change | None) -> Cell:
    if found is None:
        return None
    if found.difference is None:
        return Beside(math.nan, math.nan, note=NOT_YET)
    lacking = f"{', '.join(map(set_name, found.missing))}: runs missing"
    return _tested(found.difference, found.p, lacking if found.missing else f"p {in_words(found.p)}")


def in_words(p: float) -> str:
    """A p value.

    >>> in_words(0.0301), in_words(1e-9)
    ('0.030', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def ranked(rows: Sequence[Row]) -> Ranks:
    """Average ranks over the sets; methods that are not made for all of them stand aside."""
    sets = list(dict.fromkeys(row.dataset for row in rows))
    means = {
        name: {row_name(row): row.mean if row.whole else math.nan for row in rows if row.dataset == name}
        for name in sets
    }
    methods = [name for name in dict.fromkeys(map(row_name, rows)) if all(name in means[each] for each in sets)]
    return average_ranks({set_name(name): means[name] for name in sets}, methods)


def rank_note(rows: Sequence[Row], found: Ranks) -> str:
    """Who is not ranked, which sets say little, and whether there is anything to rank."""
    aside = [name for name in dict.fromkeys(map(row_name, rows)) if name not in found.ranks]
    sets = {row.dataset for row in rows}
    checks = [set_name(name) for name in CATALOG if name in sets and kind_of(name) == BY_DEGREE]
    said = {
        f"Not ranked, as not made for all of these sets: {', '.join(aside)}.": aside,
        f"{' and '.join(checks)}: a check, not evidence.": checks,
        f"Friedman's test that all are alike: p {in_words(found.friedman)}.": not math.isnan(found.friedman),
    }
    return " ".join(words for words, holds in said.items() if holds)


def count_table(parts: Mapping[str, Sequence[Row]], *, anchor: str, title: str) -> Section:
    """How many printed cells are met, by part and by whose method it is."""
    rows: list[list[Cell]] = []
    for words, members in parts.items():
        if found := counts(members):
            rows.append([words, *found.values(), sum(found.values())])
    columns = [Column(""), *(Column(name) for name in ("same", "near", "above", "below", "not yet run", "cells"))]
    caption = (
        "Cells of which the paper prints a number, by how ours lies to it. Near goes by the deviation of single runs, "
        "which is wider than that of a mean: two means that are near may still differ."
    )
    return Table(columns, rows, caption, title=title, anchor=anchor, below=True)


def miss_sections(missed: Sequence[Miss]) -> list[Section]:
    """Every cell of a preset that is more than two deviations off, under the reason for it."""
    intro = MISSES if missed else "Every cell that has been run is within two standard deviations of the printed one."
    sections: list[Section] = [Text(intro, title="Where we do not match the paper", anchor="misses")]
    for number, reason in enumerate(dict.fromkeys(miss.reason for miss in missed), start=1):
        rows: list[list[Cell]] = [
            [miss.name, beside(miss.row), miss.deviations] for miss in missed if miss.reason == reason
        ]
        columns = [Column("cell"), Column("here, and printed"), Column("deviations off", digits=1)]
        anchor = f"misses-{number}"
        sections.append(Text(reason.text, title=reason.title, anchor=anchor, below=True))
        sections.append(Table(columns, rows, "", sortable=True))
    return sections
