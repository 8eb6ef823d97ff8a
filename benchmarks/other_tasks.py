"""Numbers and several labels: the ensemble beside attributes only, neighbours' mean, a GCN and the kernel machine.

Generated sets have spatial, structural and attribute signal; public ones have columns of their attributes, or classes,
as targets. All rules are strict: fitted on the training part, chosen on validation. A row of the CSV is a set, a split
and a method with R2 and RMSE, or the macro average precision. --folder has the public sets that development.py reads.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tables
import torch
import torch.nn.functional as F
from development import load
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from demonet.data.load import load as load_dataset
from demonet.data.splits import Split, fractions
from demonet.data.synthetic import power_law
from demonet.ensemble import Ensemble
from demonet.features.graph import neighbour_mean, simple_adjacency
from demonet.methods import get
from demonet.train.metrics import METRICS, Task

Array = NDArray[Any]
COLUMNS = ["set", "task", "nodes", "split", "method", "r2", "rmse", "macro_ap", "seconds", "command"]
SHARES = (0.4, 0.2, 0.4)
WORDS = 4  # columns of a public set that become labels


def places(random: np.random.Generator, n: int = 1200, near: int = 6) -> tuple[Array, Array]:
    """Nodes in a plane, joined to the nearest; and a smooth function of the place with deviation 1."""
    place = random.random((n, 2))
    ends = np.stack([np.repeat(np.arange(n), near), cKDTree(place).query(place, near + 1)[1][:, 1:].ravel()])
    edges = np.unique(np.concatenate([ends, ends[::-1]], 1), axis=1)
    hills = zip(random.random((6, 2)), random.normal(size=6), strict=True)
    height = sum(h * np.exp(-((place - c) ** 2).sum(1) / (2 * 0.12**2)) for c, h in hills)
    return edges, np.asarray((height - height.mean()) / height.std())


def prices(seed: int) -> Data:
    """House prices: the district, size, an interaction, and noise of 30,000."""
    random = np.random.default_rng(seed)
    edges, district = places(random)
    x = random.normal(size=(len(district), 5))
    y = 3e5 + 9e4 * district + 5e4 * x[:, 0] + 2e4 * x[:, 1] * x[:, 2] + 3e4 * random.normal(size=len(x))
    return graph(x, edges, y[:, None])


def traffic(seed: int) -> Data:
    """A number that follows structure: degrees of a node and of its neighbours."""
    random = np.random.default_rng(seed)
    data = power_law(1200, 4000, hub=60, seed=seed)
    degree = np.diff(simple_adjacency(data).indptr)
    two = neighbour_mean(simple_adjacency(data), np.log1p(degree)[:, None])[:, 0]
    y = 3 * np.log1p(degree) + 4 * two + random.normal(size=1200)
    return graph(random.normal(size=(1200, 3)), data.edge_index.numpy(), y[:, None])


def income(seed: int) -> Data:
    """Two numbers that follow attributes alone, not linearly, on a graph that says nothing."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(1200, 6))
    y = np.stack([np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2], np.abs(x[:, 3]) + x[:, 4]], 1)
    return graph(x, power_law(1200, 4000, hub=40, seed=seed).edge_index.numpy(), y + 0.3 * random.normal(size=y.shape))


def interests(seed: int) -> Data:
    """Three labels: of the place, of the attributes, of both."""
    random = np.random.default_rng(seed)
    edges, district = places(random)
    x = random.normal(size=(len(district), 5))
    score = np.stack([2 * district, x[:, 0] - x[:, 1], district + x[:, 2]], 1) + 0.6 * random.normal(size=(len(x), 3))
    return graph(x, edges, (score > np.quantile(score, 0.75, axis=0)).astype(float))


def roles(seed: int) -> Data:
    """Two labels of structure: hubs, and nodes beside hubs; no attributes."""
    data = power_law(1200, 4000, hub=60, seed=seed)
    degree = np.diff(simple_adjacency(data).indptr).astype(float)
    two = neighbour_mean(simple_adjacency(data), np.log1p(degree)[:, None])[:, 0]
    noise = np.random.default_rng(seed).normal(size=(2, 1200))
    score = np.stack([np.log1p(degree) + 0.3 * noise[0], two + 0.1 * noise[1]], 1)
    data.y = torch.from_numpy((score > np.quantile(score, 0.8, axis=0)).astype(np.float32))
    data.x = None
    return data


def airports(seed: int) -> Data:
    """The quarter of the activity of an airport, as a number."""
    data = load_dataset("usa")
    assert isinstance(data, Data)
    return Data(edge_index=data.edge_index, num_nodes=data.num_nodes, y=data.y.double()[:, None])


def words(name: str, folder: Path) -> Callable[[int], Data]:
    """Words of documents that cite each other as labels, and all other words as attributes."""

    def made(seed: int) -> Data:
        found = load(folder, name)
        x = (found.x > 0).double().numpy()
        some = np.argsort(-x.sum(0), kind="stable")[10 : 10 + WORDS]
        return graph(np.delete(x, some, 1), found.edge_index.numpy(), x[:, some])

    return made


