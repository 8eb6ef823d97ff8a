"""A training step of two layers on graphs with wide attributes: ``DEMOConv`` beside GCN, GraphSAGE and GraphConv.

    PYTHONPATH=src python benchmarks/wide.py --out benchmarks/results

Plain PyTorch around the layers: attributes -> 64 -> classes, ReLU, cross-entropy, Adam; eager, float32. Graphs and
attributes are generated with the sizes of public datasets: power laws, and rows of attributes in which one in a hundred
is not zero. All layers of a graph are timed in one run, in turns, after warm-up; ``ms`` is the median. It needs torch
and torch_geometric alone, and runs on a CPU, too (``--device cpu --only cora``).
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, GraphConv, SAGEConv

from demonet import DegreeLayout, DEMOConv
from demonet.data import synthetic
from demonet_study.bench.step import timed
from demonet_study.experiments.rows import write_rows

# Nodes, undirected edges, attributes, classes, largest degree.
SIZES = {
    "cora": (2_708, 5_278, 1_433, 7, 168),
    "pubmed": (19_717, 44_324, 500, 3, 171),
    "photo": (7_650, 119_081, 745, 8, 1_434),
    "computers": (13_752, 245_861, 767, 10, 2_992),
    "authors": (18_333, 81_894, 6_805, 15, 136),
}
WIDTH = 64
Make = Callable[[int, int], nn.Module]
# The layer with GCN's sums, with GraphSAGE's, and the smooth scheme.
SETTINGS = {
    "scale, sym, share": {"scheme": "scale", "aggr": "sym", "combine": "share"},
    "scale, mean, add": {"scheme": "scale", "aggr": "mean", "combine": "add"},
    "smooth, mean, add": {"scheme": "smooth", "aggr": "mean", "combine": "add"},
}


def layers() -> Iterator[tuple[str, Make, bool]]:
    """Names, how a layer is made from its widths, and whether it reads a layout that was made once."""
    yield "GCN", GCNConv, False
    yield "GCN, cached", partial(GCNConv, cached=True), False
    yield "GraphSAGE", SAGEConv, False
    yield "GraphConv", GraphConv, False
    for name, settings in SETTINGS.items():
        yield name, partial(DEMOConv, **settings), False
        yield f"{name}, cached", partial(DEMOConv, **settings, cached=True), False
        yield f"{name}, layout", partial(DEMOConv, **settings), True


@dataclass(frozen=True)
class Row:
    """The time of a layer on a graph, and the ratio to GCN in the same run."""

    graph: str
    nodes: int
    edges: int
    attributes: int
    layer: str
    ms: float
    spread: float
    of_gcn: float


class Net(nn.Module):
    """Two layers."""

    def __init__(self, make: Make, attributes: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = make(attributes, WIDTH), make(WIDTH, classes)

    def forward(self, x: Tensor, edges: Any) -> Tensor:
        """``[n, classes]`` scores."""
        return self.second(self.first(x, edges).relu(), edges)


def make_step(make: Make, x: Tensor, y: Tensor, edges: Any, classes: int) -> Callable[[], None]:
    """One training step of a new network."""
    torch.manual_seed(0)
    model = Net(make, x.size(1), classes).to(x.device)
    model(x, edges)  # parameters that are made from the first graph
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x, edges), y).backward()
        optimizer.step()

    return step


def measure(name: str, device: torch.device) -> list[Row]:
    """All layers on one graph."""
    nodes, edges, attributes, classes, hub = SIZES[name]
    edge_index = synthetic.power_law(nodes, edges, hub, 0).edge_index.to(device)
    generator = torch.Generator(device).manual_seed(0)
    x = (torch.rand(nodes, attributes, generator=generator, device=device) < 0.01).float()
    y = torch.randint(classes, (nodes,), generator=generator, device=device)
    layout = DegreeLayout.from_edge_index(edge_index, nodes)
    steps = {
        layer: make_step(make, x, y, layout if on_layout else edge_index, classes)
        for layer, make, on_layout in layers()
    }
    many = 20 if device.type == "cuda" else 2
    times: dict[str, list[float]] = {layer: [] for layer in steps}
    for repeat in range(8):
        for layer, step in steps.items():
            taken = 1000 * timed(step, many, device)
            if repeat:  # the first round warms up
                times[layer].append(taken)
    base = statistics.median(times["GCN"])
    rows = []
    for layer, taken in times.items():
        ms = statistics.median(taken)
        spread = (max(taken) - min(taken)) / ms
        rows.append(Row(name, nodes, edge_index.size(1), attributes, layer, ms, spread, ms / base))
        print(f"{name:10} {layer:26} {ms:8.2f} ms  {ms / base:6.2f} of GCN", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", nargs="+", choices=SIZES, default=list(SIZES))
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    rows = [row for name in arguments.only for row in measure(name, device)]
    write_rows(rows, arguments.out / f"{device.type}_wide.csv")


if __name__ == "__main__":
    main()
