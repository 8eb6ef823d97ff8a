"""Where DEMO-Net's presets do not match the paper, and the measured reason for each such cell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from demonet.report.page import Section, Table, Text
from demonet.report.table_cells import Cell, Column
from demonet_study.report.grid import ResultRow, beside, two_deviations, verdict
from demonet_study.report.markup import escape_markdown
from demonet_study.report.names import set_name


@dataclass(frozen=True)
class Reason:
    """A reason for some cells; an empty tuple of data sets, methods or presets covers all of them."""

    title: str  # the reason in a few words
    text: str  # what was measured, with the numbers
    datasets: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    presets: tuple[str, ...] = ()

    def covers(self, row: ResultRow) -> bool:
        """Whether it explains this cell."""
        return all(
            not those or own in those
            for those, own in ((self.datasets, row.dataset), (self.methods, row.method), (self.presets, row.preset))
        )


REASONS: tuple[Reason, ...] = (
    Reason(
        "Classes by degree, cut elsewhere",
        "The paper makes the classes of this set from the degree and does not say where it cuts; here they are its "
        "quartiles. Every method of Table 4 is above print on it, GraphSAGE most (0.97 here, 0.389 printed), and a "
        "nearest neighbour by degree is right on nearly every node: the labels are not the printed ones, and easy.",
        datasets=("facebook", "wiki-vote"),
    ),
    Reason(
        "Sums over neighbours",
        "The paper's text sums over neighbours, and nodes here have up to 1,881 of them with thousands of attributes: "
        "the scale of a sum grows with the degree. The released code takes means. With means and nothing else changed, "
        "this preset has 0.893 on BlogCatalog and 0.742 on Flickr, above what is printed, on the same splits.",
        datasets=("blogcatalog", "flickr"),
        methods=("demonet-hash",),
        presets=("paper",),
    ),
    Reason(
        "Mean pooling, trained to the end",
        "The printed number is two points above always naming the larger class (0.596). On the same splits, "
        "DEMO-Net_m (hash and weight) has 0.648 and 0.647 when the nodes do not know their labels, and 0.648 and 0.644 "
        "when it is stopped after ten epochs: half as far from the print, and three of the four within two deviations "
        "of it. So mean pooling can do more here than is printed for it, which makes degree pooling gain less.",
        datasets=("PROTEINS",),
        methods=("demonet-m-hash", "demonet-m-weight"),
        presets=("paper",),
    ),
)
"""For each cell, the first one that covers it is shown."""
MISSES = """Cells of the presets `paper` and `authors` whose mean differs from the printed one by more than two \
standard deviations (the larger of ours and the printed one), with the reason."""

NO_REASON = Reason("Not yet explained", "For these cells no reason has been measured yet.")


@dataclass(frozen=True)
class Miss:
    """A cell that differs from the paper by more than two standard deviations."""

    row: ResultRow
    deviations: float  # the difference in standard deviations, by the larger of ours and the printed one
    reason: Reason

    @property
    def name(self) -> str:
        """Data set, method and preset."""
        return f"{set_name(self.row.dataset)}, {self.row.name}"


def misses(rows: Sequence[ResultRow], reasons: Sequence[Reason] = REASONS) -> list[Miss]:
    """Every cell of the presets ``paper`` and ``authors`` that is above or below what the paper prints."""
    return [
        Miss(row, _deviations(row), next((reason for reason in reasons if reason.covers(row)), NO_REASON))
        for row in rows
        if row.preset in ("paper", "authors") and not row.variant
        if verdict(row) in ("above", "below")
    ]


def _deviations(row: ResultRow) -> float:
    """The difference in standard deviations; infinite if both deviations are zero."""
    both = two_deviations(row)
    return 2 * abs(row.mean - row.paper) / both if both else math.inf


def account(missed: Sequence[Miss]) -> str:
    """The misses as Markdown: under each reason the cells that it explains."""
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


def counts(rows: Sequence[ResultRow]) -> dict[str, int]:
    """The number of printed cells by verdict, and of those that have not been run."""
    printed = [row for row in rows if not math.isnan(row.paper)]
    found = dict.fromkeys(("same", "near", "above", "below", "not yet run"), 0)
    for row in printed:
        found[verdict(row) or "not yet run"] += 1
    return found


def count_table(parts: Mapping[str, Sequence[ResultRow]], *, anchor: str, title: str) -> Section:
    """How many printed cells agree with ours, by kind of method."""
    rows: list[list[Cell]] = []
    for words, members in parts.items():
        found = counts(members)
        rows.append([words, *found.values(), sum(found.values())])
    columns = [Column(""), *(Column(name) for name in ("same", "near", "above", "below", "not yet run", "cells"))]
    caption = (
        "Cells with a printed number, by how ours compares with it. Near is judged by the deviation of single runs, "
        "which is larger than that of a mean: two means that are near may still differ."
    )
    return Table(columns, rows, caption, title=title, anchor=anchor, below=True)


def miss_sections(missed: Sequence[Miss]) -> list[Section]:
    """The misses on the page, under their reasons."""
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
