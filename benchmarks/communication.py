"""What processes send each other: the rows of the halo, for 2 to 1,024 workers, with the partitioners themselves.

    python benchmarks/communication.py [--nodes 100000] [--degree 8] [--draw]

Nothing is trained: a graph is cut, and the rows that each worker receives in one exchange are counted. ``halo`` is
their number over that of the nodes; ``largest`` is the most that one worker receives, and ``work`` the most nodes and
edges that one has, both over the mean. ``megabytes`` is what all workers together send in an epoch of two layers of
width 64 in float32: one exchange forward and one backward, since the sums of the first layer are known. Nodes are
numbered at random, so that their numbers do not tell where the communities are. METIS needs ``pymetis``. Rows that are
in the table already are not made again.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import tables
import torch
from torch import Tensor

from demonet.data.edges import simple_edges
from demonet.data.synthetic import power_law
from demonet.degree.count import count_degree
from demonet.distributed.partition import assign, cut
from demonet.report.chart import Axis, Chart, Panel, Series
from demonet_study.report import chart_svg

RESULTS = Path(__file__).parent / "results" / "communication.csv"
IMAGE = Path(__file__).parent.parent / "docs" / "images" / "halo.svg"
WORKERS = [2**power for power in range(1, 11)]
METHODS = ("hash", "balanced", "metis")
COMMUNITY, INSIDE = 200, 0.8  # nodes of a community, and the share of edges inside them
WIDTH, BYTES, EXCHANGES = 64, 4, 2


def law(nodes: int, edges: int, seed: int) -> Tensor:
    """Degrees by a power law of 2.5, nodes in random order."""
    edge_index = power_law(nodes, edges, hub=0, seed=seed).edge_index
    return torch.from_numpy(np.random.default_rng(seed).permutation(nodes))[edge_index]


def communities(nodes: int, edges: int, seed: int) -> Tensor:
    """Groups of equal size with most of the edges inside them, nodes in random order."""
    generator = np.random.default_rng(seed)
    source = generator.integers(nodes, size=edges)
    first = source // COMMUNITY * COMMUNITY
    near = first + generator.integers(COMMUNITY, size=edges)
    far = generator.integers(nodes, size=edges)
    target = np.where(generator.random(edges) < INSIDE, np.minimum(near, nodes - 1), far)
    order = generator.permutation(nodes)
    return simple_edges(order[source], order[target], nodes)[0]


GRAPHS: dict[str, Callable[[int, int, int], Tensor]] = {"power law": law, "communities": communities}


def measure(graph: str, nodes: int, edges: int, known: list[dict[str, str]]) -> Iterator[dict[str, str]]:
    edge_index = GRAPHS[graph](nodes, edges, 0)
    work = count_degree(edge_index, nodes) + 1
    done = {(row["graph"], row["nodes"], row["partition"], row["workers"]) for row in known}
    for method in METHODS:
        for workers in WORKERS:
            if (graph, str(nodes), method, str(workers)) in done:
                continue
            start = time.perf_counter()
            owner = assign(edge_index, nodes, workers, method)
            seconds = time.perf_counter() - start
            halo = torch.tensor([part.halo.numel() for part in cut(edge_index, owner, workers)]).double()
            load = torch.zeros(workers, dtype=torch.double).index_add_(0, owner, work.double())
            sent = float(halo.sum()) * WIDTH * BYTES * EXCHANGES
            row = {"graph": graph, "nodes": str(nodes), "edges": str(edge_index.size(1)), "partition": method}
            row |= {"workers": str(workers)}
            row |= {"halo": f"{float(halo.sum()) / nodes:.3f}", "largest": f"{float(halo.max() / halo.mean()):.2f}"}
            row |= {"work": f"{float(load.max() / load.mean()):.2f}", "megabytes": f"{sent / 1e6:.1f}"}
            print(*row.values(), flush=True)
            yield row | {"seconds": f"{seconds:.2f}"}


def draw(rows: list[dict[str, str]]) -> str:
    """The halo over the number of workers, a panel for each graph."""
    panels = []
    for graph in GRAPHS:
        lines = []
        for place, method in enumerate(METHODS):
            own = [row for row in rows if (row["graph"], row["partition"]) == (graph, method)]
            x, y = ([float(row[name]) for row in own] for name in ("workers", "halo"))
            lines.append(Series(method, x, y, colour=place, symbol=place))
        panels.append(Panel(graph, lines))
    axes = Axis("number of workers", log=True), Axis("rows received in an exchange / nodes", log=True)
    return chart_svg.draw(Chart("Rows that workers receive in an exchange", panels, *axes, columns=2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--degree", type=int, default=8, help="mean degree")
    parser.add_argument("--draw", action="store_true", help="only draw the figure from the table")
    options = parser.parse_args()
    rows = tables.read(RESULTS)
    for graph in GRAPHS if not options.draw else ():
        for row in measure(graph, options.nodes, options.nodes * options.degree // 2, list(rows)):
            rows.append(row)
            tables.write(RESULTS, rows)
    IMAGE.write_text(draw(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
