"""Table 5: accuracy on four sets of graphs, by the paper's protocol and by nested folds."""

from __future__ import annotations

from demonet.experiments.ledger.job import Cell
from demonet.experiments.parts.nodes import table
from demonet.experiments.parts.part import Entry, Part

SETS = ("MUTAG", "PTC", "PROTEINS", "ENZYMES")
FLOORS = ("majority", "degree-knn", "attribute-lr", "wl-lr", "wl-rf", "wl-1nn", "degree-wl")
# Method and preset, in the order of the table.
METHODS = (
    *((name, "") for name in ("deepwl", "dcnn", "patchy-san", "diffpool")),
    *((f"demonet-{name}", "paper") for name in ("m-hash", "m-weight", "hash", "weight")),
    ("demonet-default", "default"),
    *((name, "") for name in ("gin", "wl", *FLOORS)),
)
NESTED = (("demonet-default", "default"), *((name, "") for name in ("gin", "wl", *FLOORS)))
FOLDS = 10


def _nested(dataset: str, method: str, preset: str, runs: int) -> Entry:
    return Entry(Cell("accuracy", dataset, method, preset, split=f"nested:{FOLDS}"), runs)


def _whole() -> list[Entry]:
    return table(SETS, METHODS) + [
        _nested(dataset, method, preset, FOLDS) for dataset in SETS for method, preset in NESTED
    ]


def _brief() -> list[Entry]:
    thirds = table(SETS[:2], METHODS, lambda _: 2)
    return [*thirds, _nested("MUTAG", "wl", "", 2)]  # a fold of a network with a grid takes minutes


GRAPHS = Part(
    "graphs",
    "Table 5: accuracy of graph classification",
    "Thirds of the graphs train, validate and are tested; run i of every method has split i and seed i. Beside it, "
    "nested 10-fold: fold i is tested once, a tenth of the rest chooses width and dropout of the networks (32 or 64, "
    "0 or 0.5) and the settings of kernels and floors. Node labels only, no continuous attributes. There is no preset "
    "`authors` here: the authors' released code does not classify graphs.",
    _whole,
    _brief,
)
