"""The rows of a part as tables: methods down, data sets (or shares, layers, sizes) across, in groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from demonet.report.table_cells import Beside, Cell, Column, Verdict
from demonet_study.experiments.statistics import Comparison
from demonet_study.report.names import COMPARED, FLOORS, OURS, group_of, method_name, set_name

ROUNDING = 0.0005
"""Printed numbers have three digits; smaller differences count as none."""
NOT_YET = "not yet run"


@dataclass(frozen=True)
class ResultRow:
    """A row of ``results/<part>.csv``: the mean over the runs of a cell."""

    # What it is; preset is empty for baselines.
    part: str
    dataset: str
    method: str
    preset: str
    variant: str  # what differs within a method, such as "layers=3"; may be empty
    # The protocol, and its share of training items (NaN if it names none).
    split: str
    train_fraction: float
    # Mean, standard deviation, and half the 95 % interval of the mean by Student's t; NaN if there are too few runs.
    mean: float
    std: float
    ci95: float
    # How many runs there are and how many are wanted.
    runs: int
    wanted: int
    # What the paper prints; NaN if nothing.
    paper: float
    paper_std: float
    # Mean processor time of a run, and the smallest peak memory.
    seconds: float
    peak_memory_mb: float
    # From the stamp that all these runs share.
    device: str
    code: str
    values: tuple[float, ...] = ()  # all runs in the order of seeds; not in the file
    rule: str = ""  # "strict" or "refit"; empty in parts that have only one, whose files do not have this column

    @property
    def whole(self) -> bool:
        """Whether all wanted runs are there and have a mean. Other rows are never marked as best."""
        return self.runs >= self.wanted and not math.isnan(self.mean)

    @property
    def name(self) -> str:
        """Method and preset, as a table shows them."""
        return method_name(self.method, self.preset)

    @property
    def full_name(self) -> str:
        """Method, preset and variant."""
        return method_name(self.method, self.preset, self.variant)


@dataclass(frozen=True)
class Layout:
    """How the rows of a part become tables."""

    # The title of the table that a row belongs to; empty if the part has only one.
    table: Callable[[ResultRow], str] = lambda row: ""
    column: Callable[[ResultRow], str] = lambda row: set_name(row.dataset)
    line: Callable[[ResultRow], str] = lambda row: row.name
    # Whether the largest or the smallest number of a column is marked, or none.
    best: Literal["max", "min"] | None = "max"
    digits: int = 3
    words: Mapping[float, str] | None = None  # texts that replace some numbers, such as "yes" for 1
    head: str = "method"  # the heading of the column of names
    cost: bool = False  # whether the page shows seconds and memory, too


@dataclass(frozen=True)
class Line:
    """A line of a table: its row in each column, ``None`` where the method does not apply."""

    name: str
    rows: tuple[ResultRow | None, ...]


@dataclass(frozen=True)
class Grid:
    """A table: its columns, and its lines by group. Groups without lines are left out."""

    title: str
    columns: tuple[str, ...]
    groups: dict[str, list[Line]]
    layout: Layout

    @property
    def lines(self) -> list[Line]:
        """All lines, in order."""
        return [line for lines in self.groups.values() for line in lines]


def grids(layout: Layout, rows: Sequence[ResultRow]) -> list[Grid]:
    """The tables of a part; lines and columns are in the order of the rows."""
    return [
        _grid(title, [row for row in rows if layout.table(row) == title], layout)
        for title in dict.fromkeys(map(layout.table, rows))
    ]


def _grid(title: str, rows: Sequence[ResultRow], layout: Layout) -> Grid:
    columns = tuple(dict.fromkeys(map(layout.column, rows)))
    places = {(layout.line(row), layout.column(row)): row for row in rows}
    groups: dict[str, list[Line]] = {}
    for group in (OURS, COMPARED, FLOORS):
        names = dict.fromkeys(layout.line(row) for row in rows if group_of(row.method) == group)
        if names:
            groups[group] = [Line(name, tuple(places.get((name, column)) for column in columns)) for name in names]
    return Grid(title, columns, groups, layout)


def beside(row: ResultRow | None) -> Beside | None:
    """A row as a cell of the page."""
    if row is None:
        return None
    note = f"{row.runs} of {row.wanted} runs" if 0 < row.runs < row.wanted else ""
    if math.isnan(row.mean):
        note = why_empty(row)
    return Beside(row.mean, row.std, row.paper, row.paper_std, verdict(row), note)


def why_empty(row: ResultRow) -> str:
    """Why a row has no mean."""
    return "a run gave no number" if row.runs else NOT_YET


def verdict(row: ResultRow) -> Verdict | None:
    """How our mean compares with the printed number.

    ``"same"``: the printed number is inside the 95 % interval of our mean, and less than two deviations away.
    ``"near"``: it is less than two standard deviations away, by the larger of ours and the printed one. Otherwise
    ``"above"`` or ``"below"``. ``None`` if one of the numbers or every deviation is missing. Rows without a split
    (the properties of Table 1) have no deviation: they are equal or not.
    """
    away = row.mean - row.paper
    spread = two_deviations(row) if row.split else 0.0
    if math.isnan(away) or math.isnan(spread):
        return None
    if abs(away) <= (0.0 if math.isnan(row.ci95) else min(row.ci95, spread)) + ROUNDING:
        return "same"
    if abs(away) <= spread + ROUNDING:
        return "near"
    return "above" if away > 0 else "below"


def two_deviations(row: ResultRow) -> float:
    """Twice the larger of our standard deviation and the printed one; NaN if there is neither."""
    return 2 * max((value for value in (row.std, row.paper_std) if not math.isnan(value)), default=math.nan)


def difference_cell(found: Comparison | None, note: str = "") -> Beside:
    """A difference ± half its interval as a cell of the page, marked if its corrected p is small."""
    if found is None or found.difference is None:
        return Beside(math.nan, math.nan, note=note or NOT_YET)
    marks: dict[int, Verdict] = {1: "above", -1: "below"}
    half = (found.difference.high - found.difference.low) / 2
    return Beside(found.difference.mean, half, verdict=marks.get(found.way(found.corrected)), note=note)


def cross(
    head: str, cells: Mapping[tuple[str, str], Cell], empty: Cell = None
) -> tuple[list[Column], list[list[Cell]]]:
    """The columns and rows of a table of differences, from its cells by row and column, in the order of the cells."""
    lines, names = (list(dict.fromkeys(key[place] for key in cells)) for place in (0, 1))
    columns = [Column(head), *(Column(name, signed=True) for name in names)]
    return columns, [[line, *(cells.get((line, name), empty) for name in names)] for line in lines]


def p_text(p: float) -> str:
    """A p value as text.

    >>> p_text(0.0301), p_text(1e-9)
    ('0.030', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
