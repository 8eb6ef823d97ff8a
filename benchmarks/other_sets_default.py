"""The default model on problems of other kinds than the paper's, beside GCN, GraphSAGE, GIN, WL kernels and floors.

    python benchmarks/other_sets_default.py [--sets "two hops" karate ...] [--splits 2] [--first 7000] [--device cuda]
    python benchmarks/other_sets_default.py --public [--sets Cora films ...]

Everyone is fitted on the training part and chosen on validation (strict); the test part is only reported. Rows go to
``results/other_sets_default.csv``, with ``--public`` (sets of :mod:`public_sets`) to ``results/public_sets.csv``, in
place of earlier rows of the same set. The summary shows the difference from the best of the others, which is chosen
after the fact on the test part and therefore flattered.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import other_sets
import public_sets
import tables
import torch
from torch_geometric.data import Data

from demonet.ensemble import Ensemble
from demonet.methods import get

COLUMNS = ["set", "split", "method", "accuracy", "seconds", "command"]
AUTO = "demonet-auto"


def rivals(data: Any) -> list[str]:
    """The networks, kernels and floors that fit the data."""
    if not isinstance(data, Data):
        return ["gin", "wl", "wl-rf", "wl-1nn", "majority"]
    floors = ["degree-knn", "degree-svm", "structural-rf", "structural-lr", "majority"]
    attributes = [] if data.x is None else ["attribute-lr", "attribute-neighbour-lr"]
    return ["gcn", "sage", "gin", *attributes, *floors]


def measure(sets: Any, name: str, seed: int, device: str) -> list[dict[str, Any]]:
    """A row a method, on a set of a module of sets."""
    data = (sets.NODES | sets.GRAPHS)[name](seed)
    split = sets.split_of(name, data, seed)
    y = data.y.numpy() if isinstance(data, Data) else np.array([int(graph.y) for graph in data])
    test, rows = split.test.numpy(), []
    for method in [AUTO, *rivals(data)]:
        start = time.process_time()
        if method == AUTO:
            found = Ensemble.fit(data, split, seed=seed, refit=False, device=device).strict_outputs.argmax(1)
        else:
            found = get(method)().fit(data, split, seed).predict().numpy()
        seconds = time.process_time() - start
        rows.append(
            {"set": name, "split": seed, "method": method, "accuracy": (found == y)[test].mean(), "seconds": seconds}
        )
    return rows


def write(path: Path, name: str, new: list[dict[str, Any]], options: argparse.Namespace) -> None:
    """The rows of a set in place of those that the file has of it."""
    rows = [row for row in tables.read(path) if row["set"] != name]
    command = f"python benchmarks/other_sets_default.py --splits {options.splits} --first {options.first}"
    command += " --public" * options.public + f" --device {options.device}" * (options.device != "cpu")
    for row in new:
        numbers = {"accuracy": f"{row['accuracy']:.4f}", "seconds": f"{row['seconds']:.1f}"}
        rows.append(row | numbers | {"command": command})
    tables.write(path, rows, COLUMNS)


def summary(name: str, rows: list[dict[str, Any]]) -> str:
    """The default, the best of the others, and the difference."""
    means = {m: np.mean([r["accuracy"] for r in rows if r["method"] == m]) for m in {r["method"] for r in rows}}
    own = means.pop(AUTO)
    best = max(means, key=lambda method: means[method])
    return f"{name:26s} {own:.3f}   {means[best]:.3f} {best:24s} {own - means[best]:+.3f}"


def main() -> None:
    """Measure, write, and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--public", action="store_true", help="public sets, from packages in $DEMONET_PUBLIC")
    parser.add_argument("--sets", nargs="*", help="some of the sets")
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--first", type=int, default=other_sets.FIRST_SEED, help="seed of the first split")
    parser.add_argument("--device", default="cpu", help="where the ensemble is fitted")
    parser.add_argument("--out", type=Path, help="a CSV file, in place of the one in results/")
    options = parser.parse_args()
    sets = public_sets if options.public else other_sets
    name = "public_sets.csv" if options.public else "other_sets_default.csv"
    path = options.out or Path(__file__).parents[1] / "results" / name
    known = sets.NODES | sets.GRAPHS
    if unknown := set(options.sets or ()) - set(known):
        parser.error(f"no set {unknown.pop()!r}; there are {', '.join(known)}")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name in options.sets or known:
        rows = []
        for seed in range(options.first, options.first + options.splits):
            rows += measure(sets, name, seed, options.device)
            write(path, name, rows, options)
        print(summary(name, rows), flush=True)


if __name__ == "__main__":
    main()