def graph(x: Array, edges: Array, y: Array) -> Data:
    """A Data of NumPy arrays."""
    return Data(
        x=torch.from_numpy(x).float(),
        edge_index=torch.from_numpy(np.ascontiguousarray(edges)),
        y=torch.from_numpy(y),
        num_nodes=len(y),
    )


def neighbours(data: Data, split: Split, task: Task) -> Array:
    """The mean of known targets among neighbours, then of two hops, then of all."""
    adjacency, known = simple_adjacency(data), np.zeros((int(data.num_nodes or 0), 1))
    known[split.train] = 1
    y = data.y.numpy()
    mean = y[split.train].mean(0)
    total, count = adjacency @ (known * y), adjacency @ known
    two, more = adjacency @ total, adjacency @ count
    return np.where(count > 0, total / np.maximum(count, 1), np.where(more > 0, two / np.maximum(more, 1), mean))


def gcn(data: Data, split: Split, task: Task) -> Array:
    """Two layers of width 64, dropout, Adam, at most 300 epochs; the epoch of lowest validation loss."""
    torch.manual_seed(split.seed)
    n = int(data.num_nodes or 0)
    x = (
        data.x
        if data.x is not None
        else torch.from_numpy(np.diff(simple_adjacency(data).indptr)).float().log1p()[:, None]
    )
    y = data.y.float()
    mean, scale = (y[split.train].mean(0), y[split.train].std(0)) if task == "regress" else (0.0, 1.0)
    target = (y - mean) / scale
    first, last = GCNConv(x.size(1), 64), GCNConv(64, y.size(1))
    optimizer = torch.optim.Adam([*first.parameters(), *last.parameters()], lr=0.01, weight_decay=5e-4)
    loss = F.mse_loss if task == "regress" else F.binary_cross_entropy_with_logits
    best, kept = np.inf, torch.zeros(n, y.size(1))
    for _ in range(300):
        hidden = F.dropout(first(x, data.edge_index).relu(), 0.5)
        optimizer.zero_grad()
        loss(last(hidden, data.edge_index)[split.train], target[split.train]).backward()
        optimizer.step()
        with torch.no_grad():
            scores = last(first(x, data.edge_index).relu(), data.edge_index)
            found = float(loss(scores[split.val], target[split.val]))
        if found < best:
            best, kept = found, scores
    return np.asarray(kept * scale + mean if task == "regress" else kept.sigmoid(), dtype=np.float64)


def method(name: str) -> Callable[[Data, Split, Task], Array]:
    """A registered method."""
    return lambda data, split, task: get(name)().fit(data, split, split.seed, task=task).predict_proba().numpy()


def ours(effort: Any) -> Callable[[Data, Split, Task], Array]:
    """The ensemble."""

    def outputs(data: Data, split: Split, task: Task) -> Array:
        found = Ensemble.fit(data, split, task=task, effort=effort, seed=split.seed, refit=False).strict_outputs
        assert found is not None
        return found

    return outputs


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("../shared/data/public"))
    parser.add_argument("--effort", default="quick")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/other_tasks.csv"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sets: dict[str, Callable[[int], Data]] = {
        **{made.__name__: made for made in (prices, traffic, income, airports, interests, roles)},
        **{f"{name}-words": words(name, options.folder) for name in ("cora", "citeseer")},
    }
    rows = []
    for name, made in sets.items():
        for seed in range(5000, 5000 + options.splits):
            data = made(seed)
            y = data.y.numpy()
            task: Task = "multilabel" if np.isin(y, (0, 1)).all() else "regress"
            split = fractions(torch.zeros(len(y), dtype=torch.int64), SHARES, seed)
            attributes = "attribute-ridge" if task == "regress" else "attribute-lr"
            methods = {"ensemble": ours(options.effort), "kernel": method("demonet-kernel"), "gcn": gcn}
            methods |= {"neighbours": neighbours, "hop-weighted": method("propagation")}
            methods |= {"attributes": method(attributes)} if data.x is not None else {}
            for called, outputs in methods.items():
                start, test = time.perf_counter(), split.test.numpy()
                found = outputs(data, split, task)[test]
                wanted = ("r2", "rmse") if task == "regress" else ("average-precision",)
                values = [METRICS[metric].functions[task](y[test], found, None) for metric in wanted]
                told = [f"{value:.4f}" if abs(value) < 1000 else f"{value:.0f}" for value in values]
                row = {"set": name, "task": task, "nodes": len(y), "split": seed, "method": called}
                row |= dict(zip(("r2", "rmse") if task == "regress" else ("macro_ap",), told, strict=True))
                rows.append(row | {"seconds": f"{time.perf_counter() - start:.1f}"})
                print(*rows[-1].values(), flush=True)
    command = tables.command(options.folder, out=options.out)
    tables.write(options.out, [row | {"command": command} for row in rows], COLUMNS)


if __name__ == "__main__":
    main()
