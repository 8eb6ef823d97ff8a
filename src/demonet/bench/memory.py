"""Peak memory of a method on a CPU, in a process of its own; on a GPU the runner asks the allocator.

The child imports everything and makes the graph; from there on, what its resident set grows by at its highest counts:
copies of features and arcs, layout, parameters, optimiser, activations. Linux alone can reset that mark.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import torch

from demonet.bench.graphs import GraphSpec
from demonet.bench.methods import METHODS, Precision, build
from demonet.bench.step import training_step

RESET = Path("/proc/self/clear_refs")


def peak_mib(spec: GraphSpec, method: str, precision: Precision) -> float:
    """Mebibytes at the highest, or NaN where the system does not say."""
    if not RESET.exists():
        return math.nan
    task = json.dumps({"spec": spec.state(), "method": method, "precision": precision})
    environment = os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    command = [sys.executable, "-m", "demonet.bench.memory", task]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return float(done.stdout.split()[-1]) if done.returncode == 0 else math.nan


def main(task: str) -> None:
    """In the child: build, train three epochs, print the peak."""
    order = json.loads(task)
    graph = GraphSpec(**order["spec"]).make()
    before = _resident("VmRSS")
    RESET.write_text("5", encoding="ascii")
    built = build(METHODS[order["method"]], graph, order["precision"])
    step = training_step(built.model, built.inputs, built.y, precision=order["precision"])
    for _ in range(3):
        step()
    print(_resident("VmHWM") - before)


def _resident(what: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1024


if __name__ == "__main__":
    main(sys.argv[1])
