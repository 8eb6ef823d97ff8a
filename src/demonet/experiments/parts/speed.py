"""The running-time figure: time of an epoch against the number of nodes, with 2n random edges."""

from __future__ import annotations

from collections.abc import Mapping

from demonet.experiments.ledger.job import Cell, canonical
from demonet.experiments.parts.part import Entry, Part

# Numbers of nodes, and how many random graphs there are of each; on every one an epoch is timed several times.
GRAPHS = {1_000: 10, 3_000: 10, 10_000: 10, 30_000: 10, 100_000: 10, 300_000: 5}
# Method, what its input looks like, and the bench's name for both.
METHODS = (
    ("demonet-weight", "", "weight"),
    ("demonet-hash", "", "hash"),
    ("demonet-smooth", "", "smooth"),
    ("gcn", "edge list", "gcn"),
    ("gcn", "CSR", "gcn-csr"),
    ("sage", "edge list", "sage"),
    ("sage", "CSR", "sage-csr"),
    ("gin", "edge list", "gin"),
    ("gin", "CSR", "gin-csr"),
    ("gat", "edge list", "gat"),
)


def _entries(graphs: Mapping[int, int]) -> list[Entry]:
    return [
        Entry(
            Cell("speed", f"uniform-{nodes}", method, options=canonical({"network": network, "threads": 1})),
            count,
            form,
            alone=True,
            most=GRAPHS[nodes],
        )
        for nodes, count in graphs.items()
        for method, form, network in METHODS
    ]


SPEED = Part(
    "speed",
    "Figure: time of an epoch by the number of nodes",
    "Milliseconds, and so lower is better. Random graphs of n nodes and 2n edges, 64 features, 16 classes, two hidden "
    "layers of 64 and a linear head. An epoch is forward, cross-entropy over all nodes, backward and a step of Adam, "
    "on one thread of a CPU with nothing beside it; the median of several samples, the mean over the graphs. The "
    "constant part of the first layer is computed once for ours. Peers are PyTorch Geometric's, on an edge list and, "
    "where they take one, on the faster sparse matrix. The paper prints the figure without numbers.",
    lambda: _entries(GRAPHS),
    lambda: _entries({1_000: 1, 10_000: 1}),
    device="cpu",
)
