"""A method in a process of its own: for its peak memory on a CPU, and to see whether it survives being compiled.

On a GPU the runner asks the allocator for the peak. The child imports everything and makes the graph; from there on,
what its resident set grows by at its highest counts: copies of features and arcs, layout, parameters, optimiser,
activations. Linux alone can reset that mark.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import torch

from demonet.bench.graphs import GraphSpec, node_set
from demonet.bench.methods import METHODS, build
from demonet.bench.sets import build_preset
from demonet.bench.step import Mode, Precision, training_step
from demonet.errors import DemonetError

Order = dict[str, Any]  # what the child is to build, as plain values
RESET = Path("/proc/self/clear_refs")


def peak_mib(order: Order) -> float:
    """Mebibytes at the highest, or NaN where the system does not say."""
    if not RESET.exists():
        return math.nan
    done = _child(order)
    return float(done.stdout.split()[-1]) if done.returncode == 0 else math.nan


def try_out(order: Order) -> None:
    """Let a child go first.

    Raises:
        DemonetError: When that ends the child without a word, as machine code gone wrong does. An exception is none of
            these: it will be raised here again, where it can be caught.
    """
    code = _child(order).returncode
    if code < 0:
        raise DemonetError(f"it ends the process: {signal.Signals(-code).name}")


def _child(order: Order) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    command = [sys.executable, "-m", "demonet.bench.memory", json.dumps(order)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def order_method(spec: GraphSpec, method: str, precision: Precision, mode: Mode = "eager") -> Order:
    """A method of the bench on a graph."""
    return {"spec": spec.state(), "method": method, "precision": precision, "mode": mode}


def order_preset(name: str, preset: str, scheme: str) -> Order:
    """A preset on a set of the paper."""
    return {"name": name, "preset": preset, "scheme": scheme}


def main(order: Order) -> None:
    """In the child: build, train three epochs, print the peak."""
    if "spec" in order:
        precision: Precision = order["precision"]
        graph = GraphSpec(**order["spec"]).make()
        make = partial(build, METHODS[order["method"]], graph, precision)
    else:
        precision = "float32"
        node_set(order["name"])  # so that importing what reads it is not counted
        make = partial(build_preset, **order)
    before = _resident("VmRSS")
    RESET.write_text("5", encoding="ascii")
    step = training_step(make(), order.get("mode", "eager"), precision)
    for _ in range(3):
        step()
    print(_resident("VmHWM") - before)


def _resident(what: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1024


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
