"""Timing: networks take turns, round after round, so that changes of the machine's speed affect all of them alike.

A network may have its own process (:class:`Child`). In one process all networks share a heap: memory that one has freed
is available to the next, which then does not have to request it from the system, as it would alone. A separate process
also allows measuring the peak memory: the child imports everything and makes the graph, then counts the growth of its
resident set (copies of features and edges, layout, parameters, optimizer, activations). Only Linux can reset the peak.
"""

from __future__ import annotations

import contextlib
import gc
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch

from demonet.errors import DemonetError
from demonet.runs.measure import Meter
from demonet.workers import LocalEngine
from demonet_study.bench.graphs import GraphSpec, node_set
from demonet_study.bench.methods import METHODS, build, build_preset
from demonet_study.bench.step import WARM_UP, Built, Mode, Precision, one_line, products, timed, training_step, wait

Order = dict[str, Any]  # what the child builds: spec, method, precision, mode; or name, preset, scheme
RESET = Path("/proc/self/clear_refs")
_DAY = 86_400.0  # seconds, the longest time to wait for an answer


class Child:
    """The process, with the network built and warmed up.

    Attributes:
        parameters: Number of parameters.
        setup_ms: Time to build the network.
        memory_mib: Peak memory while training; NaN if the system does not report it.

    Raises:
        DemonetError: If the network cannot be built or trained, or if that crashes the process.
    """

    def __init__(self, order: Order) -> None:
        self._engine = LocalEngine(answer, 1)
        started = self._ask(order)
        self.parameters, self.setup_ms = started["parameters"], started["setup_ms"]
        self.memory_mib = started["memory_mib"]

    def time(self, epochs: int) -> float:
        """Seconds per epoch, measured over ``epochs`` after one more that warms the caches."""
        return float(self._ask(epochs)["seconds"])

    def close(self) -> None:
        """End the process."""
        self._engine.close()

    def _ask(self, what: Order | int) -> dict[str, Any]:
        self._engine.start((what, torch.get_num_threads()))
        (ended,) = self._engine.wait(_DAY)
        found: dict[str, Any] = ended.outcome or {"error": ended.error}
        if "error" in found:
            self.close()
            raise DemonetError(found["error"])
        return found


_step: Callable[[], Any] | None = None  # in the child: trains one epoch


def answer(asked: tuple[Order | int, int]) -> dict[str, Any]:
    """In the child: build and warm up what is ordered, or time so many epochs; with so many threads."""
    global _step
    what, threads = asked
    torch.set_num_threads(threads)
    try:
        if isinstance(what, int):
            assert _step is not None
            _step()
            return {"seconds": timed(_step, what, torch.device("cpu"))}
        _step, facts = _ordered(what)
        return facts
    except Exception as error:
        return {"error": one_line(error)}


def _ordered(order: Order) -> tuple[Callable[[], Any], dict[str, Any]]:
    if "spec" in order:
        precision: Precision = order["precision"]
        graph = GraphSpec(**order["spec"]).make()
        make = partial(build, METHODS[order["method"]], graph, precision)
    else:
        precision = "float32"
        node_set(order["name"])  # so that the memory of its imports is not counted
        make = partial(build_preset, **order)
    before, meter = psutil.Process().memory_info().rss, Meter()
    start = time.perf_counter()
    built = make()
    setup = 1000 * (time.perf_counter() - start)
    step = training_step(built, order.get("mode", "eager"), precision)
    for _ in range(WARM_UP):
        step()
    grown = (1e6 * meter.peak_memory_mb - before) / 2**20 if RESET.exists() else math.nan
    return step, {"setup_ms": setup, "parameters": built.parameters, "memory_mib": grown}


SAMPLE_SECONDS = 0.02  # a sample has as many epochs as take about this long; the cost of the clock is then negligible


