"""Why cells of the presets do not match the paper: each reason with what was measured, and the cells it covers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from demonet.experiments.parts.row import Row


@dataclass(frozen=True)
class Reason:
    """A reason for some cells; an empty list of sets, methods or presets covers all of them.

    Attributes:
        title: In a few words.
        text: What was measured, with the numbers.
        datasets, methods, presets: The cells that it explains.
    """

    title: str
    text: str
    datasets: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    presets: tuple[str, ...] = ()

    def covers(self, row: Row) -> bool:
        """Whether it is a reason for this cell."""
        return all(
            not those or own in those
            for those, own in ((self.datasets, row.dataset), (self.methods, row.method), (self.presets, row.preset))
        )


REASONS: tuple[Reason, ...] = ()
"""The first that covers a cell is the one shown."""
