"""Figure: accuracy on the airports with 10 % to 90 % of the nodes for training."""

from __future__ import annotations

from collections.abc import Sequence

from demonet.report.chart import Axis
from demonet_study.ledger.job import Cell
from demonet_study.report.compare import accuracy_lines
from demonet_study.report.grid import Layout
from demonet_study.report.names import set_name
from demonet_study.report.parts.nodes import AIRPORTS, MANY_RUNS
from demonet_study.report.parts.part import Entry, Part

FRACTIONS = tuple(tenths / 10 for tenths in range(1, 10))
# Method and preset, in the order of the figure.
METHODS = (
    *((name, "") for name in ("rolx", "struc2vec", "graphwave")),
    ("demonet-hash", "paper"),
    ("demonet-weight", "paper"),
    ("demonet-default", "default"),
    *((name, "") for name in ("structural-lr", "degree-knn", "majority")),
)


def _entries(sets: Sequence[str], fractions: Sequence[float], runs: int) -> list[Entry]:
    return [
        Entry(Cell("accuracy", dataset, method, preset, split=f"train:{share}"), runs, f"train {share:.0%}")
        for dataset in sets
        for method, preset in METHODS
        for share in fractions
    ]


SPLITS = Part(
    "splits",
    "Figure: accuracy by the share of training nodes",
    "The x axis is the share of nodes for training; all others are tested. For every method, a fifth of the training "
    "nodes is set aside to select epoch and settings. Embeddings are classified by one-vs-rest logistic regression "
    "with L2. The paper prints the figure without numbers, for Brazil and USA.",
    lambda: _entries(AIRPORTS, FRACTIONS, MANY_RUNS),
    lambda: _entries(("brazil",), (0.1, 0.5, 0.9), 2),
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
