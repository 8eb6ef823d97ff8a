"""One training epoch on CPU: our three schemes beside PyTorch Geometric's layers and an MLP, in one process.

    python benchmarks/cpu_epoch.py [--threads 2] [--repeats 15] [--out benchmarks/results/cpu_epoch.csv]

An epoch is forward, cross-entropy on every node, backward and fused Adam: two layers and a linear head, float32. Every
network has the same widths and activation and gets its fastest input (ours a prepared layout) or the one named in its
line. Ours compute their loss by ``model.loss``; where the line says "scores", by torch's ``cross_entropy`` of the
scores, as all others do. The networks take turns, so that whatever else the machine does falls on all of them alike;
each line is the median of its turns. ``to_mlp`` is the time divided by the MLP's, which moves no messages at all.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path

import tables
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, MFConv, SAGEConv
from torch_geometric.utils import to_torch_csr_tensor

from demonet import NodeDEMONet
from demonet.data.synthetic import uniform_random
from demonet.degree import DegreeTasks
from demonet.degree.count import count_degree
from demonet.nn import ModelConfig

PAPER = ModelConfig(scheme="weight", aggr="sum", combine="concat", bias=False)
CLASSES = 10
FUSED = ("demonet weight", "demonet hash", "demonet smooth")
ACTIVATIONS = {"elu": F.elu, "relu": F.relu}


class Peer(nn.Module):
    """Two layers of one kind and a linear head."""

    def __init__(self, make: Callable[[int, int], nn.Module], width: int, activation: str) -> None:
        super().__init__()
        self.layers = nn.ModuleList([make(width, width), make(width, width)])
        self.head, self.activation = nn.Linear(width, CLASSES), ACTIVATIONS[activation]

    def forward(self, x: Tensor, *graph: Tensor) -> Tensor:
        for layer in self.layers:
            x = self.activation(layer(x, *graph))
        return self.head(x)


def networks(nodes: int, arcs: int, width: int, activation: str) -> dict[str, tuple[nn.Module, tuple]]:
    """Every network with what it is called with."""
    data = uniform_random(nodes, arcs // 2, seed=0)
    torch.manual_seed(0)
    x, edge_index = torch.randn(nodes, width), data.edge_index
    adj_t = to_torch_csr_tensor(edge_index, size=(nodes, nodes))  # undirected: its own transpose
    tasks = DegreeTasks.exact(count_degree(edge_index, nodes))
    makers = {
        "MLP": (nn.Linear, ()),
        "GCN, edge_index": (GCNConv, (edge_index,)),
        "GCN, cached CSR": (lambda i, o: GCNConv(i, o, cached=True), (adj_t,)),
        "SAGE, edge_index": (SAGEConv, (edge_index,)),
        "SAGE, CSR": (SAGEConv, (adj_t,)),
        "GIN, edge_index": (lambda i, o: GINConv(nn.Linear(i, o)), (edge_index,)),
        "GIN, CSR": (lambda i, o: GINConv(nn.Linear(i, o)), (adj_t,)),
        "MFConv, edge_index": (MFConv, (edge_index,)),
        "GAT, edge_index": (GATConv, (edge_index,)),
    }
    found: dict[str, tuple[nn.Module, tuple]] = {}
    for scheme in ("weight", "hash", "smooth"):
        model = NodeDEMONet(
            width, CLASSES, tasks, PAPER, scheme=scheme, hidden=width, dropout=0.0, activation=activation
        )
        found[f"demonet {scheme}"] = (model, (model.prepare(x, edge_index),))
    found["demonet weight, scores"] = found["demonet weight"]
    for name, (make, graph) in makers.items():
        found[name] = (Peer(make, width, activation), (x, *graph))
    return found


def epoch(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: tuple, y: Tensor, *, fused: bool) -> None:
    """Forward, loss, backward, Adam."""
    optimizer.zero_grad(set_to_none=True)
    if fused:
        loss = model.loss(*inputs, y, torch.full((y.numel(),), 1 / y.numel()))
    else:
        loss = F.cross_entropy(model(*inputs), y)
    loss.backward()
    optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--arcs", type=int, default=400_000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--activation", choices=list(ACTIVATIONS), default="relu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--cpu-time", action="store_true", help="count the process's CPU time, for a busy machine")
    parser.add_argument("--only", default="", help="networks whose names contain one of these words, by commas")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    runs = networks(options.nodes, options.arcs, options.width, options.activation)
    words = options.only.split(",")
    runs = {name: run for name, run in runs.items() if any(word in name for word in words)}
    y = torch.randint(CLASSES, (options.nodes,), generator=torch.Generator().manual_seed(1))
    optimizers = {name: torch.optim.Adam(model.parameters(), lr=0.005, fused=True) for name, (model, _) in runs.items()}
    steps = {
        name: partial(epoch, model, optimizers[name], inputs, y, fused=name in FUSED)
        for name, (model, inputs) in runs.items()
    }
    times = tables.take_turns(steps, options.repeats, warm_up=2, cpu_time=options.cpu_time)
    ours = statistics.median(times["demonet weight"])
    floor = statistics.median(times["MLP"]) if "MLP" in times else float("nan")
    rows = []
    for name, values in times.items():
        low, median, high = statistics.quantiles(values, n=4)
        row = {"network": name, "median_ms": f"{median:.1f}", "quartile_1": f"{low:.1f}", "quartile_3": f"{high:.1f}"}
        rows.append(row | {"to_mlp": f"{median / floor:.2f}", "to_demonet_weight": f"{median / ours:.2f}"})
        print("{:23} {:>8} ms  [{:>7}, {:>7}]  {:>5} x MLP  {:>5} x demonet weight".format(*rows[-1].values()))
    if options.out is not None:
        tables.write(options.out, rows, command=True)


if __name__ == "__main__":
    main()
