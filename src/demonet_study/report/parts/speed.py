"""Figure: time per epoch by the number of nodes, with 2n random edges."""

from __future__ import annotations

from collections.abc import Mapping

from demonet.report.chart import Axis, Chart, Panel, Series
from demonet.sealed import canonical
from demonet_study.ledger.job import Cell
from demonet_study.report.grid import Layout, ResultRow
from demonet_study.report.names import colour_of
from demonet_study.report.parts.part import Entry, Part, Rows

# Number of nodes: number of random graphs. On each graph, an epoch is timed several times.
GRAPHS = {1_000: 10, 3_000: 10, 10_000: 10, 30_000: 10, 100_000: 10, 300_000: 5}
# Method, format of its input, and the name of both in demonet_study.bench.
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


def _nodes(row: ResultRow) -> float:
    """The number of nodes, from a name such as ``uniform-1000``."""
    return float(row.dataset.rpartition("-")[2])


def _chart(rows: Rows) -> Chart | None:
    """Milliseconds per epoch by the number of nodes, on log axes; a colour per method, a symbol per input format."""
    done = [row for row in rows if row.mean > 0]
    if not done:
        return None
    lines: dict[str, list[ResultRow]] = {}
    for row in done:
        lines.setdefault(row.full_name, []).append(row)
    forms = list(dict.fromkeys(row.variant for row in done))
    series = [
        Series(
            name,
            [_nodes(row) for row in line],
            [row.mean for row in line],
            colour=colour_of(line[0].method),
            symbol=forms.index(line[0].variant),
            hover=[f"{name}\n{row.mean:.3g} ms at {_nodes(row):,.0f} nodes" for row in line],
        )
        for name, line in lines.items()
    ]
    x = Axis("number of nodes (twice as many random edges)", log=True)
    return Chart("Time of an epoch", [Panel("", series)], x, Axis("milliseconds", log=True), columns=1)


SPEED = Part(
    "speed",
    "Figure: time of an epoch by the number of nodes",
    "Milliseconds; lower is better. Random graphs with n nodes and 2n edges, 64 features, 16 classes, two hidden "
    "layers of width 64 and a linear head. An epoch is forward pass, cross-entropy over all nodes, backward pass and "
    "a step of Adam, on one otherwise idle CPU thread; the median of several samples, then the mean over the graphs. "
    "For ours, the constant part of the first layer is computed once. Peers are those of PyTorch Geometric, on an "
    "edge list and, if supported, on a sparse matrix, which is faster. The paper prints the figure without numbers.",
    lambda: _entries(GRAPHS),
    lambda: _entries({1_000: 1, 10_000: 1}),
    device="cpu",
    layout=Layout(column=lambda row: f"{_nodes(row):,.0f}", line=lambda row: row.full_name, best="min", digits=1),
    charts=lambda rows, _: {"speed": _chart(rows)},
)
