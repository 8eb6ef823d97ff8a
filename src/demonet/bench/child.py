"""A network in a process of its own, which trains when it is asked to.

In one process all networks share a heap: memory that one has given back is there for the next, which then need not ask
the system for it page by page, as it would alone. Here each has its own, and its peak of memory can be told, too: the
child imports everything and makes the graph; from there on, what its resident set grows by at its highest counts:
copies of features and arcs, layout, parameters, optimiser, activations. Linux alone can reset that mark.
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

from demonet.bench.graphs import GraphSpec, node_set
from demonet.bench.methods import METHODS, build
from demonet.bench.sets import build_preset
from demonet.bench.step import WARM_UP, Mode, Precision, one_line, timed, training_step
from demonet.errors import DemonetError

Order = dict[str, Any]  # what the child is to build, as plain values
RESET = Path("/proc/self/clear_refs")


def order_method(spec: GraphSpec, method: str, precision: Precision, mode: Mode = "eager") -> Order:
    """A method of the bench on a graph."""
    return {"spec": spec.state(), "method": method, "precision": precision, "mode": mode}


def order_preset(name: str, preset: str, scheme: str) -> Order:
    """A preset on a set of the paper."""
    return {"name": name, "preset": preset, "scheme": scheme}


class Child:
    """The process, its network built and warm.

    Attributes:
        parameters: How many numbers the network trains.
        setup_ms: How long building it took.
        memory_mib: Peak while training; NaN where the system does not say.

    Raises:
        DemonetError: When the network cannot be built or trained, in the words of what was raised; or when that ends
            the process without a word, as machine code gone wrong does.
    """

    def __init__(self, order: Order) -> None:
        environment = os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())}
        command = [sys.executable, "-m", "demonet.bench.child", json.dumps(order)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, text=True, env=environment, **pipes)
        started = self._answer()
        self.parameters, self.setup_ms = int(started["parameters"]), float(started["setup_ms"])
        self.memory_mib = math.nan if started["memory_mib"] is None else float(started["memory_mib"])

    def time(self, epochs: int) -> float:
        """Seconds of one epoch, from so many; one more goes before them, because others had the caches meanwhile."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{epochs}\n")
        self._process.stdin.flush()
        return float(self._answer()["seconds"])

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):  # whatever else a library prints
                found: dict[str, Any] = json.loads(line)
                if "error" in found:
                    self.close()
                    raise DemonetError(found["error"])
                return found
        code = self._process.wait()
        raise DemonetError(f"it ends the process: {signal.Signals(-code).name if code < 0 else f'exit code {code}'}")


def main(order: Order) -> None:
    """In the child: build, warm up, say so; then time as many epochs as each line asks for."""
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
        node_set(order["name"])  # so that importing what reads it is not counted
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
