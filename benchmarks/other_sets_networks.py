"""The networks of the ensemble beside GCN, GraphSAGE and GIN on sets of other kinds than the paper's.

    python benchmarks/other_sets_networks.py [--sets citations digits ...] [--splits 3] [--methods network gcn ...]

Every method is an average over three seeds, fitted on the training part; the validation part chooses the epoch. The
baselines have two layers of 64 units, dropout .5, Adam with .01 and an L2 penalty of 5e-4, and the better of two inputs
by validation accuracy: the attributes as our networks read them, with and without the structure beside them. ``best``
is the one of our networks with the lower validation log-loss. A run adds its rows to the file in place of earlier rows
of the same set and method.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from other_sets import FIRST_SEED, GRAPHS, NODES, split_of
from torch_geometric.data import Data

from demonet.baselines import get
from demonet.data.splits import Split
from demonet.ensemble.member import Labelled
from demonet.ensemble.networks import NetworkMember
from demonet.ensemble.portfolio import portfolio
from demonet.ensemble.views import view_of
from demonet.train.config import TrainConfig

COLUMNS = ["set", "split", "method", "accuracy", "seconds", "command"]
METHODS = ["network", "gcn", "sage", "gin"]
SEEDS = 3


def ours(data: Any, y: np.ndarray, split: Split) -> dict[str, tuple[float, float]]:
    """Accuracy and seconds of each network in the portfolio, and of the best by validation."""
    view = view_of(data)
    labelled = Labelled(y, int(y.max()) + 1, split.train.numpy(), split.val.numpy(), split.seed)
    found, losses = {}, {}
    for member in portfolio(view, labelled):
        if isinstance(member, NetworkMember):
            start = time.perf_counter()
            p = member.fit(view, labelled).predict_proba(view)
            right = (p.argmax(1) == y)[split.test.numpy()].mean()
            found[member.name] = float(right), time.perf_counter() - start
            losses[member.name] = -np.log(np.maximum(p[labelled.val, y[labelled.val]], 1e-9)).mean()
    best = min(losses, key=lambda name: losses[name])
    return found | {"best": (found[best][0], sum(seconds for _, seconds in found.values()))}


def baseline(name: str, data: Any, y: np.ndarray, split: Split) -> tuple[float, float]:
    """Test accuracy with the better inputs by validation, and the seconds of both."""
    graphs = not isinstance(data, Data)
    attributes = (data[0] if graphs else data).x is not None
    train = TrainConfig(lr=0.01, weight_decay=5e-4, epochs=300, patience=40, batch_size=64 if graphs else None)
    changes = {} if name == "gcn" else {"layers": 2}
    start, tried = time.perf_counter(), []
    for features in ["encoded", "encoded+structure"] if attributes else ["structure"]:
        p: Any = 0.0
        for seed in range(SEEDS):
            fitted = get(name)(features=features, hidden=64, dropout=0.5, train=train, **changes).fit(data, split, seed)
            p = p + fitted._scores.softmax(1).numpy()
        right = p.argmax(1) == y
        tried.append((right[split.val.numpy()].mean(), float(right[split.test.numpy()].mean())))
    return max(tried, key=lambda pair: pair[0])[1], time.perf_counter() - start


def measure(name: str, seed: int, methods: list[str]) -> list[dict[str, Any]]:
    """All methods on one split."""
    data = (NODES | GRAPHS)[name](seed)
    y = (data.y if isinstance(data, Data) else torch.cat([graph.y for graph in data])).numpy()
    split, found = split_of(name, data, seed), {}
    for method in methods:
        found |= ours(data, y, split) if method == "network" else {method: baseline(method, data, y, split)}
    command = "python " + " ".join(sys.argv)
    numbers = [(method, f"{a:.4f}", f"{s:.1f}") for method, (a, s) in found.items()]
    return [dict(zip(COLUMNS, (name, seed, *row, command), strict=True)) for row in numbers]


def write(path: Path, new: list[dict[str, Any]]) -> None:
    """The rows in place of those that the file has of the same set and method."""
    rows = list(csv.DictReader(path.open(encoding="utf-8"))) if path.exists() else []
    replaced = {(row["set"], row["method"]) for row in new}
    rows = [row for row in rows if (row["set"], row["method"]) not in replaced] + new
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", choices=[*NODES, *GRAPHS], default=[*NODES, *GRAPHS])
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=METHODS)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "other_sets_networks.csv")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name in options.sets:
        new: list[dict[str, Any]] = []
        for seed in range(FIRST_SEED, FIRST_SEED + options.splits):
            new += measure(name, seed, options.methods)
        write(options.out, new)
        shown = []
        for method in dict.fromkeys(row["method"] for row in new):
            mine = [row for row in new if row["method"] == method]
            accuracy, seconds = (np.mean([float(row[key]) for row in mine]) for key in ("accuracy", "seconds"))
            shown.append(f"{method} {accuracy:.3f} ({seconds:.0f} s)")
        print(f"{name:26s} {'  '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()
