"""Networks trained on batches of nodes, beside one that is trained on the whole graph: test accuracy on equal splits.

    python benchmarks/batches.py [--sets usa flip] [--splits 10] [--epochs 200] [--out results/batches.csv]

Four ways: all nodes at once; batches with all neighbours; batches with drawn neighbours and true degrees; and the same
with the size of the sample taken for the degree, which is what a layer does that counts the edges of a sample. All are
evaluated on all neighbours. ``usa`` are the USA airports, with the preset ``default``: the sums of its first layer are
known, neighbours are drawn for the second. ``flip`` is a generated graph whose classes need the degree, with the preset
``strong``: neighbours are drawn for both layers.
"""

from __future__ import annotations

import argparse
import csv
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet.data import FeatureMap, load
from demonet.data.splits import fractions
from demonet.data.synthetic import flip_graph
from demonet.nn.blocks import Block, NeighbourSampler
from demonet.train import NodeProblem, Preset, fit, preset
from demonet.train.batches import NodeBatchProblem
from demonet.train.recipes import node_model
from demonet.train.steps import evaluate

SETS = {"usa": lambda: load("usa"), "flip": lambda: flip_graph(0)}
PRESETS = {"usa": preset("default", "nodes"), "flip": preset("strong", "attributes")}
WAYS = ("all nodes", "batches", "drawn, true degrees", "drawn, degrees of the sample")


class SampleDegrees(NeighbourSampler):
    """Takes the size of a sample for the degree."""

    def _draw(self, rows: Tensor, aggr: str, generator: torch.Generator | None) -> tuple[Block, Tensor]:
        block, read = super()._draw(rows, aggr, generator)
        assert block.pointer is not None
        return replace(block, degree=block.pointer.diff()), read


def accuracy(data: Data, made: Preset, seed: int, way: str, options: argparse.Namespace) -> tuple[float, float]:
    """Test accuracy on a split, and seconds."""
    start, split = time.perf_counter(), fractions(data.y, (0.6, 0.2, 0.2), seed, stratified=True)
    x = FeatureMap(made.features).fit_transform(data)
    model = node_model(data, x, made, seed)
    graph = model.prepare(x, data.edge_index)
    problem: Any = NodeProblem((graph,), data.y, split)
    if way != "all nodes":
        make = SampleDegrees if way.endswith("sample") else NeighbourSampler
        sampler = make(model, graph, options.neighbours if way.startswith("drawn") else None)
        problem = NodeBatchProblem(sampler, data.y, split, options.batch_size)
    fit(model, problem, replace(made.train, epochs=options.epochs, seed=seed))
    return evaluate(model, problem.test)[1], time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--neighbours", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("results/batches.csv"))
    options = parser.parse_args()
    command = f"python benchmarks/batches.py --splits {options.splits} --epochs {options.epochs}"
    rows: list[dict[str, Any]] = []
    for name in options.sets:
        data, whole = SETS[name](), np.zeros(0)
        for way in WAYS:
            found = np.array([accuracy(data, PRESETS[name], seed, way, options) for seed in range(options.splits)])
            whole = found[:, 0] if way == WAYS[0] else whole
            gap = found[:, 0] - whole
            rows.append(
                {
                    "set": name,
                    "nodes": data.num_nodes,
                    "way": way,
                    "splits": options.splits,
                    "batch_size": "" if way == WAYS[0] else options.batch_size,
                    "neighbours": options.neighbours if way.startswith("drawn") else "",
                    "accuracy": round(float(found[:, 0].mean()), 4),
                    "minus_all_nodes": round(float(gap.mean()), 4),
                    "standard_error": round(float(gap.std(ddof=1) / len(gap) ** 0.5), 4) if len(gap) > 1 else "",
                    "seconds": round(float(found[:, 1].mean()), 1),
                    "command": command,
                }
            )
            print(rows[-1], flush=True)
            with options.out.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)


if __name__ == "__main__":
    main()
