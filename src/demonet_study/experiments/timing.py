"""One run of kind ``speed``: milliseconds per epoch on a random graph, as measured by :mod:`demonet_study.bench`."""

from __future__ import annotations

import json

from demonet.errors import DemonetError
from demonet.runs.measure import Meter
from demonet.runs.plan import torch_threads
from demonet_study.bench import GraphSpec, bench
from demonet_study.ledger.job import Job, Outcome

REPEATS = 9  # samples, each of enough epochs for the clock's resolution
SECONDS = 20.0  # limit for the samples of a slow network; there are at least three


def speed(job: Job, device: str = "cpu") -> Outcome:
    """Time one network on graph ``seed`` of a cell.

    The data set is a kind of graph and a number of nodes, such as ``"uniform-1000"``, with 2n edges. Options are
    ``network``, the name of method and input format in :mod:`demonet_study.bench`, and ``threads``. The value is the
    median of milliseconds per epoch (forward, cross-entropy, backward, Adam). The extra values include quartiles and
    setup time.
    """
    meter, options = Meter(), json.loads(job.cell.options)
    with torch_threads(options["threads"]):
        (row,) = bench(
            spec_of(job.cell.dataset, job.seed),
            [options["network"]],
            device=device,
            bandwidth=float("nan"),  # no lower bounds needed
            command="",
            repeats=REPEATS,
            seconds=SECONDS,
        )
    if row.failed:
        raise DemonetError(f"{job.cell.method} on {job.cell.dataset}: {row.error}")
    kept = ("q1", "q3", "samples", "setup_ms", "nodes", "arcs", "degrees", "threads", "device")
    return Outcome(row.ms, meter.seconds, meter.peak_memory_mb, {name: getattr(row, name) for name in kept})


def spec_of(dataset: str, seed: int) -> GraphSpec:
    """The specification of a graph by its name.

    >>> spec_of("uniform-1000", 3)
    GraphSpec(kind='uniform', nodes=1000, hub=0, distinct=0, seed=3)
    """
    kind, _, nodes = dataset.rpartition("-")
    if kind not in ("uniform", "power-law") or not nodes.isdigit():
        raise DemonetError(f"unknown graph {dataset!r}", hint="expected a name such as 'uniform-1000'")
    return GraphSpec(kind, nodes=int(nodes), seed=seed)
