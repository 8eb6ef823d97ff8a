"""Table 5: accuracy of graph classification on four data sets, under the paper's protocol and with nested folds."""

from __future__ import annotations

from demonet_study.ledger.job import Cell
from demonet_study.report.grid import Layout
from demonet_study.report.names import GRAPH_FLOORS, set_name
from demonet_study.report.parts.nodes import table, with_best_baseline, with_ranks
from demonet_study.report.parts.part import Entry, Part

SETS = ("MUTAG", "PTC", "PROTEINS", "ENZYMES")
# Method and preset, in the order of the table.
METHODS = (
    *((name, "") for name in ("deepwl", "dcnn", "patchy-san", "diffpool")),
    *((f"demonet-{name}", "paper") for name in ("m-hash", "m-weight", "hash", "weight")),
    ("demonet-default", "default"),
    *((name, "") for name in ("gin", "wl", *GRAPH_FLOORS)),
)
NESTED = (("demonet-default", "default"), *((name, "") for name in ("gin", "wl", *GRAPH_FLOORS)))
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


def _protocol(split: str) -> str:
    return f"Nested {split.removeprefix('nested:')}-fold" if split.startswith("nested:") else split.capitalize()


GRAPHS = Part(
    "graphs",
    "Table 5: accuracy of graph classification",
    "A third of the graphs each for training, validation and testing; run i of every method uses split i and seed i. "
    "Second table, nested 10-fold: fold i is tested once, and a tenth of the rest selects width and dropout of the "
    "networks (32 or 64, 0 or 0.5) and the settings of kernels and floors. Node labels only, no continuous attributes. "
    "The preset `authors` is missing because the authors' released code does not classify graphs.",
    _whole,
    _brief,
    layout=Layout(lambda row: _protocol(row.split), lambda row: set_name(row.dataset)),
    printed=True,
    charts=lambda rows, _: with_ranks("graphs", rows),
    sections=lambda shown: with_best_baseline("graphs", shown),
)
