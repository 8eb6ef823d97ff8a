"""The closed form on development splits: accuracy, log-loss, calibration and time, and what the degree is worth.

    python benchmarks/closed_form.py [--sets flickr brazil ...] [--splits 3] [--beside floors|networks|nothing]

For every set and split (seeds from 5,000 on, which no table uses): floors, the kernel machine, the same without the
degree-specific part (s_d = 0, settings searched again) and with degrees shuffled among nodes (same settings). Strict:
fitted on the training part alone; settings, noise and link are chosen by leave-one-out and on the validation part; the
test part is only reported. Sets named ``generated ...`` come from the generators below. A run adds its rows to the file
in place of earlier rows of the same set. The summary has means, standard errors and paired differences.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tables
import torch
from calibration import calibration_error
from other_sets import neighbour_roles
from torch_geometric.data import Data

from demonet.closedform import KernelMachine
from demonet.closedform.machine import log_loss
from demonet.data import load
from demonet.data.splits import Split
from demonet.data.synthetic import flip_graph, role_graph, small_graphs
from demonet.errors import DemonetWarning
from demonet.methods import get
from demonet_study.protocol import split_by

FIRST_SEED = 5_000
COLUMNS = ["set", "split", "method", "accuracy", "log_loss", "ece", "seconds", "task", "command"]
SHUFFLE = 7


def block_model(within: float, across: float, signal: float, seed: int = 0, n: int = 1500, classes: int = 5) -> Data:
    """Blocks with Gaussian attributes around a mean for each class, and degrees that differ within a block."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    push = rng.pareto(2.5, n) + 0.5
    chance = np.where(y[:, None] == y, within, across) * push[:, None] * push / push.mean() ** 2 / n
    edges = np.stack(np.nonzero(np.triu(rng.random((n, n)) < chance, 1)))
    x = signal * rng.normal(size=(classes, 16))[y] + rng.normal(size=(n, 16))
    return _data(edges, n, y, x)


def topics(seed: int = 0, n: int = 1200, classes: int = 6, words: int = 600) -> Data:
    """Counts of words drawn from the topic of a class, few of them, and neighbours mostly of the same class."""
    rng = np.random.default_rng(seed)
    data = block_model(8.0, 1.0, 0.0, seed, n, classes)
    topic = rng.dirichlet(np.full(words, 0.1), size=classes) * 0.3 + 0.7 / words
    counts = np.stack([rng.multinomial(12, topic[c]) for c in data.y.tolist()])
    data.x = torch.from_numpy(counts).float().to_sparse_csr()
    return data


def _data(edges: np.ndarray, n: int, y: np.ndarray, x: np.ndarray) -> Data:
    edge_index = torch.from_numpy(np.concatenate([edges, edges[::-1]], axis=1))
    return Data(x=torch.from_numpy(x).float(), edge_index=edge_index, y=torch.from_numpy(y), num_nodes=n)


GENERATED: dict[str, Callable[[], Any]] = {
    "generated homophilous": lambda: block_model(8.0, 2.0, 0.35),
    "generated heterophilous": lambda: block_model(1.0, 4.0, 0.35),
    "generated topics": topics,
    "generated roles": role_graph,
    "generated neighbour roles": lambda: neighbour_roles(0, n=2000, hub=100, noise=0.2),
    "generated flip": lambda: flip_graph(noise=0.0),
    "generated families": lambda: small_graphs(200, noise=0.3),
}
SOCIAL = ("flickr", "blogcatalog")
SETS = [*SOCIAL, "brazil", "europe", "usa", "MUTAG", "PTC", "ENZYMES", "PROTEINS", *GENERATED]


def methods_for(data: Any, beside: str) -> list[str]:
    """Floors, with GCN and GraphSAGE or GIN after them where networks are asked for."""
    networks = beside == "networks"
    if beside == "nothing":
        return []
    if not isinstance(data, Data):
        return ["wl-rf", "wl-1nn", "wl"] + ["gin"] * networks
    if data.x is None:
        return ["degree-svm", "structural-rf", "structural-lr"] + ["gin", "sage"] * networks
    return ["attribute-neighbour-lr"] + ["gcn", "sage"] * networks


