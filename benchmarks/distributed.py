"""Training over processes beside training in one process: seconds of an epoch, and the efficiency.

    python benchmarks/distributed.py [--nodes 100000] [--degree 8] [--epochs 5] [--rounds 3]

The graphs are those of ``communication.py``. The model is the paper's, two layers of width 64 and scheme ``weight``
with degrees in buckets, without dropout. Arms take turns, round after round: one process of one thread, as
:func:`demonet.train.fit` trains, one of two threads, and two of one thread with the partitions ``hash`` and ``metis``.
Each arm is a process, or a group, of its own that trains some epochs after two to warm up.

``seconds`` is the median epoch on the clock, ``cpu`` that of the CPU time, of the process that took most. Efficiency is
the time of one process of one thread over that of two, halved: ``efficiency`` on the clock, ``cpu_efficiency`` of the
CPU time, which others at work on the machine change less. ``load`` is the machine's at the beginning and at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import tables
import torch
import torch.distributed as dist
from communication import GRAPHS

from demonet.data.splits import Split
from demonet.degree.count import count_degree
from demonet.degree.tasks import DegreeTasks
from demonet.distributed.partition import assign, cut
from demonet.distributed.steps import PartSteps
from demonet.distributed.training import deal, make_problem
from demonet.nn import ModelConfig
from demonet.nn.models import NodeDEMONet
from demonet.train import Classify, NodeProblem, TrainConfig
from demonet.train.steps import Steps

PAPER = ModelConfig(scheme="weight", aggr="sum", combine="concat", bias=False)
RESULTS = Path(__file__).parent / "results" / "distributed.csv"
WARM_UP, WIDTH, CLASSES = 2, 64, 16
ARMS = ("1 process, 1 thread", "1 process, 2 threads", "2 processes, hash", "2 processes, metis")


def work(graph: str, nodes: int, degree: int, arm: str, epochs: int) -> None:
    """One process of an arm; the first one prints what it took, as JSON."""
    edge_index = GRAPHS[graph](nodes, nodes * degree // 2, 0)
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(nodes, WIDTH, generator=generator), torch.randint(CLASSES, (nodes,), generator=generator)
    split = Split("", 0, *torch.randperm(nodes, generator=generator).tensor_split(3))
    tasks = DegreeTasks.log2(int(count_degree(edge_index, nodes).max()))
    torch.manual_seed(0)
    model, config = NodeDEMONet(WIDTH, CLASSES, tasks, PAPER, hidden=WIDTH, dropout=0.0), TrainConfig()
    objective, rank = Classify(outputs=CLASSES), int(os.environ.get("RANK", "0"))
    if arm.startswith("2 processes"):
        dist.init_process_group("gloo")
        owner = assign(edge_index, nodes, 2, arm.split(", ")[1])
        rows = (split.train, split.val, split.test)
        share = list(deal(cut(edge_index, owner, 2), x, y, rows, halo=True))[rank]
        del edge_index, x
        problem = make_problem(model, share, objective, [])
        steps: Steps = PartSteps(model, config, torch.device("cpu"), objective)
    else:
        torch.set_num_threads(int(arm.split()[2]))
        problem = NodeProblem((model.prepare(x, edge_index),), y, split, None, objective)
        steps = Steps(model, config, torch.device("cpu"), objective)
    taken: list[tuple[float, float]] = []
    for epoch in range(WARM_UP + epochs):
        start = time.perf_counter(), time.process_time()
        loss = sum(steps.train(batch) for batch in problem.training(0, epoch))
        taken.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    seconds, cpu = (statistics.median(column) for column in zip(*taken[WARM_UP:], strict=True))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    if dist.is_initialized():
        found: list[float] = [0.0, 0.0]
        dist.all_gather_object(found, cpu)
        cpu = max(found)
        dist.destroy_process_group()
    if rank == 0:
        print(json.dumps({"seconds": seconds, "cpu": cpu, "loss": loss, "peak_mb": peak}))


def run(options: argparse.Namespace, graph: str, arm: str) -> dict[str, float]:
    """An arm in processes of its own."""
    command = [sys.executable, __file__, "--nodes", str(options.nodes), "--degree", str(options.degree)]
    command += ["--epochs", str(options.epochs), "--arm", arm, "--graph", graph]
    count = 2 if arm.startswith("2") else 1
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    group = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port), "WORLD_SIZE": str(count), "OMP_NUM_THREADS": "1"}
    group |= {"OMP_NUM_THREADS": "2"} if arm.endswith("2 threads") else {}
    with tempfile.TemporaryFile("w+") as out:
        every = [
            subprocess.Popen(command, stdout=out if rank == 0 else None, env=os.environ | group | {"RANK": str(rank)})
            for rank in range(count)
        ]
        codes = [process.wait() for process in every]
        if any(codes):
            sys.exit(f"{graph}, {arm}: a process has failed")
        out.seek(0)
        found: dict[str, float] = json.loads(out.read())
    print(graph, arm, found, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--degree", type=int, default=8, help="mean degree")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--graphs", nargs="*", default=list(GRAPHS))
    parser.add_argument("--arm", help=argparse.SUPPRESS)
    parser.add_argument("--graph", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.arm is not None:
        work(options.graph, options.nodes, options.degree, options.arm, options.epochs)
        return
    rows = tables.read(RESULTS)
    for graph in options.graphs:
        before, found = os.getloadavg()[0], {arm: [] for arm in ARMS}
        for _ in range(options.rounds):
            for arm in ARMS:
                found[arm].append(run(options, graph, arm))
        median = {
            arm: {name: statistics.median(each[name] for each in every) for name in every[0]}
            for arm, every in found.items()
        }
        rows = [row for row in rows if (row["graph"], row["nodes"]) != (graph, str(options.nodes))]
        for arm, values in median.items():
            row = {"graph": graph, "nodes": options.nodes, "degree": options.degree, "arm": arm}
            row |= {name: f"{values[name]:.3f}" for name in ("seconds", "cpu", "loss")}
            row |= {"peak_mb": f"{values['peak_mb']:.0f}", "efficiency": "", "cpu_efficiency": ""}
            if arm.startswith("2"):
                alone = median[ARMS[0]]
                row["efficiency"] = f"{alone['seconds'] / values['seconds'] / 2:.2f}"
                row["cpu_efficiency"] = f"{alone['cpu'] / values['cpu'] / 2:.2f}"
            row |= {"epochs": options.epochs, "rounds": options.rounds}
            row |= {"load": f"{before:.1f} to {os.getloadavg()[0]:.1f}", "torch": version("torch")}
            rows.append(row | {"cores": os.cpu_count(), "machine": platform.machine()})
        tables.write(RESULTS, rows)


if __name__ == "__main__":
    main()
