"""Table 4: accuracy of node classification on seven networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from demonet import methods
from demonet.data.catalog import find
from demonet.report.chart import Chart
from demonet.report.page import Section
from demonet_study.experiments.methods import family_in_catalog
from demonet_study.ledger.job import Cell
from demonet_study.report.compare import against_best_table, rank_chart, under_paper_splits
from demonet_study.report.names import NODE_FLOORS
from demonet_study.report.parts.part import Entry, Part, Rows, Shown
from demonet_study.report.printed import printed

AIRPORTS = ("brazil", "europe", "usa")
SETS = ("facebook", "wiki-vote", "blogcatalog", "flickr", *AIRPORTS)
# Method and preset, in the order of the table.
METHODS = (
    *((name, "") for name in ("sage", "gcn", "gcn-cheby", "union", "intersection", "gat")),
    ("demonet-hash", "paper"),
    ("demonet-weight", "paper"),
    ("demonet-hash", "authors"),
    ("demonet-weight", "authors"),
    ("demonet-smooth", "paper"),
    ("demonet-default", "default"),
    ("gin", ""),
    *((name, "") for name in NODE_FLOORS),
)
PAPER_RUNS = 10
MANY_RUNS = 50  # on small data sets, one split changes the result by several points


def runs_of(dataset: str) -> int:
    """The number of runs on a data set."""
    return MANY_RUNS if dataset in (*AIRPORTS, "MUTAG", "PTC") else PAPER_RUNS


def entry(dataset: str, method: str, preset: str, runs: int) -> Entry:
    """A cell under the paper's protocol, with what the paper prints."""
    cell = Cell("accuracy", dataset, method, preset, split=find(dataset).protocol)
    return Entry(cell, runs, "", *printed(dataset, method))


def table(
    sets: Sequence[str], wanted: Sequence[tuple[str, str]] = METHODS, runs: Callable[[str], int] = runs_of
) -> list[Entry]:
    """Every applicable method on every data set; ``runs`` gives the number of runs on a data set."""
    return [
        entry(dataset, method, preset, runs(dataset))
        for dataset in sets
        for method, preset in wanted
        if methods.get(method).applies(family_in_catalog(dataset))
    ]


def with_ranks(part: str, rows: Rows) -> dict[str, Chart | None]:
    """The figure of average ranks."""
    return {f"{part}-ranks": rank_chart(rows)}


def with_best_baseline(part: str, shown: Shown) -> list[Section | None]:
    """Tables, differences from the best baseline, figures."""
    best = against_best_table(under_paper_splits(shown.rows), anchor=f"{part}-best")
    return [*shown.tables, best, *shown.figures]


NODES = Part(
    "nodes",
    "Table 4: accuracy of node classification",
    "Social networks: 10 % of the nodes for training, 20 % for validation, 70 % for testing. Airports: thirds. Run i "
    "of every method uses split i and seed i. The epoch of a network and the settings of floors are selected on "
    "validation; other settings are those of each method's paper. Each run is tested once. The classes of facebook "
    "and wiki-vote are quartiles of the degree, which every network gets as a feature: these two are a sanity check, "
    "not evidence. The preset `authors` keeps self-loops; all others drop them.",
    lambda: table(SETS),
    lambda: table(("brazil", "europe"), runs=lambda _: 2),
    printed=True,
    charts=lambda rows, _: with_ranks("nodes", rows),
    sections=lambda shown: with_best_baseline("nodes", shown),
)
