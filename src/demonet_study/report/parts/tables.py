"""Methods on data sets, beside the numbers of the paper: Tables 4 and 5, a figure, and all methods side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from demonet import methods
from demonet.report.chart import Axis
from demonet.report.page import Section
from demonet_study.experiments.accuracy import family_in_catalog
from demonet_study.report.compare import accuracy_lines, against_best_table, rank_chart, under_paper_splits
from demonet_study.report.grid import Layout
from demonet_study.report.names import GRAPH_FLOORS, NODE_FLOORS, set_name
from demonet_study.report.parts.part import Entry, Part, Shown, accuracy_cell

Printed = tuple[float, float]


def _read(table: str) -> dict[tuple[str, str], Printed]:
    """(data set, method) to mean and deviation; NaN if no deviation is printed."""
    (*sets,), *lines = [line.split() for line in table.strip().splitlines()]
    found = {}
    for method, *cells in lines:
        for name, cell in zip(sets, cells, strict=True):
            mean, _, deviation = cell.partition("±")
            found[name, method] = (float(mean), float(deviation or "nan"))
    return found


# The paper calls what stands after ± "standard variance"; it is taken to be the standard deviation.
TABLE_4 = _read("""
               facebook    wiki-vote   blogcatalog flickr      brazil      europe      usa
sage           0.389±0.019 0.245±0.000 0.828±0.007 0.641±0.006 0.404±0.035 0.272±0.022 0.316±0.022
gcn            0.575±0.013 0.329±0.029 0.720±0.013 0.546±0.019 0.432±0.064 0.371±0.046 0.432±0.022
gcn-cheby      0.646±0.012 0.495±0.016 0.686±0.037 0.479±0.023 0.516±0.070 0.460±0.038 0.526±0.045
union          0.600±0.000 0.463±0.000 0.730±0.000 0.566±0.000 0.466±0.006 0.418±0.002 0.582±0.000
intersection   0.598±0.000 0.462±0.000 0.725±0.000 0.557±0.000 0.459±0.003 0.443±0.002 0.573±0.000
gat            0.570±0.036 0.594±0.070 0.663±0.000 0.359±0.000 0.382±0.126 0.424±0.073 0.585±0.021
demonet-hash   0.887±0.020 0.997±0.000 0.849±0.006 0.678±0.010 0.614±0.069 0.479±0.064 0.659±0.020
demonet-weight 0.919±0.003 0.998±0.000 0.849±0.000 0.656±0.000 0.543±0.034 0.459±0.025 0.647±0.021
""")

# Without deviations.
TABLE_5 = _read("""
                 MUTAG PTC   PROTEINS ENZYMES
