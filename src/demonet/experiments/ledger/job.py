"""What is run, what came of it, and with what it was made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


def canonical(options: Mapping[str, Any]) -> str:
    """Options as text: the same text for the same options, whatever their order."""
    return json.dumps(options, sort_keys=True, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True)
class Cell:
    """A method on a set under a protocol: what a number in a table is the mean of.

    Attributes:
        kind: What is done: ``"accuracy"``, ``"speed"``, ``"identity"``, ``"properties"``.
        dataset: A set of the catalogue, or a graph that is made by name.
        method: A baseline's name, or one of ours (``demonet-weight``, ``demonet-m-hash``, ...).
        preset: ``"paper"``, ``"authors"``, ``"default"``; empty for baselines.
        options: What is changed of the method's settings, as :func:`canonical` writes it.
        split: ``"thirds"``, ``"10/20/70"``, ``"train:0.3"``, ``"nested:10"``; empty where nothing is split.
    """

    kind: str
    dataset: str
    method: str
    preset: str = ""
    options: str = "{}"
    split: str = ""


@dataclass(frozen=True)
class Job:
    """One run of a cell. Run ``i`` of every method has split (or fold) ``i`` and seed ``i``: runs are paired."""

    cell: Cell
    seed: int


@dataclass(frozen=True)
class Outcome:
    """What came of a run.

    Attributes:
        value: The number that the cell averages: test accuracy, milliseconds of an epoch, a distance.
        seconds: Processor time of this run.
        peak_memory_mb: The most its process had resident while it ran, libraries included, in 10^6 bytes.
        extra: Anything else that tables and figures show, as JSON can hold it: validation accuracy, epochs, points.
    """

    value: float
    seconds: float
    peak_memory_mb: float
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stamp:
    """With what a run was made. Runs of one cell are averaged only where they share it.

    Attributes:
        code: A hash over the source that numbers depend on.
        libraries: Versions of Python and of the libraries, as :func:`canonical` writes them.
        device: ``"cpu"``, or the name of the GPU.
        data: A hash over the files of the set; empty for graphs that are made by name.
    """

    code: str
    libraries: str
    device: str
    data: str = ""


@dataclass(frozen=True)
class Result:
    """A run that has ended."""

    job: Job
    stamp: Stamp
    outcome: Outcome
