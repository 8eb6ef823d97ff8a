"""One training epoch of a graph classifier in batches of 32: graphs kept, laid out anew, and GIN through PyG's loader.

    python benchmarks/small_graphs.py [--sets mutag,ptc,proteins] [--presets default,strong]
        [--out benchmarks/results/small_graphs.csv]

``kept`` is how the package trains: graphs are laid out once, every epoch's batches are put together from the pieces.
``anew`` lays every batch out again, with the same numbers as a result. GIN has the same widths, norms and readouts, and
gets its batches from a ``DataLoader``. The three take turns in one process; medians. Needs the sets in $DEMONET_DATA.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from functools import partial
from itertools import count, product
from pathlib import Path

import tables
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, global_add_pool

from demonet.data import load
from demonet.data.splits import thirds
from demonet.degree.count import count_degree
from demonet.features import FeatureMap
from demonet.nn.models import GraphDEMONet
from demonet.nn.prepared import GraphUnion
from demonet.train import GraphProblem, preset
from demonet.train.problem import collated
from demonet.train.recipes import prepare_batch, replace_features
from demonet.train.steps import parameter_groups


class GIN(nn.Module):
    """Two layers with a norm and two maps each; every layer's sum is read by a head with one hidden layer."""

    def __init__(self, channels: int, width: int, classes: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        for inside in (channels, width):
            maps = nn.Sequential(nn.Linear(inside, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width))
            self.layers.append(GINConv(maps))
        total = channels + 2 * width
        self.head = nn.Sequential(
            nn.BatchNorm1d(total), nn.Linear(total, width), nn.ReLU(), nn.Dropout(0.3), nn.Linear(width, classes)
        )

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, size: int) -> Tensor:
        read = [global_add_pool(x, batch, size)]
        for layer in self.layers:
            x = F.dropout(F.relu(layer(x, edge_index)), 0.3, self.training)
            read.append(global_add_pool(x, batch, size))
        return self.head(torch.cat(read, 1))


def epochs(name: str, preset_name: str = "default") -> dict[str, Callable[[int], None]]:
    """One epoch of each network, told its number."""
    chosen = preset(preset_name, "graphs")
    graphs = list(load(name))
    y = torch.cat([graph.y.view(-1) for graph in graphs])
    split = thirds(y, 0)
    seen = [graphs[i] for i in split.train.tolist()]
    features = FeatureMap(chosen.features).fit(seen)
    ready = [replace_features(graph, features.transform(graph)) for graph in graphs]
    tasks = chosen.make_tasks(torch.cat([count_degree(graph.edge_index, graph.num_nodes) for graph in seen]))
    classes, size = int(y.max()) + 1, chosen.train.batch_size

    def ours() -> tuple[GraphDEMONet, torch.optim.Optimizer]:
        torch.manual_seed(0)
        model = GraphDEMONet(features.num_features, classes, tasks, chosen.model)
        return model, torch.optim.Adam(parameter_groups(model, chosen.train), lr=0.01, fused=True)

    def train(model: nn.Module, optimizer: torch.optim.Optimizer, problem: GraphProblem, number: int) -> None:
        for part in problem.training(0, number):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(*part.inputs), part.y).backward()
            optimizer.step()

    found: dict[str, Callable[[int], None]] = {}
    model, optimizer = ours()
    whole = prepare_batch(model, Batch.from_data_list(ready))[0]
    kept = GraphUnion(whole, [g.num_nodes for g in ready], [g.edge_index.size(1) for g in ready])
    found["kept"] = partial(train, model, optimizer, GraphProblem(y, split, lambda each: zip(kept.take(each)), size))
    model, optimizer = ours()
    anew = collated(ready, partial(prepare_batch, model))
    found["anew"] = partial(train, model, optimizer, GraphProblem(y, split, anew, size))

    torch.manual_seed(0)
    gin = GIN(features.num_features, chosen.model.hidden, classes)
    optimizer_gin = torch.optim.Adam(gin.parameters(), lr=0.01, fused=True)
    data = [Data(x=ready[i].x, edge_index=ready[i].edge_index, y=y[i].view(1)) for i in split.train.tolist()]
    loader = DataLoader(data, batch_size=size, shuffle=True)

    def train_gin(number: int) -> None:
        for batch in loader:
            optimizer_gin.zero_grad(set_to_none=True)
            F.cross_entropy(gin(batch.x, batch.edge_index, batch.batch, batch.num_graphs), batch.y).backward()
            optimizer_gin.step()

    found["GIN, DataLoader"] = train_gin
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="mutag,ptc,proteins")
    parser.add_argument("--presets", default="default,strong")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cpu-time", action="store_true", help="count the process's CPU time, for a busy machine")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = []
    for name, of in product(options.sets.split(","), options.presets.split(",")):
        runs = epochs(name, of)
        numbers = {run: map(epoch, count()) for run, epoch in runs.items()}  # epochs are numbered: 0, 1, ...
        steps = {run: partial(next, epochs_of_run) for run, epochs_of_run in numbers.items()}
        times = tables.take_turns(steps, options.repeats, cpu_time=options.cpu_time)
        ours = statistics.median(times["kept"])
        for run, values in times.items():
            median = statistics.median(values)
            row = {
                "set": name,
                "preset": of,
                "run": run,
                "median_ms": f"{median:.1f}",
                "to_kept": f"{median / ours:.2f}",
            }
            rows.append(row)
            print("{:10} {:8} {:18} {:>8} ms an epoch  {:>6} x kept".format(*row.values()))
    if options.out is not None:
        tables.write(options.out, [row | {"command": tables.command(out=options.out)} for row in rows])


if __name__ == "__main__":
    main()
