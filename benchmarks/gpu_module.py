"""The speed that a user gets on one GPU, in less than four minutes: a user's module, the presets, and their peers.

    PYTHONPATH=src python benchmarks/gpu_module.py --out benchmarks/results [--only million small compiled] [--profile]

Each part writes ``gpu_module_PART.csv`` as soon as it is done; a network that fails is a row that says why.
``--profile`` writes ``gpu_module_profile.txt`` too: for three networks, the kernels that take most of an epoch, and how
many arrays of the size of the features a plain copy would move in the same time. It needs torch, torch_geometric,
triton, SciPy, scikit-learn and safetensors alone.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from demonet_study.bench import METHODS, GraphSpec, bench
from demonet_study.bench.floor import copy_bandwidth
from demonet_study.bench.measure import Row
from demonet_study.bench.methods import build
from demonet_study.bench.step import products, training_step, wait
from demonet_study.experiments.rows import write_rows

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

Job = tuple[GraphSpec, list[str], dict[str, Any]]


def million(nodes: int) -> Iterator[Job]:
    """A million nodes, four million arcs, eager."""
    names = ["weight", *SCALE_MODULES, *MODULES, *PAPER_MODULES, *PRESETS, *PEERS]
    yield GraphSpec("uniform", nodes=nodes), names, {"repeats": 9, "seconds": 2.0}


def small(nodes: int) -> Iterator[Job]:
    """A hundredth of the nodes, where launches dominate: eager and captured in one CUDA graph."""
    names = [*SCALE_MODULES, "module", "module+drop", "module-edges", "module-weight", *PRESETS, *PEERS]
    yield GraphSpec("uniform", nodes=max(100, nodes // 100)), names, {"modes": ("eager", "graphed"), "seconds": 1.0}


def compiled(nodes: int) -> Iterator[Job]:
    """The user's module, eager and compiled."""
    for count in (nodes, max(100, nodes // 100)):
        options = {"modes": ("eager", "compiled"), "together": False, "repeats": 9, "seconds": 2.0}
        yield GraphSpec("uniform", nodes=count), ["module", "module+drop"], options


PARTS = {part.__name__: part for part in (million, small, compiled)}


def measure(part: str, nodes: int, device: torch.device, bandwidth: float, seconds: float | None) -> list[Row]:
    """The rows of a part."""
    rows: list[Row] = []
    for spec, methods, options in PARTS[part](nodes):
        modes = options.get("modes", ("eager",))
        options["seconds"] = seconds or options["seconds"]
        options["modes"] = modes if device.type == "cuda" else [mode for mode in modes if mode != "graphed"]
        rows += bench(spec, methods, device=device, bandwidth=bandwidth, on_step=say, **options)
    return rows


def kernels(name: str, nodes: int, device: torch.device, bandwidth: float) -> str:
    """The kernels of an epoch of a network that take longest, milliseconds per epoch."""
    graph = GraphSpec("uniform", nodes=nodes).make(device)
    activities = [ProfilerActivity.CUDA] if device.type == "cuda" else [ProfilerActivity.CPU]
    array = graph.x.numel() * graph.x.element_size()
    with products("float32"):
        step = training_step(build(METHODS[name], graph, "float32"))
        for _ in range(3):
            step()
        wait(device)
        with profile(activities=activities) as found:
            for _ in range(EPOCHS):
                step()
            wait(device)
    on_gpu = device.type == "cuda"
    spent = [
        (each.self_device_time_total if on_gpu else each.self_cpu_time_total, each) for each in found.key_averages()
    ]
    spent = sorted(((time / EPOCHS / 1e3, each) for time, each in spent if time), key=lambda pair: -pair[0])
    lines = [
        f"{name}: {nodes:,} nodes, {sum(ms for ms, _ in spent):.3f} ms in kernels; copy {bandwidth / 1e9:,.0f} GB/s"
    ]
    lines.append(f"{'ms':>8} {'calls':>6} {'arrays':>7}  kernel")
    for ms, each in spent[:KERNELS]:
        arrays = ms / 1e3 * bandwidth / array
        lines.append(f"{ms:8.3f} {each.count / EPOCHS:6.1f} {arrays:7.2f}  {each.key[:110]}")
    return "\n".join(lines) + "\n"


def say(what: str) -> None:
    """Progress, on the error stream."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def show(row: Row) -> str:
    """A row as a line of text."""
    times = row.error or f"{row.ms:9.3f} ms ({row.q1:.3f} to {row.q3:.3f}) {row.memory_mib:9.0f} MiB"
    return f"{row.nodes:11,} {row.method:20} {row.mode:9} {times}"


def main() -> None:
    """Measure the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--nodes", type=int, default=1_000_000, help="of the largest graph; fewer, to try it out")
    parser.add_argument("--seconds", type=float, help="for each network, at most; less, to save time")
    parser.add_argument("--device", default="cuda", help="cpu, to try it out")
    options = parser.parse_args()
    device = torch.device(options.device)
    options.out.mkdir(parents=True, exist_ok=True)
    bandwidth = copy_bandwidth(device, 1024 if device.type == "cuda" else 16)
    for part in options.only:
        rows = measure(part, options.nodes, device, bandwidth, options.seconds)
        write_rows(rows, options.out / f"gpu_module_{part}.csv")
        print(*map(show, rows), sep="\n", flush=True)
    if options.profile:
        texts = [kernels(name, options.nodes, device, bandwidth) for name in PROFILED]
        (options.out / "gpu_module_profile.txt").write_text("\n".join(texts), encoding="utf-8")
        print(*texts, sep="\n")


if __name__ == "__main__":
    main()
