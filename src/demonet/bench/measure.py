"""``bench``: from a graph and names of methods, or from sets of the paper and presets, to rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import torch
from torch import Tensor

from demonet.bench.child import order_method, order_preset
from demonet.bench.floor import copy_bandwidth, floor_bytes
from demonet.bench.graphs import WIDTH, Graph, GraphSpec, node_set
from demonet.bench.methods import Method, build, find
from demonet.bench.rows import Row, machine
from demonet.bench.runner import Entry, run
from demonet.bench.sets import build_preset
from demonet.bench.step import Mode, Precision
from demonet.degree.count import count_degree
from demonet.nn.conv import Scheme


def _silent(what: str) -> None:
    """Tell nobody."""


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
    on_step: Callable[[str], None] = _silent,
    **options: Any,
) -> list[Row]:
    """Time an epoch of each method on a graph; what fails is a row that says why.

    Args:
        spec: The graph.
        methods: Names of :data:`~demonet.bench.METHODS`.
        device: Where.
        precision: In which numbers.
        modes: How; every method in every mode.
        apart: Whether each method on a CPU has a process of its own, in which its peak of memory is known, too. What
            is compiled there always has: machine code may take its process with it.
        bandwidth: Bytes a second of a copy on that device; measured unless said.
        command: What to type to get the same; as the process was called unless said.
        on_step: Told what is being done.
        **options: ``repeats``, ``seconds`` and ``together`` of :func:`~demonet.bench.runner.run`.
    """
    device, chosen = torch.device(device), find(list(methods))
    graph = spec.make(device)
    bandwidth = copy_bandwidth(device) if bandwidth is None else bandwidth
    title = f"{spec.name}, {graph.num_nodes:,} nodes, {precision}"
    plan = [(method, mode) for mode in modes for method in chosen]
    entries = [Entry(f"{title}: {m.name}", partial(build, m, graph, precision), mode) for m, mode in plan]
    for entry, (method, mode) in zip(entries, plan, strict=True):
        if device.type == "cpu" and (apart or mode == "compiled"):
            entry.order = order_method(spec, method.name, precision, mode)
    run(entries, device, precision=precision, on_step=on_step, **options)
    shared = (
        _size(spec.name, graph.degree, graph.num_arcs) | {"precision": precision} | asdict(machine(device, command))
    )
    return [
        Row(
            **shared,
            **entry.found(),
            **_floors(method, graph, entry.parameters, precision, bandwidth),
            method=method.name,
        )
        for entry, (method, _) in zip(entries, plan, strict=True)
    ]


def bench_sets(
    names: Sequence[str],
    presets: Sequence[str] = ("paper", "authors", "default"),
    schemes: Sequence[Scheme] = ("weight", "hash", "smooth"),
    *,
    apart: bool = True,
    command: str | None = None,
    on_step: Callable[[str], None] = _silent,
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
        entries = [
            Entry(
                f"{name}: {p}, {s}",
                partial(build_preset, name, p, s),
                order=order_preset(name, p, s) if apart else None,
            )
            for p, s in plan
        ]
        run(entries, torch.device("cpu"), on_step=on_step, **options)
        for entry, (preset, scheme) in zip(entries, plan, strict=True):
            shared = size | {"precision": "float32", "floor_ms": math.nan, "step_floor_ms": math.nan}
            where = asdict(machine(torch.device("cpu"), command))
            rows.append(Row(**shared, **where, **entry.found(), method=f"{preset}, {scheme}"))
    return rows


def _size(name: str, degree: Tensor, arcs: int) -> dict[str, Any]:
    distinct = torch.unique(degree)
    size = {"degrees": int(distinct.numel()), "largest": int(distinct[-1])}
    return {"graph": name, "nodes": degree.numel(), "arcs": arcs} | size


def _floors(method: Method, graph: Graph, parameters: int, precision: Precision, bandwidth: float) -> dict[str, Any]:
    if method.kind != "ours" or not parameters:
        return {"floor_ms": math.nan, "step_floor_ms": math.nan}
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
