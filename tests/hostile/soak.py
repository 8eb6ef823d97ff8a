"""A soak: the same work again and again in one process; memory, open files, threads and files on disk stay flat.

``python -m tests.hostile.soak`` (or ``make soak``) from the root of the project prints a table and ends with exit code
1 if something grows: 10,000 estimators on small graphs, then an hour of fits, predictions and comparisons, in this
process and in processes of their own. ``--estimators`` and ``--minutes`` change the numbers.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import psutil
import torch
from tests.hostile.kills import FIT, forked
from tests.hostile.scenes import COMPARE, forked_workers, short_page
from tests.runs.files import fit, write_problem

from demonet import DEMONetClassifier
from demonet.runs import predict_run
from demonet.runs.compare import Comparing, compare_run

GROWTH = 64  # MiB that the memory may grow after the first tenth
LINE = 60.0  # seconds between two lines about what has been done
GRAPHS = (nx.path_graph(9), nx.karate_club_graph(), nx.cycle_graph(12))
Usage = tuple[float, int, int, int]


def small_estimator(number: int) -> None:
    """One estimator on a small graph: mostly networks, of which two epochs are trained."""
    graph = GRAPHS[number % len(GRAPHS)]
    options = {"model": "kernel"} if number % 10 == 0 else {"model": "network", "epochs": 2}
    DEMONetClassifier(graph=graph, **options).fit(list(graph), [node % 2 for node in graph]).predict()


def in_one_process(number: int) -> None:
    """A fit with its folder, predictions of the finished run, and now and then a comparison."""
    fit(overwrite=Path("run").exists())
    predict_run("run", "edges.csv")
    if number % 20 == 0:
        comparing = Comparing(methods=("majority",), splits=2)
        compare_run("edges.csv", "labels.csv", out="board", comparing=comparing, overwrite=Path("board").exists())


def in_many(number: int) -> None:
    """The same, each command in a process of its own."""
    folder = Path.cwd()
    replaced = ["--overwrite"] if Path("own").exists() else []
    commands = [
        ["own" if part == "run" else part for part in [*FIT, str(number), *replaced]],
        ["predict", "own", "edges.csv", "--out", "p.csv"],
    ]
    if number % 20 == 0:
        commands.append(["own-board" if part == "board" else part for part in COMPARE])
    for command in commands:
        setting = forked_workers if command[0] == "compare" else short_page
        assert forked(0, command, folder, setting)[0] == 0


def usage(folder: Path) -> Usage:
    """MiB of memory, open files, threads and processes, and files in the folder, the temporary folder included."""
    process = psutil.Process()
    others = threading.active_count() + len(process.children(recursive=True))
    return process.memory_info().rss / 2**20, process.num_fds(), others, sum(1 for _ in folder.rglob("*"))


def soak(name: str, function: Callable[[int], None], folder: Path, count: float, minutes: float) -> tuple[str, bool]:
    """Call a function so often, or for so long: a row with what it used after the first tenth and at the end.

    The second result is whether nothing has grown.
    """
    start, said, done, first = time.monotonic(), time.monotonic(), 0, None
    while done < count and time.monotonic() - start < 60 * minutes:
        function(done)
        done += 1
        if first is None and (done >= count / 10 or time.monotonic() - start > 6 * minutes):
            first = usage(folder)
        if time.monotonic() - said > LINE:
            said = time.monotonic()
            print(
                f"{name}: {done:,} in {said - start:.0f} s, {usage(folder)}, after the first tenth {first}", flush=True
            )
    first, last = first or usage(folder), usage(folder)
    flat = last[0] - first[0] < GROWTH and last[1:3] == first[1:3] and last[3] <= first[3]
    cells = " | ".join(f"{a:,.0f} to {b:,.0f}" for a, b in zip(first, last, strict=True))
    row = f"| {name} | {done:,} | {time.monotonic() - start:,.0f} | {cells} | {'flat' if flat else 'GROWS'} |"
    print(row, flush=True)
    return row, flat


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--estimators", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=60.0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tmp").mkdir()
        tempfile.tempdir = str(folder / "tmp")
        os.chdir(folder)
        write_problem(folder, motifs=4)
        half, endless = options.minutes / 2, float("inf")
        found = [
            soak("estimators in one process", small_estimator, folder, options.estimators, endless),
            soak("fit, predict, compare in one process", in_one_process, folder, endless, half),
            soak("the same in many processes", in_many, folder, endless, half),
        ]
        os.chdir("/")
    heads = ("what", "times", "seconds", "MiB", "open files", "threads and processes", "files on disk", "")
    print(f"\n| {' | '.join(heads)} |\n|---|--:|--:|--:|--:|--:|--:|---|", *(row for row, _ in found), sep="\n")
    return int(not all(flat for _, flat in found))


if __name__ == "__main__":
    sys.exit(main())
