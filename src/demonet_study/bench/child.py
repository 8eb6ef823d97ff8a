"""A network in its own process, which trains on request.

In one process all networks share a heap: memory that one has freed is available to the next, which then does not have
to request it from the system, as it would alone. A separate process also allows measuring the peak memory: the child
imports everything and makes the graph, then counts the growth of its resident set. That includes copies of features and
edges, layout, parameters, optimizer and activations. Only Linux can reset the peak.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from demonet.errors import DemonetError
from demonet.runs.workers import LocalEngine
from demonet_study.bench.graphs import GraphSpec, node_set
from demonet_study.bench.methods import METHODS, build, build_preset
from demonet_study.bench.step import WARM_UP, Precision, one_line, timed, training_step

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
        _step, facts = _start(what)
        return facts
    except Exception as error:
        return {"error": one_line(error)}


def _start(order: Order) -> tuple[Callable[[], Any], dict[str, Any]]:
    if "spec" in order:
        precision: Precision = order["precision"]
        graph = GraphSpec(**order["spec"]).make()
        make = partial(build, METHODS[order["method"]], graph, precision)
    else:
        precision = "float32"
        node_set(order["name"])  # so that the memory of its imports is not counted
        make = partial(build_preset, **order)
    before = _resident("VmRSS")
    if RESET.exists():
        RESET.write_text("5", encoding="ascii")
    start = time.perf_counter()
    built = make()
    setup = 1000 * (time.perf_counter() - start)
    step = training_step(built, order.get("mode", "eager"), precision)
    for _ in range(WARM_UP):
        step()
    peak = _resident("VmHWM") - before if RESET.exists() else math.nan
    return step, {"setup_ms": setup, "parameters": built.parameters, "memory_mib": peak}


def _resident(what: str) -> float:
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(what)), math.nan)
