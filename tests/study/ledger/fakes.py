"""Runs that cost nothing, for drivers in real processes. Forked: a spawned one imports PyTorch for seconds."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
import time
from pathlib import Path

from demonet.sealed import canonical
from demonet_study.ledger.job import Cell, Job, Outcome, Stamp, Wanted
from demonet_study.ledger.store import Ledger
from demonet_study.ledger.work import work

FORK = multiprocessing.get_context("fork")


def cell(method: str = "a", dataset: str = "made", **options) -> Cell:
    return Cell("fake", dataset, method, options=canonical(options), split="thirds")


def stamp_of(kind: str, dataset: str, device: str) -> Stamp:
    return Stamp("code", "{}", device, "")


def value(job: Job) -> float:
    """What a run gives: of the job alone."""
    return sum(map(ord, job.cell.method)) + job.seed / 1000


def perform(job: Job, device: str = "cpu") -> Outcome:
    """As the options say: ``sleep``, ``log`` begin and end in a file, ``crash``, ``kill`` or ``fail`` at a seed; from
    the seed ``hold`` on, none ends while the log's neighbour ``hold`` is there.
    """
    options = json.loads(job.cell.options)
    _log(options, f"begin {job.cell.method} {job.seed} {time.monotonic()}")
    time.sleep(options.get("sleep", 0.0))
    while job.seed >= options.get("hold", math.inf) and Path(options["log"]).with_name("hold").exists():
        time.sleep(0.01)
    if options.get("crash") == job.seed:
        os._exit(7)
    if options.get("kill") == job.seed:
        os.kill(os.getpid(), signal.SIGKILL)
    if options.get("fail") == job.seed:
        raise ValueError("no such luck")
    _log(options, f"end {job.cell.method} {job.seed} {time.monotonic()}")
    return Outcome(value(job), 0.25, 100.0, {"seed": job.seed, "pid": os.getpid()})


def _log(options: dict, line: str) -> None:
    if "log" in options:
        handle = os.open(options["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, f"{line}\n".encode())
        os.close(handle)


def lines(path: Path, word: str) -> list[list[str]]:
    return [line.split() for line in path.read_text().splitlines() if line.startswith(word)] if path.exists() else []


def drive(path: Path, wanted: list[Wanted], jobs: int = 2) -> None:
    with Ledger(path) as ledger:
        work(ledger, wanted, perform, jobs=jobs, stamp_of=stamp_of)


def driver(path: Path, wanted: list[Wanted], jobs: int = 2):
    """A driver in a process of its own, started."""
    process = FORK.Process(target=drive, args=(path, wanted, jobs))
    process.start()
    return process


def wait_for(condition, seconds: float = 20.0) -> None:
    """Until something holds; a test that waits in vain fails."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.01)
