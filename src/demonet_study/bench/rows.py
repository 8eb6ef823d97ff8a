"""Results of the bench: one row for each graph, network, precision and mode, with the machine it was measured on."""

from __future__ import annotations

import math
import os
import platform
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch


@dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes:
        graph: Kind of graph.
        nodes, arcs, degrees, largest: Number of nodes, directed edges and distinct degrees, and the largest degree.
        method, precision, mode: The network, the type of its numbers, and how it ran.
        ms, q1, q3: Median and quartiles of milliseconds per epoch; NaN if it failed.
        samples: Number of samples.
        setup_ms: Time of the work that is done once: sorting, normalising, the constant part of the first layer.
        memory_mib: Peak memory while training, inputs included; NaN if it was not measured.
        floor_ms, step_floor_ms: The two lower bounds of ``floor.py``, for our schemes.
        error: Why it failed.
        device, threads, versions, command: The machine, and the command that repeats the measurement.
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
        """Whether it failed."""
        return math.isnan(self.ms)


def machine(device: torch.device, command: str | None = None) -> dict[str, Any]:
    """The fields of a row that describe this machine; the command is that of this process by default."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()
    packages = [
        f"{package} {found}" for package in ("torch", "torch_geometric", "triton") if (found := _version(package))
    ]
    versions = ", ".join([f"Python {platform.python_version()}", *packages])
    command = command_line(sys.argv) if command is None else command
    return {"device": name, "threads": torch.get_num_threads(), "versions": versions, "command": command}


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


def best(rows: Iterable[Row]) -> dict[str, float]:
    """The milliseconds of each method in its fastest mode; methods that failed in every mode are left out."""
    fastest: dict[str, float] = {}
    for row in rows:
        if not row.failed:
            fastest[row.method] = min(row.ms, fastest.get(row.method, math.inf))
    return fastest


def slope(sizes: Sequence[float], times: Sequence[float]) -> float:
    """The exponent p of ``time ~ size ** p``: a least-squares line on logarithmic axes; NaN for fewer than two points.

    >>> round(slope([10, 100, 1000], [2, 20, 200]), 6)
    1.0
    """
    kept = [(size, time) for size, time in zip(sizes, times, strict=True) if not math.isnan(time)]
    if len(kept) < 2:
        return math.nan
    across, up = np.log(np.array(kept)).T
    return float(np.polyfit(across, up, 1)[0])


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
