"""Every GPU table of the Performance page, on one GPU, in less than eight minutes.

    PYTHONPATH=src python benchmarks/gpu.py --out benchmarks/results [--only epoch small hub scaling degrees]

It needs torch, torch_geometric and triton alone. Each part writes one file, as soon as it is done; a network that fails
is a row that says why. ``--only compiled`` times every network under torch.compile too, which takes long to compile.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from demonet_study.bench import METHODS, GraphSpec, bench
from demonet_study.bench.floor import copy_bandwidth
from demonet_study.bench.measure import Row
from demonet_study.experiments.rows import write_rows

OURS = ["weight", "hash", "smooth"]
FEW = [*OURS, "gcn", "gcn-csr", "sage-csr", "gin-csr", "graphconv", "gat", "gat-8", "mfconv"]
BOTH = ("eager", "graphed")
MILLION = GraphSpec("uniform", nodes=1_000_000)


def epoch(size: float) -> Iterator[tuple[GraphSpec, list[str], dict]]:
    """A million nodes, four million arcs: all methods, in all numbers."""
    for precision in ("float32", "bfloat16"):
        yield scaled(MILLION, size), list(METHODS), {"precision": precision, "modes": BOTH, "seconds": 5.0}


def small(size: float) -> Iterator[tuple[GraphSpec, list[str], dict]]:
    """Ten thousand nodes, where launches dominate."""
    for precision in ("float32", "bfloat16"):
        spec = GraphSpec("uniform", nodes=max(100, round(10_000 * size)))
        yield spec, list(METHODS), {"precision": precision, "modes": BOTH}


def hub(size: float) -> Iterator[tuple[GraphSpec, list[str], dict]]:
    """A hub of 100,000 neighbours beside a uniform graph of as many edges."""
    hubbed = scaled(GraphSpec("power-law", nodes=1_000_000, hub=100_000), size)
    for spec in (scaled(MILLION, size), hubbed):
        yield spec, FEW, {"modes": BOTH}


def scaling(size: float) -> Iterator[tuple[GraphSpec, list[str], dict]]:
    """From 4,000 to 100 million arcs, 2n edges; networks one after the other, because the largest fill the memory."""
    for arcs in (4_000, 40_000, 100_000, 1_000_000, 10_000_000, 40_000_000, 100_000_000):
        spec = GraphSpec("pairs", nodes=max(100, round(arcs * size / 4)))
        alone = {"together": False, "repeats": 5, "seconds": 3.0}
        yield spec, [*OURS, "graphconv"], {"modes": ("graphed",), **alone}
        yield spec, FEW if arcs <= 10_000_000 else [*OURS, "gcn-csr", "sage-csr", "graphconv"], alone


def degrees(size: float) -> Iterator[tuple[GraphSpec, list[str], dict]]:
    """From 10 to 1,000 distinct degrees with as many nodes and arcs."""
    for distinct in (10, 32, 100, 316, 1000):
        spec = scaled(GraphSpec("degrees", nodes=1_000_000, distinct=distinct), size)
        yield spec, [*OURS, "gcn-csr", "mfconv"], {"modes": BOTH}


def compiled(size: float) -> Iterator[tuple[GraphSpec, list[str], dict]]:
    """The first table once more, compiled: not among the parts that run unless asked for."""
    others = [name for name in METHODS if name not in OURS]
    yield scaled(MILLION, size), [*others, *OURS], {"modes": ("compiled", "compiled+graphed"), "together": False}


PARTS: dict[str, Callable] = {part.__name__: part for part in (epoch, small, hub, degrees, scaling, compiled)}


def scaled(spec: GraphSpec, size: float) -> GraphSpec:
    """The same kind of graph, smaller."""
    shrunk = {"nodes": round(spec.nodes * size), "hub": round(spec.hub * size)}
    return GraphSpec(**spec.state() | shrunk)


def measure(part: str, size: float, device: torch.device) -> list[Row]:
    rows = []
    bandwidth = copy_bandwidth(device, 1024 if size == 1 else 16)
    for spec, methods, options in PARTS[part](size):
        try:
            rows += bench(spec, methods, device=device, bandwidth=bandwidth, on_step=say, **options)
        except Exception as error:  # a graph too large for this GPU: the others still count
            say(f"{spec}: {type(error).__name__}: {error}")
    return rows


def say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument(
        "--only", nargs="+", choices=list(PARTS), default=[part for part in PARTS if part != "compiled"]
    )
    parser.add_argument("--size", type=float, default=1.0, help="share of the full sizes, to try it out")
    parser.add_argument("--device", default="cuda", help="cpu, to try it out")
    options = parser.parse_args()
    for part in options.only:
        rows = measure(part, options.size, torch.device(options.device))
        write_rows(rows, options.out / f"gpu_{part}.csv")
        for row in rows:
            times = row.error or f"{row.ms:9.3f} ms ({row.q1:.3f} to {row.q3:.3f}) {row.memory_mib:9.0f} MiB"
            ratios = f" {row.ms / row.floor_ms:5.2f} floors" if row.floor_ms == row.floor_ms else ""
            print(f"{row.graph:24} {row.arcs:11,} {row.method:14} {row.precision:9} {row.mode:16} {times}{ratios}")


if __name__ == "__main__":
    main()
