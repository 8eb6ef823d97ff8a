"""What each part of the model brings: the same runs without it, or with another in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from demonet.data.catalog import find
from demonet.experiments.ledger.job import Cell, canonical
from demonet.experiments.methods import family_in_catalog
from demonet.experiments.parts.graphs import SETS as GRAPH_SETS
from demonet.experiments.parts.nodes import PAPER_RUNS
from demonet.experiments.parts.nodes import SETS as NODE_SETS
from demonet.experiments.parts.part import Entry, Part
from demonet.train.presets import Family

Options = dict[str, Any]
FULL = "full"
WITHOUT: dict[str, Options] = {
    f"without the {term} part": {"model": {"without": term}} for term in ("seed", "shared", "degree")
}
# Of the schemes, weight has a matrix for each task; which degrees share one is the tasks' to say.
TASKS: dict[str, Options] = {
    "exact tasks": {"model": {"scheme": "weight"}, "tasks": "exact"},
    "tasks by 8 quantiles": {"model": {"scheme": "weight"}, "tasks": "quantiles:8"},
    "tasks by powers of two": {"model": {"scheme": "weight"}, "tasks": "log2"},
}
POOLING: dict[str, Options] = {
    f"{pooling} pooling": {"model": {"pooling": pooling}} for pooling in ("mean", "sum", "degree")
}
# The degree among the features: taken out where the preset has it, put in where it has not.
ENCODING: dict[tuple[str, Family], dict[str, Options]] = {
    ("paper", "nodes"): {"without degree encoding": {"features": "constant"}},
    ("paper", "attributes"): {"with degree encoding": {"features": "attributes+degree-onehot"}},
    ("paper", "graphs"): {"with degree encoding": {"features": "attributes+degree-onehot"}},
    ("default", "nodes"): {"without degree encoding": {"features": "constant"}},
    ("default", "attributes"): {"with degree encoding": {"features": "tfidf+degree-rbf"}},
    ("default", "graphs"): {"without degree encoding": {"features": "attributes"}},
}


# Changes of DEMO-Net (weight) that are methods of Tables 4 and 5: their runs serve here too.
SMOOTH, MEAN = "smooth tasks", "mean pooling"
KNOWN = {SMOOTH: "demonet-smooth", MEAN: "demonet-m-weight"}


def from_paper(family: Family) -> dict[str, Options]:
    """What is changed of DEMO-Net (weight) as the paper has it, by its words."""
    buckets = {words: {"tasks": options["tasks"]} for words, options in TASKS.items() if words != "exact tasks"}
    found: dict[str, Options] = {FULL: {}, **WITHOUT, SMOOTH: {}, **buckets}
    if family == "graphs":
        found |= {MEAN: {}, "sum pooling": POOLING["sum pooling"]}
    return found | ENCODING["paper", family]


def from_default(family: Family) -> dict[str, Options]:
    """What is changed of the default, by its words."""
    found: dict[str, Options] = {FULL: {}, **WITHOUT, **TASKS}
    if family == "graphs":
        found |= POOLING
    return found | ENCODING["default", family]


def _entries(sets: Sequence[str], runs: int) -> list[Entry]:
    found = []
    for dataset in sets:
        family, split = family_in_catalog(dataset), find(dataset).protocol
        for words, options in from_paper(family).items():
            cell = Cell("accuracy", dataset, KNOWN.get(words, "demonet-weight"), "paper", canonical(options), split)
            found.append(Entry(cell, runs, words, method="demonet-weight"))
        for words, options in from_default(family).items():
            cell = Cell("accuracy", dataset, "demonet-default", "default", canonical(options), split)
            found.append(Entry(cell, runs, words))
    return found


ABLATION = Part(
    "ablation",
    "What each part brings",
    "From DEMO-Net (weight) as the paper has it, and from the default, one thing changed at a time; the paper's "
    "splits. A part that is left out is zero and is not learned; widths stay.",
    lambda: _entries((*NODE_SETS, *GRAPH_SETS), PAPER_RUNS),
    lambda: _entries(("brazil", "MUTAG"), 2),
)
