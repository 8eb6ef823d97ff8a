"""The number of hidden layers, from one to six."""

from __future__ import annotations

from collections.abc import Sequence

from demonet.data.catalog import find
from demonet.report.chart import Axis
from demonet.sealed import canonical
from demonet_study.ledger.job import Cell
from demonet_study.report.compare import accuracy_lines
from demonet_study.report.grid import Layout, ResultRow
from demonet_study.report.names import set_name
from demonet_study.report.parts.nodes import PAPER_RUNS
from demonet_study.report.parts.part import Entry, Part

COUNTS = (1, 2, 3, 4, 5, 6)
PRESETS_HAVE = 2  # so the runs of Tables 4 and 5 are used here, too
METHODS = (("demonet-hash", "paper"), ("demonet-weight", "paper"), ("demonet-default", "default"))


def _entries(sets: Sequence[str], layers: Sequence[int], runs: int) -> list[Entry]:
    return [_entry(dataset, *method, count, runs) for dataset in sets for method in METHODS for count in layers]


def _entry(dataset: str, method: str, preset: str, layers: int, runs: int) -> Entry:
    options = canonical({} if layers == PRESETS_HAVE else {"model": {"layers": layers}})
    cell = Cell("accuracy", dataset, method, preset, options, find(dataset).protocol)
    return Entry(cell, runs, f"layers={layers}")


def _count(row: ResultRow) -> str:
    return row.variant.removeprefix("layers=")


LAYERS = Part(
    "layers",
    "Number of hidden layers",
    "One to six hidden layers, with all other settings as in the preset, on the paper's splits. The published paper "
    "has no such study. Its source has one, commented out: on Facebook more layers help up to four, on MUTAG two are "
    "best.",
    lambda: _entries(("facebook", "MUTAG"), COUNTS, PAPER_RUNS),
    lambda: _entries(("MUTAG",), (1, 2, 4), 2),
    layout=Layout(lambda row: set_name(row.dataset), _count),
    charts=lambda rows, _: {
        "layers": accuracy_lines(
            rows,
            lambda row: float(_count(row)),
            "Accuracy by the number of hidden layers",
            Axis("hidden layers"),
            columns=2,
        )
    },
)