deepwl           0.733 0.537 0.680    0.210
dcnn             0.670 0.572 0.579    0.160
patchy-san       0.795 0.568 0.714    0.170
diffpool         0.663 0.251 0.733    0.184
demonet-m-hash   0.760 0.586 0.617    0.236
demonet-m-weight 0.798 0.550 0.616    0.251
demonet-hash     0.771 0.563 0.705    0.251
demonet-weight   0.814 0.572 0.708    0.272
""")


def printed(dataset: str, method: str) -> Printed:
    """Mean and standard deviation in the paper; NaN if it prints none.

    >>> printed("brazil", "demonet-hash"), printed("MUTAG", "dcnn"), printed("brazil", "gin")
    ((0.614, 0.069), (0.67, nan), (nan, nan))
    """
    return (TABLE_4 | TABLE_5).get((dataset, method), (math.nan, math.nan))


AIRPORTS = ("brazil", "europe", "usa")
NODE_SETS = ("facebook", "wiki-vote", "blogcatalog", "flickr", *AIRPORTS)
# Method and preset, in the order of the table.
NODE_METHODS = (
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


def table(
    sets: Sequence[str], wanted: Sequence[tuple[str, str]] = NODE_METHODS, runs: Callable[[str], int] = runs_of
) -> list[Entry]:
    """Every applicable method on every data set under the paper's protocol, with what the paper prints.

    ``runs`` gives the number of runs on a data set.
    """
    return [
        Entry(accuracy_cell(dataset, method, preset), runs(dataset), "", *printed(dataset, method))
        for dataset in sets
        for method, preset in wanted
        if methods.get(method).applies(family_in_catalog(dataset))
    ]


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
    lambda: table(NODE_SETS),
    lambda: table(("brazil", "europe"), runs=lambda _: 2),
    printed=True,
    charts=lambda rows, _: {"nodes-ranks": rank_chart(rows)},
    sections=lambda shown: with_best_baseline("nodes", shown),
)


GRAPH_SETS = ("MUTAG", "PTC", "PROTEINS", "ENZYMES")
# Method and preset, in the order of the table.
GRAPH_METHODS = (
    *((name, "") for name in ("deepwl", "dcnn", "patchy-san", "diffpool")),
    *((f"demonet-{name}", "paper") for name in ("m-hash", "m-weight", "hash", "weight")),
    ("demonet-default", "default"),
    *((name, "") for name in ("gin", "wl", *GRAPH_FLOORS)),
)
NESTED = (("demonet-default", "default"), *((name, "") for name in ("gin", "wl", *GRAPH_FLOORS)))
FOLDS = 10


def _nested(dataset: str, method: str, preset: str, runs: int) -> Entry:
    return Entry(accuracy_cell(dataset, method, preset, split=f"nested:{FOLDS}"), runs)


def _graphs() -> list[Entry]:
    return table(GRAPH_SETS, GRAPH_METHODS) + [
        _nested(dataset, method, preset, FOLDS) for dataset in GRAPH_SETS for method, preset in NESTED
    ]


def _some_graphs() -> list[Entry]:
    thirds = table(GRAPH_SETS[:2], GRAPH_METHODS, lambda _: 2)
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
    _graphs,
    _some_graphs,
    layout=Layout(lambda row: _protocol(row.split), lambda row: set_name(row.dataset)),
    printed=True,
    charts=lambda rows, _: {"graphs-ranks": rank_chart(rows)},
    sections=lambda shown: with_best_baseline("graphs", shown),
)


FRACTIONS = tuple(tenths / 10 for tenths in range(1, 10))
# Method and preset, in the order of the figure.
SPLIT_METHODS = (
    *((name, "") for name in ("rolx", "struc2vec", "graphwave")),
    ("demonet-hash", "paper"),
    ("demonet-weight", "paper"),
    ("demonet-default", "default"),
    *((name, "") for name in ("structural-lr", "degree-knn", "majority")),
)


def _splits(sets: Sequence[str], fractions: Sequence[float], runs: int) -> list[Entry]:
    return [
        Entry(accuracy_cell(dataset, method, preset, split=f"train:{share}"), runs, f"train {share:.0%}")
        for dataset in sets
        for method, preset in SPLIT_METHODS
        for share in fractions
    ]


SPLITS = Part(
    "splits",
    "Figure: accuracy by the share of training nodes",
    "The x axis is the share of nodes for training; all others are tested. For every method, a fifth of the training "
    "nodes is set aside to select epoch and settings. Embeddings are classified by one-vs-rest logistic regression "
    "with L2. The paper prints the figure without numbers, for Brazil and USA.",
    lambda: _splits(AIRPORTS, FRACTIONS, MANY_RUNS),
    lambda: _splits(("brazil",), (0.1, 0.5, 0.9), 2),
    layout=Layout(lambda row: set_name(row.dataset), lambda row: f"{row.train_fraction:.0%}"),
    charts=lambda rows, _: {
        "splits": accuracy_lines(
            rows,
            lambda row: row.train_fraction,
            "Accuracy by the share of training nodes",
            Axis("training nodes", share=True),
        )
    },
)


SIDE_BY_SIDE = ("brazil", "MUTAG")
# Method and preset, in the order of the table.
EVERY_METHOD = (
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
    lambda: table(SIDE_BY_SIDE, EVERY_METHOD, lambda _: PAPER_RUNS),
    lambda: table(SIDE_BY_SIDE, EVERY_METHOD, lambda _: 1),
    device="cpu",
    layout=Layout(cost=True),
)
