"""Table 4: accuracy on the nodes of seven networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from demonet.data.catalog import find
from demonet.experiments.ledger.job import Cell
from demonet.experiments.methods import applies, family_in_catalog
from demonet.experiments.parts.part import Entry, Part
from demonet.experiments.printed import printed

AIRPORTS = ("brazil", "europe", "usa")
SETS = ("facebook", "wiki-vote", "blogcatalog", "flickr", *AIRPORTS)
FLOORS = (
    *("majority", "degree-knn", "degree-svm", "structural-lr", "structural-rf"),
    *("attribute-lr", "attribute-neighbour-lr", "attribute-adjacency-lr"),
)
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
    *((name, "") for name in FLOORS),
)
PAPER_RUNS = 10
MANY_RUNS = 50  # where a split of a small set moves the result by several points


def runs_of(dataset: str) -> int:
    """How many runs a set needs."""
    return MANY_RUNS if dataset in (*AIRPORTS, "MUTAG", "PTC") else PAPER_RUNS


def entry(dataset: str, method: str, preset: str, runs: int) -> Entry:
    """A cell under the paper's protocol, beside what the paper prints."""
    cell = Cell("accuracy", dataset, method, preset, split=find(dataset).protocol)
    return Entry(cell, runs, "", *printed(dataset, method))


def table(
    sets: Sequence[str], methods: Sequence[tuple[str, str]] = METHODS, runs: Callable[[str], int] = runs_of
) -> list[Entry]:
    """Every method that applies on every set, set by set; ``runs`` says how often on a set."""
    return [
        entry(dataset, method, preset, runs(dataset))
        for dataset in sets
        for method, preset in methods
        if applies(method, family_in_catalog(dataset))
    ]


NODES = Part(
    "nodes",
    "Table 4: accuracy of node classification",
    "Social networks: 10 % of the nodes train, 20 % validate, 70 % are tested. Airports: thirds. Run i of every method "
    "has split i and seed i. The epoch of a network and the settings of floors are chosen on "
    "validation, other settings are those of each method's paper; each run is tested once. The classes of "
    "facebook and wiki-vote are quartiles of the degree, which every network is given: a check, not evidence. The "
    "preset `authors` keeps self loops, all others drop them.",
    lambda: table(SETS),
    lambda: table(("brazil", "europe"), runs=lambda _: 2),
)
