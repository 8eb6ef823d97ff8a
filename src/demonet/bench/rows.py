"""What the bench finds out: one row for each graph, network, precision and mode, with where it was measured."""

from __future__ import annotations

import csv
import math
import os
import platform
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from demonet.errors import DemonetError


@dataclass(frozen=True)
class Machine:
    """Where and how a measurement was made."""

    device: str
    threads: int
    versions: str
    command: str


@dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes:
        graph: Kind of graph.
        nodes, arcs, degrees, largest: Its size, its number of distinct degrees, and the largest.
        method, precision, mode: Which network, in which numbers, and how it ran.
        ms, q1, q3: Median and quartiles of the milliseconds of an epoch; NaN where it failed.
        samples: How many samples that is.
        setup_ms: What is done once: sorting, normalising, the constant part of the first layer.
        memory_mib: Peak while training, inputs included; NaN where it was not measured.
        floor_ms, step_floor_ms: The two floors of ``floor.py``, for our schemes.
        error: Why there is no time.
        device, threads, versions, command: Where it was measured, and what to type to measure it again.
    """

    graph: str
    nodes: int
    arcs: int
    degrees: int
    largest: int
    method: str
    precision: str
    mode: str
    ms: float
    q1: float
    q3: float
    samples: int
    setup_ms: float
    memory_mib: float
    floor_ms: float
    step_floor_ms: float
    error: str
    device: str
    threads: int
    versions: str
    command: str

    @property
    def failed(self) -> bool:
        """Whether there is no time."""
        return math.isnan(self.ms)


def machine(device: torch.device, command: str | None = None) -> Machine:
    """This machine, as rows describe it."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()
    packages = [
        f"{package} {found}" for package in ("torch", "torch_geometric", "triton") if (found := _version(package))
    ]
    versions = ", ".join([f"Python {platform.python_version()}", *packages])
    return Machine(name, torch.get_num_threads(), versions, command_line(sys.argv) if command is None else command)


def command_line(words: Sequence[str]) -> str:
    """The command without the folder of the program and without ``--out``, which say nothing about the measurement.

    >>> command_line(["/usr/bin/demonet", "bench", "--out", "/tmp/x", "--sizes", "10,20"])
    'demonet bench --sizes 10,20'
    """
    kept, skip = [Path(words[0]).name], False
    for word in words[1:]:
        if not skip and word != "--out" and not word.startswith("--out="):
            kept.append(word)
        skip = not skip and word == "--out"
    return shlex.join(kept)


def read_rows(path: Path) -> list[Row]:
    """The rows that ``demonet.experiments.rows.write_rows`` wrote."""
    kinds = {"int": int, "float": float, "str": str}
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        expected = [field.name for field in fields(Row)]
        if reader.fieldnames != expected:
            raise DemonetError(f"columns are {reader.fieldnames}, not those of a bench", file=path, line=1)
        return [
            Row(**{field.name: kinds[str(field.type)](line[field.name]) for field in fields(Row)}) for line in reader
        ]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    """The processor's name as Linux has it, else as Python does."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor() or platform.machine()}, {os.cpu_count()} cores"
