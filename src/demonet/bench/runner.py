"""The clock: every network takes its turn, round after round, so that a machine's moods fall on all of them alike."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from demonet.bench.floor import copy_bandwidth, floor_bytes
from demonet.bench.graphs import WIDTH, Graph, GraphSpec
from demonet.bench.memory import peak_mib
from demonet.bench.methods import Built, Method, Precision, build, find
from demonet.bench.rows import Row, machine
from demonet.bench.step import WARM_UP, Mode, products, training_step, wait

SAMPLE_SECONDS = 0.02  # a sample is as many epochs as take about so long: the clock's own cost vanishes in it


@dataclass
class Entry:
    """One network in one mode, and what is known about it so far."""

    method: Method
    mode: Mode
    step: Callable[[], Any] | None = None
    epochs: int = 1
    rounds: int = 0
    parameters: int = 0
    setup_ms: float = math.nan
    memory_mib: float = math.nan
    error: str = ""
    samples: list[float] = field(default_factory=list)


def bench(
    spec: GraphSpec,
    methods: Sequence[str],
    *,
    device: torch.device | str = "cpu",
    precision: Precision = "float32",
    modes: Sequence[Mode] = ("eager",),
    repeats: int = 9,
    seconds: float = 20.0,
    memory: bool = True,
    together: bool = True,
    command: str | None = None,
    on_step: Callable[[str], None] = lambda what: None,
) -> list[Row]:
    """Time an epoch of each method on a graph; what fails is a row that says why.

    Args:
        spec: The graph.
        methods: Names of :data:`~demonet.bench.METHODS`.
        device: Where.
        precision: In which numbers.
        modes: How; every method in every mode.
        repeats: Samples of each; three at least are taken of what is slow.
        seconds: How long the samples of one method in one mode may take together.
        memory: Whether to find out the peak. On a CPU that takes a process for each method, after the timing.
        together: Whether all networks are alive at once and take turns; one after the other where memory is short.
        command: What to type to get the same; as the process was called unless said.
        on_step: Told what is being done.
    """
    device = torch.device(device)
    graph, chosen = spec.make(device), find(list(methods))
    where, bandwidth = machine(device, command), copy_bandwidth(device)
    entries = [Entry(method, mode) for mode in modes for method in chosen]
    with products(precision):
        for group in [entries] if together else [[entry] for entry in entries]:
            for entry in group:
                on_step(f"{spec.name}, {graph.num_nodes:,} nodes, {precision}: {entry.method.name}, {entry.mode}")
                _start(entry, graph, precision, repeats, seconds)
            _take_turns(group, device)
            for entry in group:
                entry.step = None
    if memory and device.type == "cpu":
        for entry in entries:
            if entry.samples and entry.mode == "eager":
                on_step(f"{spec.name}, {graph.num_nodes:,} nodes, {precision}: memory of {entry.method.name}")
                entry.memory_mib = peak_mib(spec, entry.method.name, precision)
    size: dict[str, Any] = {
        "graph": spec.name,
        "nodes": graph.num_nodes,
        "arcs": graph.num_arcs,
        "degrees": int(torch.unique(graph.degree).numel()),
        "largest": int(graph.degree.max()),
    }
    return [Row(**size, **_found(entry, graph, precision, bandwidth), **asdict(where)) for entry in entries]


def _start(entry: Entry, graph: Graph, precision: Precision, repeats: int, seconds: float) -> None:
    """Build and warm up; decide how many epochs a sample has and how many samples there will be."""
    device = graph.x.device
    _collect(device)
    before = torch.cuda.memory_allocated(device) if device.type == "cuda" else 0
    try:
        start = time.perf_counter()
        built = build(entry.method, graph, precision)
        wait(device)
        entry.setup_ms = 1000 * (time.perf_counter() - start)
        entry.parameters = sum(parameter.numel() for parameter in built.model.parameters())
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        step = _step(built, entry.mode, precision)
        for _ in range(WARM_UP):
            step()
        if device.type == "cuda":
            entry.memory_mib = (torch.cuda.max_memory_allocated(device) - before) / 2**20
        once = _time(step, 1, device)
        entry.epochs = max(1, min(200, round(SAMPLE_SECONDS / once)))
        entry.rounds = max(3, min(repeats, int(seconds / (once * entry.epochs))))
        entry.step = step
    except Exception as error:  # a peer that cannot is a finding, not the end
        entry.error = _one_line(error)


def _step(built: Built, mode: Mode, precision: Precision) -> Callable[[], Any]:
    return training_step(built.model, built.inputs, built.y, mode=mode, precision=precision)


def _take_turns(entries: Sequence[Entry], device: torch.device) -> None:
    for turn in range(max((entry.rounds for entry in entries), default=0)):
        for entry in entries:
            if entry.step is None or turn >= entry.rounds:
                continue
            try:
                entry.samples.append(_time(entry.step, entry.epochs, device))
            except Exception as error:
                entry.error, entry.step, entry.samples = _one_line(error), None, []


def _time(step: Callable[[], Any], epochs: int, device: torch.device) -> float:
    """Seconds of one epoch."""
    wait(device)
    start = time.perf_counter()
    for _ in range(epochs):
        step()
    wait(device)
    return (time.perf_counter() - start) / epochs


def _found(entry: Entry, graph: Graph, precision: Precision, bandwidth: float) -> dict[str, Any]:
    """The fields of a row that belong to one network in one mode."""
    low, median, high = quartiles(entry.samples)
    floors = (math.nan, math.nan)
    if entry.method.kind == "ours" and entry.parameters:
        moved = floor_bytes(
            graph.num_nodes,
            graph.num_arcs,
            entry.parameters,
            width=graph.x.size(1),
            hidden=WIDTH,
            size=4 if precision in ("float32", "tf32") else 2,
            prepared=entry.method.prepared,
        )
        floors = (1000 * moved.by_layer / bandwidth, 1000 * moved.in_one_step / bandwidth)
    return {
        "method": entry.method.name,
        "precision": precision,
        "mode": entry.mode,
        "ms": 1000 * median,
        "q1": 1000 * low,
        "q3": 1000 * high,
        "samples": len(entry.samples),
        "setup_ms": entry.setup_ms,
        "memory_mib": entry.memory_mib,
        "floor_ms": floors[0],
        "step_floor_ms": floors[1],
        "error": entry.error,
    }


def quartiles(samples: Iterable[float]) -> tuple[float, float, float]:
    """First quartile, median, third quartile; NaN without samples.

    >>> quartiles([4.0, 1.0, 3.0, 2.0, 5.0])
    (2.0, 3.0, 4.0)
    """
    values = sorted(samples)
    if len(values) < 2:
        return (values[0],) * 3 if values else (math.nan,) * 3
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, median, high


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:160]


def _collect(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
