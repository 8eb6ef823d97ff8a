"""Every GPU table of the Performance page, on one GPU, in less than twelve minutes.

    PYTHONPATH=src python benchmarks/gpu.py --out benchmarks/results [--only epoch module_million ...] [--profile]

Parts named ``module_...`` have what a user gets: a module of two ``DEMOConv``, the presets, and their peers. Each part
writes one file, ``gpu_PART.csv``, as soon as it is done; a network that fails is a row that says why. Two parts run
only when they are asked for: ``compiled`` times every network under torch.compile too, which takes long to compile;
``fused`` has presets with and without the functions that take the place of several operators. ``--profile`` writes
``gpu_module_profile.txt``: for some networks, the kernels that take most of an epoch, and how many arrays of the size
of the features a plain copy would move in the same time. It needs torch, torch_geometric, triton, SciPy, scikit-learn
and safetensors alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from tables import say
from torch.profiler import ProfilerActivity, profile

from demonet_study.bench import METHODS, GraphSpec, bench
from demonet_study.bench.floor import copy_bandwidth
from demonet_study.bench.measure import Row
from demonet_study.bench.methods import build
from demonet_study.bench.step import products, training_step, wait
from demonet_study.experiments.rows import write_rows

OURS = ["weight", "hash", "smooth"]
FEW = [*OURS, "gcn", "gcn-csr", "sage-csr", "gin-csr", "graphconv", "gat", "gat-8", "mfconv"]
MODULES = ["module", "module-once", "module+drop", "module-edges", "module-csr", "module-sorted", "module-plain"]
SCALE_MODULES = ["module-scale", "module-scale+drop", "module-scale+head", "module-scale+drop+head"]
SCALE_MODULES += ["module-scale-edges", "module-scale-plain"]
PAPER_MODULES = ["module-weight", "module-weight+drop", "module-weight-edges", "module-weight-plain"]
PRESETS = ["default", "strong", "paper", "paper-hash", "authors"]
PEERS = [
    name + after
    for after in ("", "+drop", "+norm")
    for name in ("graphconv", "sage-csr", "gcn-csr", "gin-csr", "gcn", "mlp")
]
PROFILED = ["module-scale", "module-scale+drop", "module", "default"]
KERNELS, EPOCHS = 15, 5
BOTH = ("eager", "graphed")
MILLION = GraphSpec("uniform", nodes=1_000_000)
# What says whether layers, head and loss are one function, and whether norm, maps and dropout after a convolution are.
FUSED = {"demonet.nn.models.stack_loss": None, "demonet.nn.fused.applies": False}

Job = tuple[GraphSpec, list[str], dict[str, Any]]


def epoch(size: float) -> Iterator[Job]:
    """A million nodes, four million arcs: all methods, in all numbers."""
    for precision in ("float32", "bfloat16"):
        yield scaled(MILLION, size), list(METHODS), {"precision": precision, "modes": BOTH, "seconds": 5.0}


def small(size: float) -> Iterator[Job]:
    """Ten thousand nodes, where launches dominate."""
    for precision in ("float32", "bfloat16"):
        yield uniform(10_000 * size), list(METHODS), {"precision": precision, "modes": BOTH}


def hub(size: float) -> Iterator[Job]:
    """A hub of 100,000 neighbours beside a uniform graph of as many edges."""
    hubbed = scaled(GraphSpec("power-law", nodes=1_000_000, hub=100_000), size)
    for spec in (scaled(MILLION, size), hubbed):
        yield spec, FEW, {"modes": BOTH}


def scaling(size: float) -> Iterator[Job]:
    """From 4,000 to 100 million arcs, 2n edges; networks one after the other, because the largest fill the memory."""
    for arcs in (4_000, 40_000, 100_000, 1_000_000, 10_000_000, 40_000_000, 100_000_000):
        spec = GraphSpec("pairs", nodes=max(100, round(arcs * size / 4)))
        alone = {"together": False, "repeats": 5, "seconds": 3.0}
        yield spec, [*OURS, "graphconv"], {"modes": ("graphed",), **alone}
        yield spec, FEW if arcs <= 10_000_000 else [*OURS, "gcn-csr", "sage-csr", "graphconv"], alone


def degrees(size: float) -> Iterator[Job]:
    """From 10 to 1,000 distinct degrees with as many nodes and arcs."""
    for distinct in (10, 32, 100, 316, 1000):
        spec = scaled(GraphSpec("degrees", nodes=1_000_000, distinct=distinct), size)
        yield spec, [*OURS, "gcn-csr", "mfconv"], {"modes": BOTH}


def module_million(size: float) -> Iterator[Job]:
    """A million nodes, four million arcs, eager."""
    names = ["weight", *SCALE_MODULES, *MODULES, *PAPER_MODULES, *PRESETS, *PEERS]
    yield scaled(MILLION, size), names, {"repeats": 9, "seconds": 2.0}


def module_small(size: float) -> Iterator[Job]:
    """A hundredth of the nodes: eager and captured in one CUDA graph."""
    names = [*SCALE_MODULES, "module", "module+drop", "module-edges", "module-weight", *PRESETS, *PEERS]
    yield uniform(10_000 * size), names, {"modes": BOTH, "seconds": 1.0}


def module_compiled(size: float) -> Iterator[Job]:
    """The user's module, eager and compiled."""
    for nodes in (1_000_000, 10_000):
        options = {"modes": ("eager", "compiled"), "together": False, "repeats": 9, "seconds": 2.0}
        yield uniform(nodes * size), ["module", "module+drop"], options


