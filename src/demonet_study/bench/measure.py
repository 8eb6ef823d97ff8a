"""Time methods on a graph (:func:`bench`), or presets on a data set of the paper (:func:`bench_set`)."""

from __future__ import annotations

import math
import os
import platform
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from demonet.degree.count import count_degree
from demonet_study.bench.floor import copy_bandwidth, floor_bytes
from demonet_study.bench.graphs import WIDTH, Graph, GraphSpec, node_set
from demonet_study.bench.methods import Method, build, build_preset, find
from demonet_study.bench.runner import Entry, run
from demonet_study.bench.step import Mode, Precision


@dataclass(frozen=True)
class Row:
    """One measurement."""

    graph: str  # kind of graph
    # Number of nodes, directed edges and distinct degrees, and the largest degree.
    nodes: int
    arcs: int
    degrees: int
    largest: int
    method: str
    precision: str
    mode: str
    # Median and quartiles of milliseconds per epoch; NaN if it failed.
    ms: float
    q1: float
    q3: float
    samples: int
    setup_ms: float  # time of the work that is done once: sorting, normalising, the constant part of the first layer
    memory_mib: float  # peak memory while training, inputs included; NaN if it was not measured
    # The two lower bounds of floor.py, for our schemes.
    floor_ms: float
    step_floor_ms: float
    error: str  # why it failed
    # The machine, and the command that repeats the measurement.
    device: str
    threads: int
    versions: str
    command: str

    @property
    def failed(self) -> bool:
        """Whether it failed."""
        return math.isnan(self.ms)


def machine(device: torch.device, command: str | None = None) -> dict[str, Any]:
    """The fields of a row that describe this machine; the command is that of this process by default."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()
    packages = [
        f"{package} {found}" for package in ("torch", "torch_geometric", "triton") if (found := _version(package))
    ]
    versions = ", ".join([f"Python {platform.python_version()}", *packages])
    command = command_line(sys.argv) if command is None else command
    return {"device": name, "threads": torch.get_num_threads(), "versions": versions, "command": command}


def command_line(words: Sequence[str]) -> str:
    """The command without the folder of the program and without ``--out``, which say nothing about the measurement.

    >>> command_line(["/usr/bin/demonet", "bench", "--out", "/tmp/x", "--sizes", "10,20"])
    'demonet bench --sizes 10,20'
    """
    kept, skip = [Path(words[0]).name], False
    for word in words[1:]:
        if not skip and word != "--out" and not word.startswith("--out="):
            kept.append(word)
        skip = not skip and word == "--out"
    return shlex.join(kept)


def best(rows: Iterable[Row]) -> dict[str, float]:
    """The milliseconds of each method in its fastest mode; methods that failed in every mode are left out."""
    fastest: dict[str, float] = {}
    for row in rows:
        if not row.failed:
            fastest[row.method] = min(row.ms, fastest.get(row.method, math.inf))
    return fastest


def slope(sizes: Sequence[float], times: Sequence[float]) -> float:
    """The exponent p of ``time ~ size ** p``: a least-squares line on logarithmic axes; NaN for fewer than two points.

    >>> round(slope([10, 100, 1000], [2, 20, 200]), 6)
    1.0
    """
    kept = [(size, time) for size, time in zip(sizes, times, strict=True) if not math.isnan(time)]
    if len(kept) < 2:
        return math.nan
    across, up = np.log(np.array(kept)).T
    return float(np.polyfit(across, up, 1)[0])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    """The processor's name as Linux has it, else as Python does."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor() or platform.machine()}, {os.cpu_count()} cores"


_NO_FLOORS = {"floor_ms": math.nan, "step_floor_ms": math.nan}


