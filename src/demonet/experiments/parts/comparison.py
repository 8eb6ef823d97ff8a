"""Every method that applies, on one network and one set of graphs, with time and memory."""

from __future__ import annotations

from demonet import baselines
from demonet.experiments.methods import OURS
from demonet.experiments.parts.nodes import PAPER_RUNS, table
from demonet.experiments.parts.part import Part

SETS = ("brazil", "MUTAG")
# Method and preset, in the order of the table.
METHODS = (
    *((name, "") for name in baselines.names()),
    *((name, "paper") for name in OURS if name != "demonet-default"),
    ("demonet-hash", "authors"),
    ("demonet-weight", "authors"),
    ("demonet-default", "default"),
)


COMPARISON = Part(
    "comparison",
    "Every method side by side",
    "Thirds; run i of every method has split i and seed i. Seconds are of one processor core, reading the set "
    "included; memory is the most that a run's process had resident, libraries included. All of it is done on the CPU, "
    "ten runs a cell. Tables 4 and 5 may have more runs, or runs on a GPU, where the same seed draws other numbers: on "
    "a small set the means of ten runs differ by a few points then.",
    lambda: table(SETS, METHODS, lambda _: PAPER_RUNS),
    lambda: table(SETS, METHODS, lambda _: 1),
    device="cpu",
)