@dataclass
class Entry:
    """A network in a mode, and its measurements."""

    name: str  # the name in progress messages
    build: Callable[[], Built]  # makes the network and copies of its inputs
    mode: Mode = "eager"  # how it runs
    order: Order | None = None  # what another process builds instead, if it has its own
    samples: list[float] = field(default_factory=list)  # seconds per epoch, one value for each turn
    rounds: int = 0  # how many turns it has
    parameters: int = 0
    setup_ms: float = math.nan
    memory_mib: float = math.nan  # peak memory while training, inputs included; on a GPU or in its own process
    error: str = ""  # why there are no samples

    def found(self) -> dict[str, Any]:
        """The measured fields of a row."""
        low, median, high = quartiles(self.samples)
        return {
            "mode": self.mode,
            "ms": 1000 * median,
            "q1": 1000 * low,
            "q3": 1000 * high,
            "samples": len(self.samples),
            "setup_ms": self.setup_ms,
            "memory_mib": self.memory_mib,
            "error": self.error,
        }


def run(
    entries: Sequence[Entry],
    device: torch.device,
    *,
    precision: Precision = "float32",
    repeats: int = 9,
    seconds: float = 20.0,
    together: bool = True,
    on_step: Callable[[str], None] = lambda what: None,
) -> None:
    """Fill the entries' samples; an entry that fails has an ``error`` instead.

    Args:
        entries: What to time.
        device: The device.
        precision: The type of numbers.
        repeats: Samples of each entry; slow ones have at least three.
        seconds: Limit for the time of all samples of an entry.
        together: Whether all networks are in memory at once and take turns, or one is timed after another.
        on_step: Called with a text before each step.
    """
    with products(precision):
        for group in [entries] if together else [[entry] for entry in entries]:
            with contextlib.ExitStack() as children:
                samplers = []
                for entry in group:
                    on_step(f"{entry.name}, {entry.mode}")
                    try:
                        samplers.append((entry, _start(entry, device, precision, repeats, seconds, children)))
                    except Exception as error:  # a failure is a result, too
                        entry.error = one_line(error)
                _take_turns(samplers)


def _start(
    entry: Entry,
    device: torch.device,
    precision: Precision,
    repeats: int,
    seconds: float,
    children: contextlib.ExitStack,
) -> Callable[[], float]:
    """Build and warm up; choose the number of epochs in a sample and the number of samples. The result takes one."""
    if entry.order is not None:
        child = Child(entry.order)
        children.callback(child.close)
        entry.parameters, entry.setup_ms, entry.memory_mib = child.parameters, child.setup_ms, child.memory_mib
        measure: Callable[..., float] = child.time
    else:
        measure = partial(timed, _build(entry, device, precision), device=device)
    once = measure(1)
    epochs = max(1, min(200, round(SAMPLE_SECONDS / once)))
    entry.rounds = max(3, min(repeats, int(seconds / (once * epochs))))
    return partial(measure, epochs)


def _build(entry: Entry, device: torch.device, precision: Precision) -> Callable[[], Any]:
    """Build and warm up the network in this process; the result trains one epoch."""
    gc.collect()
    before = 0
    if device.type == "cuda":
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated(device)
    start = time.perf_counter()
    built = entry.build()
    wait(device)
    entry.setup_ms, entry.parameters = 1000 * (time.perf_counter() - start), built.parameters
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    step = training_step(built, entry.mode, precision)
    for _ in range(WARM_UP):
        step()
    if device.type == "cuda":
        entry.memory_mib = (torch.cuda.max_memory_allocated(device) - before) / 2**20
    return step


def _take_turns(samplers: Sequence[tuple[Entry, Callable[[], float]]]) -> None:
    for turn in range(max((entry.rounds for entry, _ in samplers), default=0)):
        for entry, sample in samplers:
            if entry.error or turn >= entry.rounds:
                continue
            try:
                entry.samples.append(sample())
            except Exception as error:
                entry.error, entry.samples = one_line(error), []


def quartiles(samples: Sequence[float]) -> tuple[float, float, float]:
    """First quartile, median, third quartile; NaN without samples.

    >>> quartiles([4.0, 1.0, 3.0, 2.0, 5.0])
    (2.0, 3.0, 4.0)
    """
    low, median, high = np.quantile(samples or [math.nan], (0.25, 0.5, 0.75)).tolist()
    return low, median, high
