"""The number of hidden layers, from one to six."""

from __future__ import annotations

from collections.abc import Sequence

from demonet.data.catalog import find
from demonet.experiments.ledger.job import Cell, canonical
from demonet.experiments.parts.nodes import PAPER_RUNS
from demonet.experiments.parts.part import Entry, Part

LAYERS = (1, 2, 3, 4, 5, 6)
PRESETS_HAVE = 2  # so that the runs of Tables 4 and 5 serve here too
METHODS = (("demonet-hash", "paper"), ("demonet-weight", "paper"), ("demonet-default", "default"))


def _entries(sets: Sequence[str], layers: Sequence[int], runs: int) -> list[Entry]:
    return [_entry(dataset, *method, count, runs) for dataset in sets for method in METHODS for count in layers]


def _entry(dataset: str, method: str, preset: str, layers: int, runs: int) -> Entry:
    options = canonical({} if layers == PRESETS_HAVE else {"model": {"layers": layers}})
    cell = Cell("accuracy", dataset, method, preset, options, find(dataset).protocol)
    return Entry(cell, runs, f"layers={layers}")


DEPTH = Part(
    "layers",
    "Number of hidden layers",
    "One to six hidden layers, all else as the preset has it, on the paper's splits. The published paper has no "
    "such study; in its source one is commented out: more layers help on Facebook up to four, two are best on MUTAG.",
    lambda: _entries(("facebook", "MUTAG"), LAYERS, PAPER_RUNS),
    lambda: _entries(("MUTAG",), (1, 2, 4), 2),
)
