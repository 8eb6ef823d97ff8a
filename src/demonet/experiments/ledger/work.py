"""Have runs done that are wanted and are not in the ledger yet.

One process, the driver, claims and records; workers only perform. Killed at any moment, it leaves finished runs behind
as finished, and claims that are free as soon as it is seen to be dead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from demonet.errors import DemonetError
from demonet.experiments.ledger.driver import Driver, Progress
from demonet.experiments.ledger.engine import Engine, Perform, Stamped, Task
from demonet.experiments.ledger.job import Cell, Job
from demonet.experiments.ledger.local import LocalEngine
from demonet.experiments.ledger.ray_engine import RayEngine
from demonet.experiments.ledger.stamp import stamp
from demonet.experiments.ledger.store import Failure, Ledger

ENGINES = ("local", "ray")


class Wanted(Protocol):
    """A cell, how many runs of it, and whether nothing may run beside them."""

    @property
    def cell(self) -> Cell:
        """What is run."""

    @property
    def runs(self) -> int:
        """With seeds 0, 1, ... up to so many."""

    @property
    def alone(self) -> bool:
        """As for timing."""


@dataclass(frozen=True)
class Worked:
    """What came of it: how many runs were done here, their processor time, the time on the clock, and failures."""

    runs: int
    processor_seconds: float
    seconds: float
    failures: list[Failure]


def work(
    ledger: Ledger,
    wanted: Iterable[Wanted],
    perform: Perform,
    *,
    jobs: int | None = None,
    engine: str = "local",
    device: str = "cpu",
    on_progress: Callable[[Progress], None] | None = None,
    stamped: Stamped = stamp,
) -> Worked:
    """Do what is not done; return when every wanted run is done or has failed, whichever process did it.

    Args:
        ledger: Where runs are claimed and recorded.
        wanted: Cells and how many runs of each.
        perform: Does one run; importable by name, as a worker calls it.
        jobs: Runs at once; ``None`` for one, and on a Ray cluster for as many as it has room for.
        engine: ``"local"`` processes or a ``"ray"`` cluster.
        device: Handed to ``perform``.
        on_progress: Told at every change, and a few times a second.
        stamped: Says with what a run is made.

    Raises:
        DemonetError: When the source changes meanwhile; what has ended until then is kept.
    """
    began = time.monotonic()
    if engine not in ENGINES:
        raise DemonetError(f"no engine {engine!r}", hint=f"there are {', '.join(ENGINES)}")
    if jobs is not None and jobs < 1:
        raise DemonetError(f"{jobs} jobs", hint="one at least")
    tasks = in_order(wanted, device, stamped)
    runs = [(task.job, task.stamp) for task in tasks]
    ledger.retry(runs)
    done = ledger.done(runs)
    missing = [task for task in tasks if (task.job, task.stamp) not in done]
    driver = Driver(ledger, missing, len(done), stamped, device, on_progress or (lambda progress: None))
    if missing:
        driver.run(_engine(engine, perform, stamped, jobs, device))
    return Worked(driver.recorded, driver.seconds, time.monotonic() - began, ledger.failures(runs))


def in_order(wanted: Iterable[Wanted], device: str = "cpu", stamped: Stamped = stamp) -> list[Task]:
    """Every run once: seed 0 of all cells, then seed 1, so that all tables grow together; those that run alone last."""
    asked = list(wanted)
    alone = {one.cell for one in asked if one.alone}
    sets = {(one.cell.kind, one.cell.dataset) for one in asked}
    stamps = {(kind, dataset): stamped(kind, dataset, device) for kind, dataset in sorted(sets)}
    seeds = range(max((one.runs for one in asked), default=0))
    jobs = dict.fromkeys(Job(one.cell, seed) for seed in seeds for one in asked if seed < one.runs)
    tasks = [Task(job, stamps[job.cell.kind, job.cell.dataset], job.cell in alone) for job in jobs]
    return sorted(tasks, key=lambda task: task.alone)


def _engine(name: str, perform: Perform, stamped: Stamped, jobs: int | None, device: str) -> Engine:
    if name == "ray":
        return RayEngine(perform, stamped, jobs, device)
    return LocalEngine(perform, stamped, jobs or 1, device)
