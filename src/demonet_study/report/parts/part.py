"""A part of the paper, such as Table 4: the cells it consists of, and how its tables and figures are made from them.

A new part is one :class:`Part` in a file here, and its name in the registry of ``parts/__init__.py``.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from demonet.data.catalog import find
from demonet.report.chart import Chart
from demonet.report.page import Section
from demonet.runs.statistics import spread
from demonet.sealed import canonical
from demonet_study.ledger.job import Cell, Result, Wanted
from demonet_study.protocol import folds_of, train_share
from demonet_study.report.grid import Layout, ResultRow
from demonet_study.report.standing import REFIT

Results: TypeAlias = Mapping[Cell, Sequence[Result]]
Rows: TypeAlias = Sequence[ResultRow]


def accuracy_cell(
    dataset: str, method: str, preset: str = "", options: Mapping[str, Any] | None = None, split: str = ""
) -> Cell:
    """A method on a split of a data set, by default the paper's."""
    return Cell("accuracy", dataset, method, preset, canonical(options or {}), split or find(dataset).protocol)


@dataclass(frozen=True)
class Entry:
    """A cell as one part shows it."""

    cell: Cell  # what is run
    runs: int  # how many runs by default
    variant: str = ""  # what differs within the method, in words
    # What the paper prints; NaN if it prints nothing.
    paper: float = math.nan
    paper_std: float = math.nan
    alone: bool = False  # whether nothing may run at the same time, as for timing
    method: str = ""  # the method that it is listed under, if not the cell's own
    most: int | None = None  # the maximum number of runs, if more would say nothing
    rule: str = ""  # for cells of kind default, which of its two numbers is shown
    borrowed: bool = False  # whether another part makes the runs; here they are only shown

    def value(self, result: Result) -> float:
        """The number of a run that is shown."""
        return float(result.outcome.extra["refit"]) if self.rule == REFIT else result.outcome.value

    def wanted(self, runs: int | None = None) -> Wanted:
        """The wanted runs, ``runs`` if given; never more than folds, because a fold is tested once."""
        asked = self.runs if runs is None else runs
        most = folds_of(self.cell.split) or self.most
        return Wanted(self.cell, min(asked, most) if most else asked, self.alone)


@dataclass(frozen=True)
class Shown:
    """What a part shows on the page: its rows, its figures and tables as sections, and its extra data."""

    rows: Rows
    figures: list[Section]
    tables: list[Section]
    extra: Any = None


@dataclass(frozen=True)
class Part:
    """A table or figure of the paper."""

    name: str  # its name on the command line, and of its files
    title: str
    protocol: str  # how its numbers are made, in words
    # Its entries in full, and those of --quick.
    whole: Callable[[], list[Entry]]
    brief: Callable[[], list[Entry]]
    device: str = ""  # the only device whose runs count, where time and memory are compared; empty for any
    layout: Layout = Layout()  # noqa: RUF009 (immutable)
    printed: bool = False  # whether the paper prints its numbers, so that deviations from them are listed
    # Its figures by name, from its rows and extra data; None for a figure without data.
    charts: Callable[[Rows, Any], Mapping[str, Chart | None]] = lambda rows, extra: {}
    # The order of its sections on the page, with further tables if it has any.
    sections: Callable[[Shown], list[Section | None]] = lambda shown: [*shown.figures, *shown.tables]
    # Extra data from its entries and their runs, for charts, sections and files.
    extra: Callable[[Sequence[Entry], Results], Any] = lambda entries, results: None
    # Further CSV files from its extra data: a file name with rows (one dataclass) each.
    files: Callable[[Any], Mapping[str, Sequence[Any]]] = lambda extra: {}

    def entries(self, quick: bool = False) -> list[Entry]:
        """All entries in the order of the table."""
        return self.brief() if quick else self.whole()

    def wanted(self, runs: int | None = None, quick: bool = False, own: bool = False) -> list[Wanted]:
        """The wanted runs: ``runs`` of each cell, or each entry's own number; with ``own``, none that are borrowed."""
        found = (entry.wanted(runs) for entry in self.entries(quick) if not (own and entry.borrowed))
        return list(dict.fromkeys(found))

    def rows(self, results: Results, runs: int | None = None, quick: bool = False) -> list[ResultRow]:
        """The rows of the table. A cell without finished runs has a row without numbers."""
        return [self._row(entry, results.get(entry.cell, ()), runs) for entry in self.entries(quick)]

    def _row(self, entry: Entry, results: Sequence[Result], runs: int | None) -> ResultRow:
        cell, wanted = entry.cell, entry.wanted(runs).runs
        done = sorted(results, key=lambda result: result.job.seed)[:wanted]
        values = tuple(entry.value(result) for result in done)
        mean, std, ci95 = spread(values)
        share = train_share(cell.split)
        return ResultRow(
            part=self.name,
            dataset=cell.dataset,
            method=entry.method or cell.method,
            preset=cell.preset,
            variant=entry.variant,
            split=cell.split,
            train_fraction=math.nan if share is None else share,
            mean=mean,
            std=std,
            ci95=ci95,
            runs=len(values),
            wanted=wanted,
            paper=entry.paper,
            paper_std=entry.paper_std,
            seconds=statistics.mean(result.outcome.seconds for result in done) if done else math.nan,
            # A worker still holds memory of its earlier runs, so the minimum is closest to what a run needs.
            peak_memory_mb=min((result.outcome.peak_memory_mb for result in done), default=math.nan),
            device=done[0].stamp.device if done else "",
            code=done[0].stamp.code if done else "",
            values=values,
            rule=entry.rule,
        )