def kernels(data: Any, y: np.ndarray, split: Split) -> list[dict[str, Any]]:
    """The machine with the degree, without it, and with shuffled degrees."""
    train, val, test = (part.numpy() for part in (split.train, split.val, split.test))
    rows = []

    def add(name: str, start: float, machine: KernelMachine, view: Any) -> None:
        log_p = machine.link_.log_probabilities(machine.decision_of(view))
        rows.append(
            {
                "method": name,
                "accuracy": (log_p.argmax(axis=1) == y[test]).mean(),
                "log_loss": log_loss(log_p, y[test]),
                "ece": calibration_error(np.exp(log_p), y[test]),
                "seconds": time.perf_counter() - start,
                "task": machine.task_,
            }
        )

    for name, degree in (("kernel", True), ("kernel, s_d = 0", False)):
        start = time.perf_counter()
        machine = KernelMachine(degree=degree).fit(data, train, y[train], val, y[val])
        view = machine.inputs_.transform(data)
        add(name, start, machine, view.take(test))
        if degree:
            start, settings = time.perf_counter(), [setting for setting, _ in machine.members_]
            moved = view.shuffled(SHUFFLE)
            shuffled = KernelMachine(machine.task_, settings=settings)
            shuffled.fit_views(moved.take(train), y[train], moved.take(val), y[val])
            add("kernel, shuffled degrees", start, shuffled, moved.take(test))
    return rows


def measure(name: str, split_seed: int, beside: str) -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemonetWarning)
        data = GENERATED[name]() if name in GENERATED else load(name)
    labels = data.y if isinstance(data, Data) else torch.tensor([int(graph.y) for graph in data])
    data = data if isinstance(data, Data) else list(data)
    split = split_by("10/20/70" if name in SOCIAL else "thirds", labels, split_seed)
    y, test, rows = labels.numpy(), split.test.numpy(), []
    for method in methods_for(data, beside):
        start = time.perf_counter()
        predicted = get(method)().fit(data, split, split_seed).predict().numpy()
        seconds = time.perf_counter() - start
        rows.append({"method": method, "accuracy": (predicted[test] == y[test]).mean(), "seconds": seconds})
    rows += kernels(data, y, split)
    return [{"set": name, "split": split_seed, **row, "command": tables.command()} for row in rows]


def summary(rows: list[dict[str, Any]]) -> None:
    for name in dict.fromkeys(row["set"] for row in rows):
        here = [row for row in rows if row["set"] == name]
        runs = {
            m: np.array([float(r["accuracy"]) for r in here if r["method"] == m]) for m in {r["method"] for r in here}
        }
        print(f"\n{name}, {len(runs['kernel'])} splits")
        for method in dict.fromkeys(row["method"] for row in here):
            a, gap = runs[method], runs["kernel"] - runs[method]
            root = max(1, len(a) - 1) ** 0.5
            mine = [r for r in here if r["method"] == method]
            loss = np.mean([float(r["log_loss"]) for r in mine]) if mine[0].get("log_loss") else float("nan")
            ece = np.mean([float(r["ece"]) for r in mine]) if mine[0].get("ece") else float("nan")
            seconds = np.mean([float(r["seconds"]) for r in mine])
            print(
                f"  {method:26s} {a.mean():.4f} ± {a.std() / root:.4f}   kernel - this {gap.mean():+.4f} ± "
                f"{gap.std() / root:.4f}   log-loss {loss:.3f}  ece {ece:.3f}  {seconds:.1f} s"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", choices=SETS, default=SETS)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--beside", choices=["floors", "networks", "nothing"], default="floors")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "closed_form.csv")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.sets:
        new: list[dict[str, Any]] = []
        for seed in range(FIRST_SEED, FIRST_SEED + options.splits):
            new += measure(name, seed, options.beside)
            write(options.out, name, new)
        summary(new)
        sys.stdout.flush()


def write(path: Path, name: str, new: list[dict[str, Any]]) -> None:
    """The rows of a set in place of those that the file has of it."""
    rows = [row for row in tables.read(path) if row["set"] != name]
    for row in new:
        numbers = {key: f"{row[key]:.6g}" for key in ("accuracy", "log_loss", "ece", "seconds") if key in row}
        rows.append({**row, **numbers})
    tables.write(path, rows, COLUMNS)


if __name__ == "__main__":
    main()
