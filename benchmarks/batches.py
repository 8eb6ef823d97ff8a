"""Networks trained on batches of nodes, beside one that is trained on the whole graph: test accuracy on equal splits.

    python benchmarks/batches.py [--sets usa flickr flip] [--splits 20] [--epochs 200] [--out batches.csv]
    python benchmarks/batches.py --sets million --epochs 120 --batch-epochs 3 --batch-size 8192 --neighbours 16 ...

Four ways: all nodes at once; batches with all neighbours; batches with drawn neighbours and true degrees; and the same
with the size of the sample taken for the degree, which is what a layer does that counts the edges of a sample. All are
evaluated on all neighbours. ``usa`` are the USA airports, with the preset ``default``: the sums of its first layer are
known, neighbours are drawn for the second. ``flickr`` and ``flip``, a generated graph whose classes need the degree,
have attributes and the preset ``strong``: neighbours are drawn for both layers. ``flip-million`` is ``flip`` with a
million nodes; ``million`` has communities, degrees that follow a power law, and noisy attributes. An epoch in
batches has many steps, so it may have fewer epochs (``--batch-epochs``).

``score_error`` is about the network that was trained on all nodes: how far the mean of its scores over samples is from
its scores with all neighbours, in deviations of these. Splits are paired: ``minus_all_nodes`` is the mean difference.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tables
import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet import DEMOConv
from demonet.data import load
from demonet.data.splits import fractions
from demonet.data.synthetic import flip_graph
from demonet.features import FeatureMap
from demonet.nn.blocks import Block, NeighbourSampler
from demonet.nn.models import NodeDEMONet
from demonet.nn.prepared import GraphInput
from demonet.train import NodeProblem, Preset, fit, preset
from demonet.train.batches import NodeBatchProblem
from demonet.train.recipes import node_model
from demonet.train.steps import evaluate


def communities(num_nodes: int, classes: int = 16, inside: float = 0.6) -> Data:
    """Edges end in the class of their source or anywhere; attributes are the class and noise of its size."""
    generator = np.random.default_rng(0)
    y = np.sort(generator.integers(classes, size=num_nodes))
    weight = generator.pareto(2.5, num_nodes) + 1
    until = np.concatenate([[0], np.cumsum(weight)])
    source = np.searchsorted(until, generator.random(4 * num_nodes) * until[-1], side="right") - 1
    first, last = np.searchsorted(y, y[source]), np.searchsorted(y, y[source], side="right")
    own = generator.random(source.size) < inside
    begin, end = np.where(own, until[first], 0), np.where(own, until[last], until[-1])
    target = np.searchsorted(until, begin + generator.random(source.size) * (end - begin), side="right") - 1
    edges = np.stack([source, target.clip(max=num_nodes - 1)])
    edge_index = torch.from_numpy(np.concatenate([edges, edges[::-1]], 1)[:, np.tile(source != target, 2)])
    x = np.eye(classes, dtype=np.float32)[y] + generator.normal(size=(num_nodes, classes)).astype(np.float32)
    return Data(edge_index=edge_index.unique(dim=1), x=torch.from_numpy(x), y=torch.from_numpy(y), num_nodes=num_nodes)


SETS = {
    "usa": lambda: load("usa"),
    "flickr": lambda: load("flickr"),
    "flip": lambda: flip_graph(0),
    "flip-million": lambda: flip_graph(0, num_nodes=1_000_000),
    "million": lambda: communities(1_000_000),
}
PRESETS = {name: preset("strong", "attributes") for name in SETS} | {"usa": preset("default", "nodes")}
FIRST = 5000  # the seed of the first split
WAYS = ("all nodes", "batches", "drawn, true degrees", "drawn, degrees of the sample")


class SampleDegrees(NeighbourSampler):
    """Takes the size of a sample for the degree."""

    def _draw(self, rows: Tensor, conv: DEMOConv, generator: torch.Generator | None) -> tuple[Block, Tensor]:
        block, read = super()._draw(rows, conv, generator)
        assert block.pointer is not None
        return replace(block, degree=block.pointer.diff()), read


def train(data: Data, made: Preset, seed: int, way: str, options: argparse.Namespace) -> dict[str, Any]:
    """Test accuracy on a split, seconds, and the trained network with its graph."""
    start, split = time.perf_counter(), fractions(data.y, (0.6, 0.2, 0.2), seed, stratified=True)
    x = FeatureMap(made.features).fit_transform(data)
    model = node_model(data, x, made, seed).to(options.device)
    graph = model.prepare(x.to(options.device), data.edge_index.to(options.device))
    y, epochs = data.y.to(options.device), options.epochs
    problem: Any = NodeProblem((graph,), y, split)
    if way != WAYS[0]:
        problem = NodeBatchProblem(_sampler(model, graph, way, options), y, split, options.batch_size)
        epochs = options.batch_epochs or epochs
    fit(model, problem, replace(made.train, epochs=epochs, seed=seed))
    accuracy = evaluate(model, problem.test)[1]
    return {"accuracy": accuracy, "seconds": time.perf_counter() - start, "model": model.eval(), "graph": graph}


def _sampler(model: NodeDEMONet, graph: GraphInput, way: str, options: argparse.Namespace) -> NeighbourSampler:
    make = SampleDegrees if way == WAYS[3] else NeighbourSampler
    return make(model, graph, options.neighbours if way.startswith("drawn") else None)


@torch.no_grad()
def score_error(model: NodeDEMONet, graph: GraphInput, way: str, options: argparse.Namespace) -> float:
    """The distance of mean scores over samples from exact ones, in deviations of these."""
    sampler, generator = _sampler(model, graph, way, options), torch.Generator(options.device).manual_seed(0)
    nodes, exact = torch.arange(graph.layout.num_nodes, device=options.device), model(graph)
    mean = sum(model(sampler.batch(nodes, generator)) for _ in range(options.draws)) / options.draws
    return float((mean - exact).square().mean().sqrt() / exact.std())


def summary(name: str, data: Data, way: str, found: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """A row of the table: means over splits."""
    here, whole = ([row["accuracy"] for row in found[each]] for each in (way, WAYS[0]))
    gap = np.array(here) - np.array(whole)[: len(here)]
    errors = [row["score_error"] for row in found[way] if "score_error" in row]
    return {
        "set": name,
        "nodes": data.num_nodes,
        "way": way,
        "splits": len(here),
        "accuracy": round(float(np.mean(here)), 4),
        "minus_all_nodes": round(float(gap.mean()), 4),
        "standard_error": round(float(gap.std(ddof=1) / len(gap) ** 0.5), 4) if len(gap) > 1 else "",
        "score_error": round(float(np.mean(errors)), 4) if errors else "",
        "seconds": round(float(np.median([row["seconds"] for row in found[way]])), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", choices=SETS, default=["usa", "flickr", "flip"])
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=list(WAYS), help="the first is always there")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--batch-epochs", type=int, help="epochs in batches, if other than --epochs")
    parser.add_argument("--draws", type=int, default=20, help="samples of all nodes whose scores are averaged")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--neighbours", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/batches.csv"))
    options = parser.parse_args()
    ways = [way for way in WAYS if way == WAYS[0] or way in options.ways]
    sizes = {name: getattr(options, name) for name in ("batch_size", "neighbours", "epochs", "batch_epochs", "device")}
    kept = tables.read(options.out)
    kept = [row for row in kept if row["set"] not in options.sets or row["neighbours"] != str(options.neighbours)]
    for name in options.sets:
        data, found = SETS[name](), {way: [] for way in ways}  # type: ignore[var-annotated]
        for seed in range(FIRST, FIRST + options.splits):
            trained = {way: train(data, PRESETS[name], seed, way, options) for way in ways}
            whole = trained[WAYS[0]]
            for way, row in trained.items():
                if way.startswith("drawn") and options.draws:
                    row["score_error"] = score_error(whole["model"], whole["graph"], way, options)
                found[way].append({key: row[key] for key in ("accuracy", "seconds", "score_error") if key in row})
            rows = [summary(name, data, way, found) | sizes for way in ways]
            tables.write(options.out, [*kept, *rows], list(rows[0]))
            print(seed, {row["way"]: row["minus_all_nodes"] for row in rows}, flush=True)
        kept += rows


if __name__ == "__main__":
    main()
