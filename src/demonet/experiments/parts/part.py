"""A part of the paper: which cells it is made of, how often each is run, and the table that comes of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from demonet.data.protocol import folds_of, train_share
from demonet.experiments.ledger.job import Cell, Result
from demonet.experiments.parts.row import Row
from demonet.experiments.statistics import spread


@dataclass(frozen=True)
class Wanted:
    """A cell and how many runs of it; ``alone`` where nothing may run beside it, as for timing."""

    cell: Cell
    runs: int
    alone: bool = False


@dataclass(frozen=True)
class Entry:
    """A cell as one part shows it.

    Attributes:
        cell: What is run.
        runs: How often, where nobody asks otherwise.
        variant: What differs within the method, in words.
        paper, paper_std: What the paper prints there; NaN where it prints nothing.
        alone: As in :class:`Wanted`.
        method: Under which method it stands, where that is not the cell's own.
        most: More runs than these are never made, whoever asks; None where more runs say more.
    """

    cell: Cell
    runs: int
    variant: str = ""
    paper: float = math.nan
    paper_std: float = math.nan
    alone: bool = False
    method: str = ""
    most: int | None = None

    def wanted(self, runs: int | None = None) -> Wanted:
        """The runs of the cell, ``runs`` of them if that is given; a fold is tested once, so never more than folds."""
        asked = self.runs if runs is None else runs
        most = folds_of(self.cell.split) or self.most
        return Wanted(self.cell, min(asked, most) if most else asked, self.alone)


@dataclass(frozen=True)
class Part:
    """A table or figure.

    Attributes:
        name: What it is asked for by.
        title: What stands above it.
        protocol: How its numbers are made, in words.
        whole, brief: The entries in full, and those that are done in minutes.
        device: Where its runs must have been made, where time and memory are compared; empty for anywhere.
    """

    name: str
    title: str
    protocol: str
    whole: Callable[[], list[Entry]]
    brief: Callable[[], list[Entry]]
    device: str = ""

    def entries(self, quick: bool = False) -> list[Entry]:
        """All cells in the order of the table."""
        return self.brief() if quick else self.whole()

    def wanted(self, runs: int | None = None, quick: bool = False) -> list[Wanted]:
        """What has to be run, each cell as often as it is by itself wanted, or ``runs`` times."""
        return [entry.wanted(runs) for entry in self.entries(quick)]

    def rows(self, results: Mapping[Cell, Sequence[Result]], runs: int | None = None, quick: bool = False) -> list[Row]:
        """The table, from what is there: a cell without a finished run has no numbers."""
        return [self._row(entry, results.get(entry.cell, ()), runs) for entry in self.entries(quick)]

    def _row(self, entry: Entry, results: Sequence[Result], runs: int | None) -> Row:
        cell, wanted = entry.cell, entry.wanted(runs).runs
        done = sorted(results, key=lambda result: result.job.seed)[:wanted]
        values = tuple(result.outcome.value for result in done)
        mean, std, ci95 = spread(values)
        share = train_share(cell.split)
        return Row(
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
            # A worker still holds some of what its earlier runs used: the least of all runs is nearest to the truth.
            peak_memory_mb=min((result.outcome.peak_memory_mb for result in done), default=math.nan),
            device=done[0].stamp.device if done else "",
            code=done[0].stamp.code if done else "",
            values=values,
        )
