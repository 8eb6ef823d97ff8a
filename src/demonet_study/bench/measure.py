"""Time methods on a graph (:func:`bench`), or presets on data sets of the paper (:func:`bench_sets`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import torch
from torch import Tensor

from demonet.degree.count import count_degree
from demonet.nn.conv import Scheme
from demonet_study.bench.floor import copy_bandwidth, floor_bytes
from demonet_study.bench.graphs import WIDTH, Graph, GraphSpec, node_set
from demonet_study.bench.methods import Method, build, build_preset, find
from demonet_study.bench.rows import Row, machine
from demonet_study.bench.runner import Entry, run
from demonet_study.bench.step import Mode, Precision

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


def bench_sets(
    names: Sequence[str],
    presets: Sequence[str] = ("paper", "authors", "default"),
    schemes: Sequence[Scheme] = ("weight", "hash", "smooth"),
    *,
    apart: bool = True,
    command: str | None = None,
    on_step: Callable[[str], None] = lambda what: None,
    **options: Any,
) -> list[Row]:
    """Time an epoch of each preset with each scheme on sets of the paper, on the CPU.

    The arguments are those of :func:`bench`; a row's method reads ``"paper, hash"``.
    """
    rows = []
    for name in names:
        data = node_set(name)
        size = _size(name, count_degree(data.edge_index, data.num_nodes), data.edge_index.size(1))
        plan = [(preset, scheme) for preset in presets for scheme in schemes]
        entries = []
        for preset, scheme in plan:
            order = {"name": name, "preset": preset, "scheme": scheme}
            build_one = partial(build_preset, name, preset, scheme)
            entries.append(Entry(f"{name}: {preset}, {scheme}", build_one, order=order if apart else None))
        run(entries, torch.device("cpu"), on_step=on_step, **options)
        shared = size | {"precision": "float32", **_NO_FLOORS} | machine(torch.device("cpu"), command)
        for entry, (preset, scheme) in zip(entries, plan, strict=True):
            rows.append(Row(**shared, **entry.found(), method=f"{preset}, {scheme}"))
    return rows


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
