"""Measurements behind the reasons for cells that do not match the paper: the same cells with one setting changed."""

from __future__ import annotations

from typing import Any

from demonet.data.catalog import find
from demonet.sealed import canonical
from demonet_study.ledger.job import Cell
from demonet_study.report.grid import Layout
from demonet_study.report.parts.nodes import PAPER_RUNS
from demonet_study.report.parts.part import Entry, Part
from demonet_study.report.printed import printed

AS_PUBLISHED = "as published"
MEANS, NO_LABELS, TEN_EPOCHS = "means over neighbours", "nodes without labels", "ten epochs"
# Data sets, methods, and the changes to the preset `paper`.
CHANGED: tuple[tuple[tuple[str, ...], tuple[str, ...], dict[str, dict[str, Any]]], ...] = (
    (("blogcatalog", "flickr"), ("demonet-hash",), {AS_PUBLISHED: {}, MEANS: {"model": {"aggr": "mean"}}}),
    (
        ("PROTEINS",),
        ("demonet-m-hash", "demonet-m-weight"),
        {AS_PUBLISHED: {}, NO_LABELS: {"features": "constant"}, TEN_EPOCHS: {"train": {"epochs": 10}}},
    ),
)


def _entries() -> list[Entry]:
    return [
        Entry(
            Cell("accuracy", dataset, method, "paper", canonical(options), find(dataset).protocol),
            PAPER_RUNS,
            words,
            *printed(dataset, method),
        )
        for sets, methods, changes in CHANGED
        for method in methods
        for words, options in changes.items()
        for dataset in sets
    ]


REASONS = Part(
    "reasons",
    "What the reasons were measured by",
    "Cells of the preset `paper` that do not match the paper: as in Tables 4 and 5, and with one setting changed that "
    "the paper may have chosen otherwise, on the same splits. The next section gives the reasons.",
    _entries,
    list,
    layout=Layout(line=lambda row: row.full_name, best=None),
)