def bench(
    spec: GraphSpec,
    methods: Sequence[str],
    *,
    device: torch.device | str = "cpu",
    precision: Precision = "float32",
    modes: Sequence[Mode] = ("eager",),
    apart: bool = False,
    bandwidth: float | None = None,
    command: str | None = None,
    on_step: Callable[[str], None] = lambda what: None,
    **options: Any,
) -> list[Row]:
    """Time an epoch of each method on a graph; a method that fails has a row with the reason.

    Args:
        spec: The graph.
        methods: Names of :data:`~demonet_study.bench.METHODS`.
        device: The device.
        precision: The type of numbers.
        modes: Every method is timed in each of these.
        apart: Whether each method on a CPU has its own process, which also measures peak memory. Compiled networks
            on a CPU always do, because compiled code may crash the process.
        bandwidth: Bytes per second of a copy on the device; measured by default.
        command: The command that repeats the measurement; that of this process by default.
        on_step: Called with a text before each step.
        **options: ``repeats``, ``seconds`` and ``together`` of :func:`~demonet_study.bench.runner.run`.
    """
    device, chosen = torch.device(device), find(list(methods))
    graph = spec.make(device)
    bandwidth = copy_bandwidth(device) if bandwidth is None else bandwidth
    title = f"{spec.name}, {graph.num_nodes:,} nodes, {precision}"
    plan = [(method, mode) for mode in modes for method in chosen]
    entries = [Entry(f"{title}: {m.name}", partial(build, m, graph, precision), mode) for m, mode in plan]
    for entry, (method, mode) in zip(entries, plan, strict=True):
        if device.type == "cpu" and (apart or mode == "compiled"):
            entry.order = {"spec": asdict(spec), "method": method.name, "precision": precision, "mode": mode}
    run(entries, device, precision=precision, on_step=on_step, **options)
    shared = _size(spec.name, graph.degree, graph.num_arcs) | {"precision": precision} | machine(device, command)
    rows = []
    for entry, (method, _) in zip(entries, plan, strict=True):
        floors = _floors(method, graph, entry.parameters, precision, bandwidth)
        rows.append(Row(**shared, **entry.found(), **floors, method=method.name))
    return rows


def bench_set(
    name: str, *, command: str | None = None, on_step: Callable[[str], None] = lambda what: None, **options: Any
) -> list[Row]:
    """Time an epoch of each preset with each scheme on a data set, each in a process of its own on the CPU.

    The arguments are those of :func:`bench`; a row's method reads ``"paper, hash"``.
    """
    data, cpu, entries = node_set(name), torch.device("cpu"), []
    plan = list(product(("paper", "authors", "default"), ("weight", "hash", "smooth")))
    for preset, scheme in plan:
        order = {"name": name, "preset": preset, "scheme": scheme}
        entries.append(Entry(f"{name}: {preset}, {scheme}", partial(build_preset, **order), order=order))
    run(entries, cpu, on_step=on_step, **options)
    shared = _size(name, count_degree(data.edge_index, data.num_nodes), data.edge_index.size(1)) | _NO_FLOORS
    shared |= {"precision": "float32"} | machine(cpu, command)
    every = zip(entries, plan, strict=True)
    return [Row(**shared, **entry.found(), method=f"{preset}, {scheme}") for entry, (preset, scheme) in every]


def _size(name: str, degree: Tensor, arcs: int) -> dict[str, Any]:
    distinct = torch.unique(degree)
    size = {"degrees": int(distinct.numel()), "largest": int(distinct[-1])}
    return {"graph": name, "nodes": degree.numel(), "arcs": arcs} | size


def _floors(method: Method, graph: Graph, parameters: int, precision: Precision, bandwidth: float) -> dict[str, Any]:
    if method.kind != "ours" or not parameters:
        return _NO_FLOORS
    moved = floor_bytes(
        graph.num_nodes,
        graph.num_arcs,
        parameters,
        width=graph.x.size(1),
        hidden=WIDTH,
        size=4 if precision in ("float32", "tf32") else 2,
        prepared=method.prepared,
    )
    return {"floor_ms": 1000 * moved.by_layer / bandwidth, "step_floor_ms": 1000 * moved.in_one_step / bandwidth}
