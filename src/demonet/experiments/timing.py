"""One run of the running-time figure: milliseconds of an epoch on a random graph, by the clock of the bench."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from demonet.bench import GraphSpec, bench
from demonet.errors import DemonetError
from demonet.experiments.ledger.job import Job, Outcome
from demonet.experiments.measure import Meter

REPEATS = 9  # samples, each of so many epochs that the clock's own cost vanishes
SECONDS = 20.0  # that the samples of a slow one may take; there are three at least


def speed(job: Job, device: str = "cpu") -> Outcome:
    """Graph ``seed`` of a cell, alone on the clock.

    The set reads ``"uniform-1000"``: the bench's kind of graph and its number of nodes, with 2n edges. Options are
    ``network``, the bench's name for the method and the form of its input, and ``threads``. The value is the median of
    the milliseconds of an epoch (forward, cross-entropy, backward, Adam); quartiles and what was done once before the
    first epoch stand beside it.
    """
    meter, options = Meter(), json.loads(job.cell.options)
    with threads(options["threads"]):
        (row,) = bench(
            spec_of(job.cell.dataset, job.seed),
            [options["network"]],
            device=device,
            bandwidth=float("nan"),  # the floors are the bench's own affair
            command="",
            repeats=REPEATS,
            seconds=SECONDS,
        )
    if row.failed:
        raise DemonetError(f"{job.cell.method} on {job.cell.dataset}: {row.error}")
    kept = ("q1", "q3", "samples", "setup_ms", "nodes", "arcs", "degrees", "threads", "device")
    return Outcome(row.ms, meter.seconds, meter.peak_memory_mb, {name: getattr(row, name) for name in kept})


def spec_of(dataset: str, seed: int) -> GraphSpec:
    """The graph of that name.

    >>> spec_of("uniform-1000", 3)
    GraphSpec(kind='uniform', nodes=1000, edges=0, hub=0, distinct=0, seed=3)
    """
    kind, _, nodes = dataset.rpartition("-")
    if kind not in ("uniform", "power-law") or not nodes.isdigit():
        raise DemonetError(f"no graph {dataset!r} to time on", hint="one is 'uniform-1000'")
    return GraphSpec(kind, nodes=int(nodes), seed=seed)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """So many threads inside; after that, as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
