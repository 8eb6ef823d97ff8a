"""The study of identity: structurally equal nodes land together, or do not."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from demonet.experiments.identity import GRAPHS, IDENTITY
from demonet.experiments.ledger.job import Cell, Result, canonical
from demonet.experiments.parts.nodes import PAPER_RUNS
from demonet.experiments.parts.part import Entry, Part

# Method, preset, and the features with what they are called: those of the preset are not named in the cell.
NETWORKS = (
    *((f"demonet-{scheme}", "paper", None, "degree") for scheme in ("hash", "weight")),
    *((f"demonet-{scheme}", "authors", None, "adjacency") for scheme in ("hash", "weight")),
    ("demonet-default", "default", None, "degree"),
    ("gcn", "", "degree-onehot", "degree"),
    ("gcn", "", IDENTITY, "identity"),
)
EMBEDDINGS = ("struc2vec", "graphwave")


def _entries(graphs: Sequence[str], runs: int) -> list[Entry]:
    return [Entry(cell, runs, variant) for graph in graphs for cell, variant in _cells(graph)]


def _cells(graph: str) -> Iterator[tuple[Cell, str]]:
    for trained, weights in ((False, "first weights"), (True, "trained")):
        if trained and graph == "cycle":  # one role: nothing to train for
            continue
        for method, preset, features, name in NETWORKS:
            options = {"trained": trained} | ({"features": features} if features else {})
            yield Cell("identity", graph, method, preset, canonical(options)), f"{name}, {weights}"
    for method in EMBEDDINGS:
        yield Cell("identity", graph, method), ""


ROLES = Part(
    "identity",
    "Structurally equal nodes",
    "Mean distance of nodes that a symmetry of the graph exchanges, over the mean distance of all pairs (on the cycle, "
    "where all nodes are equal, over the mean length of a vector): 0 where equal nodes coincide, so lower is better, "
    "provided that the others are told apart. Networks with their first weights, and trained to tell the roles of "
    "one half of the graph, of which the other half is never labelled; each with features that know the degree only, "
    "or that name every node (its row of the adjacency matrix, as in the authors' code, or of the unit matrix, as in "
    "GCN's paper). The published paper has no such study; its source names cycle and mirrored karate in a comment.",
    lambda: _entries(tuple(GRAPHS), PAPER_RUNS),
    lambda: _entries(("mirrored-karate", "cycle"), 1),
)


@dataclass(frozen=True)
class Distances:
    """A method on a graph: means over the runs of what :class:`~demonet.experiments.twins.Nearness` says of each.

    ``accuracy`` is that of the trained networks on the half that has no labels; NaN where a number does not apply.
    """

    dataset: str
    method: str
    preset: str
    variant: str
    runs: int
    twins: float
    others: float
    nearest_other: float
    told_apart: float
    found: float
    accuracy: float


def distances(results: Mapping[Cell, Sequence[Result]], quick: bool = False) -> list[Distances]:
    """Every cell that has runs: twins that coincide mean little where others do too."""
    measured = ("twins", "others", "nearest_other", "told_apart", "found", "accuracy")
    return [
        Distances(
            *(entry.cell.dataset, entry.cell.method, entry.cell.preset, entry.variant, len(done)),
            *(statistics.mean(one.outcome.extra.get(name, math.nan) for one in done) for name in measured),
        )
        for entry in ROLES.entries(quick)
        if (done := results.get(entry.cell, ()))
    ]