def compiled(size: float) -> Iterator[Job]:
    """The first table once more, compiled."""
    others = [name for name in METHODS if name not in OURS]
    yield scaled(MILLION, size), [*others, *OURS], {"modes": ("compiled", "compiled+graphed"), "together": False}


def fused(size: float) -> Iterator[Job]:
    """Presets as they are, and with their operators one by one."""
    for nodes in (10_000, 100_000, 1_000_000):
        for instead in ({}, FUSED):
            options = {"modes": BOTH, "repeats": 30, "instead": instead}
            yield uniform(nodes * size), ["paper", "default", "strong"], options


PARTS: dict[str, Callable[[float], Iterator[Job]]] = {
    part.__name__: part
    for part in (
        *(epoch, small, hub, degrees, scaling, module_million, module_small, module_compiled),
        *(compiled, fused),
    )
}
ASKED_FOR = ("compiled", "fused")


def uniform(nodes: float) -> GraphSpec:
    """A uniform graph of at least 100 nodes."""
    return GraphSpec("uniform", nodes=max(100, round(nodes)))


def scaled(spec: GraphSpec, size: float) -> GraphSpec:
    """The same kind of graph, smaller."""
    return replace(spec, nodes=round(spec.nodes * size), hub=round(spec.hub * size))


def measure(part: str, size: float, seconds: float | None, device: torch.device, bandwidth: float) -> list[Row]:
    """The rows of a part."""
    rows: list[Row] = []
    for spec, methods, options in PARTS[part](size):
        instead = options.pop("instead", {})
        options["seconds"] = seconds or options.get("seconds", 20.0)
        try:
            with ExitStack() as patches:
                for name, answer in instead.items():
                    patches.enter_context(mock.patch(name, return_value=answer))
                found = bench(spec, methods, device=device, bandwidth=bandwidth, on_step=say, **options)
            rows += [replace(row, method=f"{row.method}, one by one") if instead else row for row in found]
        except Exception as error:  # a graph too large for this GPU: the others still count
            say(f"{spec}: {type(error).__name__}: {error}")
    return rows


def kernels(name: str, size: float, device: torch.device, bandwidth: float) -> str:
    """The kernels of an epoch of a network that take longest, milliseconds per epoch."""
    graph, on_gpu = scaled(MILLION, size).make(device), device.type == "cuda"
    array = graph.x.numel() * graph.x.element_size()
    with products("float32"):
        step = training_step(build(METHODS[name], graph, "float32"))
        for _ in range(3):
            step()
        wait(device)
        with profile(activities=[ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]) as found:
            for _ in range(EPOCHS):
                step()
            wait(device)
    spent = [
        ((each.self_device_time_total if on_gpu else each.self_cpu_time_total) / EPOCHS / 1e3, each)
        for each in found.key_averages()
    ]
    spent.sort(key=lambda pair: -pair[0])
    total = sum(ms for ms, _ in spent)
    lines = [f"{name}: {graph.num_nodes:,} nodes, {total:.3f} ms in kernels; copy {bandwidth / 1e9:,.0f} GB/s"]
    lines.append(f"{'ms':>8} {'calls':>6} {'arrays':>7}  kernel")
    for ms, each in spent[:KERNELS]:
        arrays = ms / 1e3 * bandwidth / array
        lines.append(f"{ms:8.3f} {each.count / EPOCHS:6.1f} {arrays:7.2f}  {each.key[:110]}")
    return "\n".join(lines) + "\n"


def show(row: Row) -> str:
    """A row as a line of text."""
    times = row.error or f"{row.ms:9.3f} ms ({row.q1:.3f} to {row.q3:.3f}) {row.memory_mib:9.0f} MiB"
    ratios = f" {row.ms / row.floor_ms:5.2f} floors" if row.floor_ms == row.floor_ms else ""
    return f"{row.graph:24} {row.arcs:11,} {row.method:22} {row.precision:9} {row.mode:16} {times}{ratios}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument(
        "--only", nargs="*", choices=list(PARTS), default=[part for part in PARTS if part not in ASKED_FOR]
    )
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--size", type=float, default=1.0, help="share of the full sizes, to try it out")
    parser.add_argument("--seconds", type=float, help="for each network, at most; less, to save time")
    parser.add_argument("--device", default="cuda", help="cpu, to try it out")
    options = parser.parse_args()
    device = torch.device(options.device)
    bandwidth = copy_bandwidth(device, 1024 if options.size == 1 else 16)
    for part in options.only:
        rows = measure(part, options.size, options.seconds, device, bandwidth)
        write_rows(rows, options.out / f"gpu_{part}.csv")
        print(*map(show, rows), sep="\n", flush=True)
    if options.profile:
        texts = [kernels(name, options.size, device, bandwidth) for name in PROFILED]
        (options.out / "gpu_module_profile.txt").write_text("\n".join(texts), encoding="utf-8")
        print(*texts, sep="\n")


if __name__ == "__main__":
    main()
