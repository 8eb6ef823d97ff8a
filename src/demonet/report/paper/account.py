"""Where DEMO-Net's presets do not match the paper, and the measured reason for each such cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from demonet.report.paper.grid import two_deviations, verdict
from demonet.report.paper.markup import escape_markdown
from demonet.report.paper.reasons import REASONS, Reason
from demonet.report.paper.words import method_name, set_name

if TYPE_CHECKING:
    from demonet.experiments.parts.row import Row

NO_REASON = Reason("Not yet explained", "For these cells no reason has been measured yet.")


@dataclass(frozen=True)
class Miss:
    """A cell that is more than two standard deviations off.

    Attributes:
        row: The cell.
        deviations: How many standard deviations off, by the larger of ours and the printed one.
        reason: Why.
    """

    row: Row
    deviations: float
    reason: Reason

    @property
    def name(self) -> str:
        """The cell in words."""
        return f"{set_name(self.row.dataset)}, {method_name(self.row.method, self.row.preset)}"


def misses(rows: Sequence[Row], reasons: Sequence[Reason] = REASONS) -> list[Miss]:
    """Every cell of the presets ``paper`` and ``authors`` that is above or below what the paper prints."""
    return [
        Miss(row, _deviations(row), _reason(row, reasons))
        for row in rows
        if row.preset in ("paper", "authors") and not row.variant
        if verdict(row) in ("above", "below")
    ]


def _deviations(row: Row) -> float:
    """How many standard deviations a cell is off; infinitely many where no run differs from another, here or there."""
    both = two_deviations(row)
    return 2 * abs(row.mean - row.paper) / both if both else math.inf


def markdown(missed: Sequence[Miss]) -> str:
    """The account for documents: under each reason the cells that it explains."""
    if not missed:
        return "Every cell that has been run is within two standard deviations of the printed one.\n"
    blocks = []
    for reason in dict.fromkeys(miss.reason for miss in missed):
        lines = ["| cell | here | printed | deviations off |", "|---|--:|--:|--:|"]
        lines += [_line(miss) for miss in missed if miss.reason == reason]
        blocks += [f"### {reason.title}", reason.text, "\n".join(lines)]
    return "\n\n".join(blocks) + "\n"


def _line(miss: Miss) -> str:
    row = miss.row
    ours = f"{row.mean:.3f}" if math.isnan(row.std) else f"{row.mean:.3f} ± {row.std:.3f}"
    return f"| {escape_markdown(miss.name)} | {ours} | {row.paper:.3f} | {miss.deviations:.1f} |"


def counts(rows: Sequence[Row]) -> dict[str, int]:
    """How many cells that the paper prints there are of each verdict, and how many are not there yet."""
    printed = [row for row in rows if not math.isnan(row.paper)]
    found = dict.fromkeys(("same", "near", "above", "below", "not yet run"), 0)
    for row in printed:
        found[verdict(row) or "not yet run"] += 1
    return found


def _reason(row: Row, reasons: Sequence[Reason]) -> Reason:
    return next((reason for reason in reasons if reason.covers(row)), NO_REASON)
