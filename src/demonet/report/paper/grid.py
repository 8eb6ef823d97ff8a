"""The rows of a part as tables: methods down, sets (or shares, layers, sizes) across, ours, others and floors apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from demonet.report.cells import Beside, Verdict
from demonet.report.paper.words import COMPARED, FLOORS, OURS, group_of, method_name, set_name

if TYPE_CHECKING:
    from demonet.experiments.parts.row import Row

ROUNDING = 0.0005
"""Printed numbers have three digits: a difference that rounding could have made is none."""
NOT_YET = "not yet run"


@dataclass(frozen=True)
class Line:
    """A method, and its row under each column; ``None`` where the method is not made for that set."""

    name: str
    rows: tuple[Row | None, ...]


@dataclass(frozen=True)
class Grid:
    """A table: for each group its lines.

    Attributes:
        title: What it is a table of; empty where the part has one table only.
        columns: What stands at the head of each.
        groups: Lines that belong together; those without lines are left out.
        best: Whether the largest or the smallest of a column wins, or nothing does.
        digits: After the point.
        words: What stands for some numbers, such as "yes" for 1.
        head: What stands above the names of lines.
    """

    title: str
    columns: tuple[str, ...]
    groups: dict[str, list[Line]]
    best: Literal["max", "min"] | None = "max"
    digits: int = 3
    words: Mapping[float, str] | None = None
    head: str = "method"

    @property
    def lines(self) -> list[Line]:
        """All lines, in order."""
        return [line for lines in self.groups.values() for line in lines]


@dataclass(frozen=True)
class Shape:
    """How the rows of a part become tables."""

    table: Callable[[Row], str]
    column: Callable[[Row], str]
    line: Callable[[Row], str] = lambda row: method_name(row.method, row.preset)
    best: Literal["max", "min"] | None = "max"
    digits: int = 3
    words: Mapping[float, str] | None = None
    head: str = "method"


def _with_variant(row: Row) -> str:
    return method_name(row.method, row.preset, row.variant)


_BY_SET = Shape(lambda row: "", lambda row: set_name(row.dataset))
_SHAPES = {
    "properties": Shape(
        lambda row: "", lambda row: row.dataset, _with_variant, best=None, words={1.0: "yes", 0.0: "no"}
    ),
    "graphs": Shape(lambda row: _protocol(row.split), lambda row: set_name(row.dataset)),
    "splits": Shape(lambda row: set_name(row.dataset), lambda row: f"{row.train_fraction:.0%}"),
    "layers": Shape(lambda row: set_name(row.dataset), lambda row: row.variant.removeprefix("layers=")),
    "ablation": Shape(
        lambda row: method_name(row.method, row.preset),
        lambda row: set_name(row.dataset),
        lambda row: row.variant,
        head="what is changed",
    ),
    "speed": Shape(
        lambda row: "",
        lambda row: f"{nodes_of(row):,.0f}",
        _with_variant,
        best="min",
        digits=1,
    ),
    "reasons": Shape(lambda row: "", lambda row: set_name(row.dataset), _with_variant, best=None),
    # The least distance is no merit of a method that does not tell the others apart.
    "identity": Shape(lambda row: "", lambda row: set_name(row.dataset), _with_variant, best=None),
}


def grids(part: str, rows: Sequence[Row]) -> list[Grid]:
    """The tables of a part, lines and columns in the order in which rows name them."""
    shape = _SHAPES.get(part, _BY_SET)
    return [
        _grid(title, [row for row in rows if shape.table(row) == title], shape)
        for title in dict.fromkeys(map(shape.table, rows))
    ]


def _grid(title: str, rows: Sequence[Row], shape: Shape) -> Grid:
    columns = tuple(dict.fromkeys(map(shape.column, rows)))
    places = {(shape.line(row), shape.column(row)): row for row in rows}
    groups: dict[str, list[Line]] = {}
    for group in (OURS, COMPARED, FLOORS):
        names = dict.fromkeys(shape.line(row) for row in rows if group_of(row.method) == group)
        if names:
            groups[group] = [Line(name, tuple(places.get((name, column)) for column in columns)) for name in names]
    return Grid(title, columns, groups, shape.best, shape.digits, shape.words, shape.head)


def nodes_of(row: Row) -> float:
    """How many nodes a graph has that is named by them, as ``uniform-1000`` is."""
    return float(row.dataset.rpartition("-")[2])


def beside(row: Row | None) -> Beside | None:
    """A row as a cell of the page."""
    if row is None:
        return None
    note = f"{row.runs} of {row.wanted} runs" if 0 < row.runs < row.wanted else ""
    if math.isnan(row.mean):
        note = nothing(row)
    return Beside(row.mean, row.std, row.paper, row.paper_std, verdict(row), note)


def nothing(row: Row) -> str:
    """Why a cell has no number."""
    return "a run gave no number" if row.runs else NOT_YET


def verdict(row: Row) -> Verdict | None:
    """How ours lies to the printed number.

    ``"same"``: it is inside the 95 % interval of our mean (which of two or three runs is wider than two deviations: not
    beyond those); ``"near"``: less than two standard deviations away, by the
    larger of ours and theirs; else we are ``"above"`` or ``"below"``. None where one of the two or every deviation is
    missing. Properties have no deviation: yes is yes.
    """
    away = row.mean - row.paper
    spread = 0.0 if row.part == "properties" else two_deviations(row)
    if math.isnan(away) or math.isnan(spread):
        return None
    if abs(away) <= (0.0 if math.isnan(row.ci95) else min(row.ci95, spread)) + ROUNDING:
        return "same"
    if abs(away) <= spread + ROUNDING:
        return "near"
    return "above" if away > 0 else "below"


def two_deviations(row: Row) -> float:
    """Twice the larger of our deviation and the printed one; NaN where there is neither."""
    return 2 * max((value for value in (row.std, row.paper_std) if not math.isnan(value)), default=math.nan)


def _protocol(split: str) -> str:
    return f"Nested {split.removeprefix('nested:')}-fold" if split.startswith("nested:") else split.capitalize()
