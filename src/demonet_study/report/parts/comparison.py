"""Every applicable method on one network and one set of graphs, with time and memory."""

from __future__ import annotations

from demonet import methods
from demonet_study.report.grid import Layout
from demonet_study.report.parts.nodes import PAPER_RUNS, table
from demonet_study.report.parts.part import Part

SETS = ("brazil", "MUTAG")
# Method and preset, in the order of the table.
METHODS = (
    *((name, "") for name in methods.names() if methods.get(name).group != "DEMO-Net"),
    *((f"demonet-{name}", "paper") for name in ("hash", "weight", "smooth", "m-hash", "m-weight")),
    ("demonet-hash", "authors"),
    ("demonet-weight", "authors"),
    ("demonet-default", "default"),
)


COMPARISON = Part(
    "comparison",
    "Every method side by side",
    "Thirds; run i of every method uses split i and seed i. Seconds are those of one processor core and include "
    "reading the data. Memory is the peak resident memory of the run's process, libraries included. All runs are on "
    "the CPU, ten per cell. Tables 4 and 5 may have more runs, or runs on a GPU, where the same seed gives other "
    "random numbers: on a small data set, means of ten runs then differ by a few points.",
    lambda: table(SETS, METHODS, lambda _: PAPER_RUNS),
    lambda: table(SETS, METHODS, lambda _: 1),
    device="cpu",
    layout=Layout(cost=True),
)
