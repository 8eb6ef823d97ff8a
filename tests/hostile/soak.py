"""A soak: fits, predictions and small estimators again and again in one process; memory, files and threads stay flat.

``python -m tests.hostile.soak --minutes 60`` (or ``make soak``) from the root of the project prints a table and ends
with exit code 1 if something grows.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import networkx as nx
import psutil
import torch
from tests.runs.files import fit, write_problem

from demonet import DEMONetClassifier
from demonet.runs import predict_run

GROWTH = 64  # MiB that the memory may grow after the first tenth
GRAPH = nx.karate_club_graph()
CLUBS = [GRAPH.nodes[node]["club"] for node in GRAPH]


def run_and_predict() -> None:
    """One fit with its folder, and predictions of the finished run."""
    fit(overwrite=Path("run").exists())
    predict_run("run", "edges.csv")


def small_estimator() -> None:
    """One estimator on a small graph."""
    DEMONetClassifier(graph=GRAPH, model="kernel").fit(list(GRAPH), CLUBS).predict()


def usage(folder: Path) -> tuple[float, int, int, int]:
    """MiB of memory, open files, threads, and files in the folder and in the temporary folder."""
    process = psutil.Process()
    left = sum(1 for _ in folder.rglob("*")) + len(os.listdir(tempfile.gettempdir()))
    return process.memory_info().rss / 2**20, process.num_fds(), threading.active_count(), left


def soak(name: str, function, minutes: float, folder: Path) -> bool:
    """Call a function for so long; print what it used after the first tenth and at the end; whether that is flat."""
    start, count, first = time.monotonic(), 0, None
    while time.monotonic() - start < 60 * minutes:
        function()
        count += 1
        if first is None and time.monotonic() - start > 6 * minutes:
            first = usage(folder)
    first, last = first or usage(folder), usage(folder)
    flat = last[0] - first[0] < GROWTH and last[1:3] == first[1:3] and last[3] <= first[3]
    cells = " | ".join(f"{a:,.0f} to {b:,.0f}" for a, b in zip(first, last, strict=True))
    print(
        f"| {name} | {count:,} | {time.monotonic() - start:.0f} | {cells} | {'flat' if flat else 'GROWS'} |", flush=True
    )
    return flat


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(
        "| what | times | seconds | MiB | open files | threads | files on disk | |\n|---|--:|--:|--:|--:|--:|--:|---|"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        temporary = folder / "tmp"
        temporary.mkdir()
        tempfile.tempdir = str(temporary)
        os.chdir(folder)
        write_problem(folder, motifs=4)
        every = {"fit and predict": run_and_predict, "small estimators": small_estimator}
        flat = [soak(name, function, options.minutes / len(every), folder) for name, function in every.items()]
        os.chdir("/")
    return int(not all(flat))


if __name__ == "__main__":
    sys.exit(main())
