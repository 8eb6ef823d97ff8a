"""A network in its own process, which trains on request.

In one process all networks share a heap: memory that one has freed is available to the next, which then does not have
to request it from the system, as it would alone. A separate process also allows measuring the peak memory: the child
imports everything and makes the graph, then counts the growth of its resident set. That includes copies of features and
edges, layout, parameters, optimizer and activations. Only Linux can reset the peak.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch

from demonet.errors import DemonetError
from demonet_study.bench.graphs import GraphSpec, node_set
from demonet_study.bench.methods import METHODS, build, build_preset
from demonet_study.bench.step import WARM_UP, Precision, one_line, timed, training_step

Order = dict[str, Any]  # what the child builds: spec, method, precision, mode; or name, preset, scheme
RESET = Path("/proc/self/clear_refs")


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
        environment = os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())}
        command = [sys.executable, "-m", "demonet_study.bench.child", json.dumps(order)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, text=True, env=environment, **pipes)
        started = self._answer()
        self.parameters, self.setup_ms = int(started["parameters"]), float(started["setup_ms"])
        self.memory_mib = math.nan if started["memory_mib"] is None else float(started["memory_mib"])

    def time(self, epochs: int) -> float:
        """Seconds per epoch, measured over ``epochs`` after one more that warms the caches."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{epochs}\n")
        self._process.stdin.flush()
        return float(self._answer()["seconds"])

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):  # libraries may print other lines
                found: dict[str, Any] = json.loads(line)
                if "error" in found:
                    self.close()
                    raise DemonetError(found["error"])
                return found
        code = self._process.wait()
        raise DemonetError(f"the process ended: {signal.Signals(-code).name if code < 0 else f'exit code {code}'}")


def main(order: Order) -> None:
    """In the child: build and warm up, report, then time as many epochs as each input line says."""
    try:
        step, facts = _start(order)
        _say(facts)
        for line in sys.stdin:
            step()
            _say({"seconds": timed(step, int(line), torch.device("cpu"))})
    except Exception as error:
        _say({"error": one_line(error)})


def _start(order: Order) -> tuple[Any, dict[str, Any]]:
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
    peak = _resident("VmHWM") - before if RESET.exists() else None
    return step, {"setup_ms": setup, "parameters": built.parameters, "memory_mib": peak}


def _say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


def _resident(what: str) -> float:
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(what)), math.nan)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
