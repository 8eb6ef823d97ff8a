"""How long a run will take, from those that have ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from demonet.experiments.ledger.job import Cell


class Estimate:
    """Mean processor seconds of a run: of the same cell, else of its like, the likest first.

    Args:
        known: Cells, how many runs of each have ended, and what these took together.

    >>> estimate = Estimate([(Cell("accuracy", "brazil", "gcn"), 4, 8.0)])
    >>> estimate.of(Cell("accuracy", "usa", "gcn")), Estimate([]).of(Cell("accuracy", "usa", "gcn"))
    (2.0, None)
    """

    def __init__(self, known: Iterable[tuple[Cell, int, float]] = ()) -> None:
        self._sums: dict[Hashable, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
        for cell, runs, seconds in known:
            self.add(cell, seconds, runs)

    def add(self, cell: Cell, seconds: float, runs: int = 1) -> None:
        """Count runs that have ended."""
        for level in _levels(cell):
            before = self._sums[level]
            self._sums[level] = before[0] + runs, before[1] + seconds

    def of(self, cell: Cell) -> float | None:
        """Seconds of one run of a cell; ``None`` where no run has ever ended."""
        sums = (self._sums.get(level, (0, 0.0)) for level in _levels(cell))
        return next((seconds / runs for runs, seconds in sums if runs), None)


def _levels(cell: Cell) -> Iterator[Any]:
    """What a cell has in common with others; folds take much longer than thirds."""
    yield cell
    yield cell.dataset, cell.method, cell.split
    yield cell.method, cell.split
    yield cell.method
    yield None
