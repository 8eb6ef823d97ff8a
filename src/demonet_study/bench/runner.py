"""Timing: networks take turns, round after round, so that changes of the machine's speed affect all of them alike."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from demonet_study.bench.child import Child, Order
from demonet_study.bench.step import WARM_UP, Built, Mode, Precision, one_line, products, timed, training_step, wait

SAMPLE_SECONDS = 0.02  # a sample has as many epochs as take about this long; the cost of the clock is then negligible


@dataclass
class Entry:
    """A network in a mode, and its measurements.

    Attributes:
        name: The name in progress messages.
        build: Makes the network and copies of its inputs.
        mode: How it runs.
        order: What another process builds instead, if it has its own.
        samples: Seconds per epoch, one value for each turn.
        parameters: Number of parameters.
        setup_ms: Time of ``build``.
        memory_mib: Peak memory while training, inputs included; on a GPU or in its own process.
        error: Why there are no samples.
    """

    name: str
    build: Callable[[], Built]
    mode: Mode = "eager"
    order: Order | None = None
    samples: list[float] = field(default_factory=list)
    parameters: int = 0
    setup_ms: float = math.nan
    memory_mib: float = math.nan
    error: str = ""

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


@dataclass
class Ready:
    """An entry that is built and warmed up: ``time(epochs)`` is a sample, and ``rounds`` of them are taken."""

    entry: Entry
    time: Callable[[int], float]
    epochs: int
    rounds: int
    close: Callable[[], None] = lambda: None


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
            ready: list[Ready] = []
            try:
                for entry in group:
                    on_step(f"{entry.name}, {entry.mode}")
                    try:
                        ready.append(_start(entry, device, precision, repeats, seconds))
                    except Exception as error:  # a failure is a result, too
                        entry.error = one_line(error)
                _take_turns(ready)
            finally:
                for one in ready:
                    one.close()


def _start(entry: Entry, device: torch.device, precision: Precision, repeats: int, seconds: float) -> Ready:
    """Build and warm up; choose the number of epochs in a sample and the number of samples."""
    if entry.order is not None:
        child = Child(entry.order)
        entry.parameters, entry.setup_ms, entry.memory_mib = child.parameters, child.setup_ms, child.memory_mib
        ready = Ready(entry, child.time, 1, 0, child.close)
    else:
        ready = Ready(entry, partial(timed, _build(entry, device, precision), device=device), 1, 0)
    try:
        once = ready.time(1)
    except Exception:
        ready.close()
        raise
    ready.epochs = max(1, min(200, round(SAMPLE_SECONDS / once)))
    ready.rounds = max(3, min(repeats, int(seconds / (once * ready.epochs))))
    return ready


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


def _take_turns(entries: Sequence[Ready]) -> None:
    for turn in range(max((ready.rounds for ready in entries), default=0)):
        for ready in entries:
            entry = ready.entry
            if entry.error or turn >= ready.rounds:
                continue
            try:
                entry.samples.append(ready.time(ready.epochs))
            except Exception as error:
                entry.error, entry.samples = one_line(error), []


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
