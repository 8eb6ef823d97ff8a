"""`store_graph`: read files, and write them as a store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from demonet.distributed.store import write_store
from demonet.errors import DemonetError, warn
from demonet.options import Reading
from demonet.runs.inputs import Inputs, read_inputs


def store_graph(
    edges: str | Path,
    labels: str | None = None,
    features: str | None = None,
    *,
    out: str | Path,
    reading: Reading | None = None,
    parts: int | None = None,
    partition: str = "balanced",
) -> Inputs:
    """Read a graph and write it as a store; returns what was read.

    Args:
        edges, labels, features, reading: As in :func:`~demonet.runs.fit_run`; self-loops are dropped by default.
        out: The folder, which must be new.
        parts: Number of parts, one for each worker of a training; None for the whole graph alone.
        partition: How the graph is cut: ``"balanced"``, ``"hash"`` or ``"metis"``.
    """
    out, reading = Path(out), reading or Reading()
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):  # before anything is read
        raise DemonetError("exists already", file=out, hint="use a new folder")
    self_loops = reading.self_loops or "drop"
    inputs = read_inputs(str(edges), labels, features, replace(reading, self_loops=self_loops))
    if inputs.undirected is not None:
        warn(inputs.undirected)
    write_store(out, inputs, inputs.name, parts=parts, partition=partition, self_loops=self_loops)
    return inputs
