"""The presets on the paper's sets, beside their floors and the paper's own numbers.

``python -m demonet.experiments.presets --sets brazil MUTAG --runs 10`` writes ``results/presets.csv``.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scipy.stats import t
from torch import Tensor
from torch_geometric.data import Data

from demonet import baselines
from demonet.baselines.base import labels
from demonet.data import load
from demonet.data.splits import Split, fractions, thirds
from demonet.experiments.rows import write_rows
from demonet.train import family_of, preset, train_graphs, train_nodes

# Tables 4 and 5 of the paper: hash, weight.
PAPER = {
    "facebook": (0.887, 0.919),
    "wiki-vote": (0.997, 0.998),
    "blogcatalog": (0.849, 0.849),
    "flickr": (0.678, 0.656),
    "brazil": (0.614, 0.543),
    "europe": (0.479, 0.459),
    "usa": (0.659, 0.647),
    "MUTAG": (0.771, 0.814),
    "PTC": (0.563, 0.572),
    "PROTEINS": (0.705, 0.708),
    "ENZYMES": (0.251, 0.272),
}
SOCIAL = ("facebook", "wiki-vote", "blogcatalog", "flickr")
SETS = ("brazil", "europe", "usa", "MUTAG", "PTC")
BASELINES = ("majority", "degree-knn", "gcn")


@dataclass(frozen=True)
class Row:
    """One cell: a method on a set, over all runs."""

    dataset: str
    method: str
    preset: str
    mean: float
    std: float
    ci95: float
    runs: int
    paper: float
    seconds: float


def split_of(name: str, y: Tensor, seed: int) -> Split:
    """The paper's protocol: 10/20/70 for the social networks, thirds for the rest."""
    return fractions(y, (0.1, 0.2, 0.7), seed) if name in SOCIAL else thirds(y, seed)


def rows(name: str, runs: int) -> Iterator[Row]:
    """Every method on one set; run ``i`` of each has split ``i`` and seed ``i``."""
    hashed, weighted = PAPER[name]
    for method in BASELINES:
        yield _row(name, method, "", runs, math.nan, baseline_run(method))
    for kind in ("paper", "authors"):
        yield _row(name, "demonet-hash", kind, runs, hashed, demonet_run(kind, scheme="hash"))
        yield _row(name, "demonet-weight", kind, runs, weighted, demonet_run(kind, scheme="weight"))
    yield _row(name, "demonet-default", "default", runs, math.nan, demonet_run("default"))


Run = Callable[[str, int], float]


def _row(name: str, method: str, kind: str, runs: int, paper: float, run: Run) -> Row:
    start = time.perf_counter()
    mean, std, half = spread([run(name, seed) for seed in range(runs)])
    seconds = (time.perf_counter() - start) / runs
    return Row(name, method, kind, mean, std, half, runs, paper, seconds)


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean, standard deviation, and half the 95 % interval of the mean by Student's t; NaN where one value is all."""
    runs = len(values)
    std = statistics.stdev(values) if runs > 1 else math.nan
    half = float(t.ppf(0.975, runs - 1)) * std / math.sqrt(runs) if runs > 1 else math.nan
    return statistics.mean(values), std, half


def baseline_run(method: str) -> Run:
    """A baseline on a set by its name, with a seed; the test accuracy."""

    def run(name: str, seed: int) -> float:
        data = load(name)
        y = labels(data)
        split = split_of(name, y, seed)
        return baselines.get(method)().fit(data, split, seed).score(split.test, y)

    return run


def demonet_run(kind: str, **model: Any) -> Run:
    """A preset, with parts of its model changed, on a set by its name, with a seed; the test accuracy."""

    def run(name: str, seed: int) -> float:
        data: Data | Sequence[Data] = load(name)
        chosen = preset(kind, family_of(data))
        if chosen.self_loops == "keep":
            data = load(name, self_loops="keep")
        chosen = replace(chosen, model=chosen.model.changed(**model))
        split = split_of(name, labels(data), seed)
        if isinstance(data, Data):
            return train_nodes(data, split, chosen, seed=seed).test_accuracy
        return train_graphs(data, split, chosen, seed=seed).test_accuracy

    return run


COLUMNS = (
    ("default", "demonet-default", "default"),
    ("paper preset, hash", "demonet-hash", "paper"),
    ("paper preset, weight", "demonet-weight", "paper"),
    ("authors preset, hash", "demonet-hash", "authors"),
    ("authors preset, weight", "demonet-weight", "authors"),
    ("GCN", "gcn", ""),
    ("degree only", "degree-knn", ""),
    ("majority", "majority", ""),
)


def table(path: Path) -> str:
    """What ``main`` wrote, as a Markdown table: a line for each set, the printed numbers in the last column."""
    with path.open(newline="", encoding="utf-8") as file:
        cells = {(row["dataset"], row["method"], row["preset"]): row for row in csv.DictReader(file)}
    lines = ["| set | " + " | ".join(name for name, *_ in COLUMNS) + " | printed in the paper, hash / weight |"]
    lines.append("|---" * (len(COLUMNS) + 2) + "|")
    for name in dict.fromkeys(dataset for dataset, *_ in cells):
        shown = [_shown(cells[name, method, kind]) for _, method, kind in COLUMNS]
        lines.append(f"| {name} | {' | '.join(shown)} | {PAPER[name][0]:.3f} / {PAPER[name][1]:.3f} |")
    return "\n".join(lines)


def _shown(row: dict[str, str]) -> str:
    return f"{float(row['mean']):.3f} ± {float(row['std']):.3f}"


def main() -> None:
    """Run, print each cell as it is done, and write the file after every set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=list(PAPER), default=SETS)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("results/presets.csv"))
    arguments = parser.parse_args()
    done: list[Row] = []
    for name in arguments.sets:
        for row in rows(name, arguments.runs):
            done.append(row)
            beside = f"  paper {row.paper:.3f}" if not math.isnan(row.paper) else ""
            label = f"{row.dataset:10} {row.method:16} {row.preset:8}"
            print(f"{label} {row.mean:.3f} ± {row.std:.3f}{beside}  {row.seconds:.1f} s", file=sys.stderr, flush=True)
        write_rows(done, arguments.out)
    print(table(arguments.out))


if __name__ == "__main__":
    main()
