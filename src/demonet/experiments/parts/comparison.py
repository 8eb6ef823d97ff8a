"""Every method that applies, on one network and one set of graphs, with time and memory."""

from __future__ import annotations

from demonet import baselines
from demonet.experiments.methods import OURS, applies, family_in_catalog
from demonet.experiments.parts.nodes import PAPER_RUNS, entry
from demonet.experiments.parts.part import Entry, Part

SETS = ("brazil", "MUTAG")
# Method and preset, in the order of the table.
METHODS = (
    *((name, "") for name in baselines.names()),
    *((name, "paper") for name in OURS if name != "demonet-default"),
    ("demonet-hash", "authors"),
    ("demonet-weight", "authors"),
    ("demonet-default", "default"),
)


def _entries(runs: int) -> list[Entry]:
    return [
        entry(dataset, method, preset, runs)
        for dataset in SETS
        for method, preset in METHODS
        if applies(method, family_in_catalog(dataset))
    ]


COMPARISON = Part(
    "comparison",
    "Every method side by side",
    "Thirds; run i of every method has split i and seed i. Seconds are of one processor core, reading the set "
    "included; memory is the most that a run's process had resident, libraries included.",
    lambda: _entries(PAPER_RUNS),
    lambda: _entries(1),
)
