"""Perform the runs that are wanted and are not in the ledger yet.

One process, the driver, claims and records runs; workers only perform them. If it is killed, finished runs are kept,
and its claims are free as soon as it is seen to be dead.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import InitVar, dataclass
from functools import partial
from itertools import islice
from typing import Any

from demonet.checks import check_jobs
from demonet.errors import DemonetError
from demonet.workers import Ended, Engine, LocalEngine, RayEngine
from demonet_study.ledger.job import Cell, Job, Outcome, Stamp, Wanted, stamp
from demonet_study.ledger.schema import outcome_row
from demonet_study.ledger.store import ClaimStatus, Failure, Ledger

Perform = Callable[[Job, str], Outcome]  # (job, device); must be importable by name, as other processes call it
StampOf = Callable[[str, str, str], Stamp]  # (kind, dataset, device)


@dataclass(frozen=True)
class Task:
    """A run to do, the stamp it is claimed with, and whether nothing else may run meanwhile."""

    job: Job
    stamp: Stamp
    alone: bool = False


def run_task(perform: Perform, stamp_of: StampOf, device: str, task: Task) -> Outcome:
    """Perform one run in a worker, after a check that the worker is as the process that claimed the run."""
    if stamp_of(task.job.cell.kind, task.job.cell.dataset, device) != task.stamp:
        raise DemonetError("the worker's code, libraries, data or device differ from those that claimed the run")
    outcome = perform(task.job, device)
    outcome_row(outcome)  # raises if the outcome cannot be recorded
    return outcome


ENGINES = ("local", "ray")
POLL = 0.5  # seconds between two checks of what other processes are doing


@dataclass(frozen=True)
class Progress:
    """The state of the work."""

    # Runs in total, finished (before or now), and failed now.
    wanted: int
    done: int
    failed: int
    running: tuple[Job, ...]  # jobs in progress in this process
    left: float | None  # estimated seconds until all are done; None if no run has ever finished


@dataclass(frozen=True)
class WorkSummary:
    """What :func:`work` did: runs made here, their processor time, the elapsed time, and the failed runs.

    ``left`` are the runs that a time limit has left.
    """

    runs: int
    processor_seconds: float
    seconds: float
    failures: list[Failure]
    left: int = 0


def work(
    ledger: Ledger,
    wanted: Iterable[Wanted],
    perform: Perform,
    *,
    jobs: int | None = None,
    engine: str = "local",
    device: str = "cpu",
    time_limit: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    stamp_of: StampOf = stamp,
) -> WorkSummary:
    """Do the missing runs; return when every wanted run is done or has failed, in whichever process.

    Args:
        ledger: Where runs are claimed and recorded.
        wanted: Cells and how many runs of each.
        perform: Performs one run; must be importable by name.
        jobs: Runs at once; by default 1, and on a Ray cluster as many as it has processors.
        engine: ``"local"`` processes or a ``"ray"`` cluster.
        device: Passed to ``perform``.
        time_limit: Seconds after which to return, with what is unfinished given up. A run that is expected to take
            longer than the rest of the time is not started; shorter ones go before it.
        on_progress: Called at every change, and about twice a second.
        stamp_of: Returns the stamp of a run made now.

    Raises:
        DemonetError: If the source changes meanwhile; runs that have finished are kept.
    """
    began = time.monotonic()
    if engine not in ENGINES:
        raise DemonetError(f"unknown engine {engine!r}", hint=f"expected one of {', '.join(ENGINES)}")
    if jobs is not None and engine == "local":
        check_jobs(jobs)
    tasks = ordered_tasks(wanted, device, stamp_of)
    runs = [(task.job, task.stamp) for task in tasks]
    ledger.retry(runs)
    done = ledger.done(runs)
    missing = [task for task in tasks if (task.job, task.stamp) not in done]
    until = math.inf if time_limit is None else began + time_limit
    driver = Driver(ledger, missing, len(done), stamp_of, device, on_progress or (lambda progress: None), until)
    if missing:
        perform_task = partial(run_task, perform, stamp_of, device)
        driver.run(RayEngine(perform_task, jobs, device) if engine == "ray" else LocalEngine(perform_task, jobs or 1))
    elapsed = time.monotonic() - began
    return WorkSummary(driver.recorded, driver.seconds, elapsed, ledger.failures(runs), driver.left)


def ordered_tasks(wanted: Iterable[Wanted], device: str = "cpu", stamp_of: StampOf = stamp) -> list[Task]:
    """Every run once: seed 0 of all cells, then seed 1, so that all tables fill evenly; runs alone come last."""
    asked = list(wanted)
    alone = {one.cell for one in asked if one.alone}
    sets = {(one.cell.kind, one.cell.dataset) for one in asked}
    stamps = {(kind, dataset): stamp_of(kind, dataset, device) for kind, dataset in sorted(sets)}
    seeds = range(max((one.runs for one in asked), default=0))
    jobs = dict.fromkeys(Job(one.cell, seed) for seed in seeds for one in asked if seed < one.runs)
    tasks = [Task(job, stamps[job.cell.kind, job.cell.dataset], job.cell in alone) for job in jobs]
    return sorted(tasks, key=lambda task: task.alone)


@dataclass(eq=False)
class Driver:
    """The loop between the ledger and an engine: claim, start, wait, record."""

    ledger: Ledger
    tasks: InitVar[Iterable[Task]]  # in the order in which to do them; those that run alone come last
    before: InitVar[int]  # how many other wanted runs were already done
    stamp_of: StampOf  # the stamp of a run made now; it must not change during a run
    device: str
    on_progress: Callable[[Progress], None]  # called in every iteration
    until: float = math.inf  # when to stop, by the monotonic clock

    def __post_init__(self, tasks: Iterable[Task], before: int) -> None:
        self.pending = deque(tasks)
        self.elsewhere: list[Task] = []  # claimed by another process, which may die or fail
        self.running: dict[Task, float] = {}  # with their start times
        self.wanted, self.done, self.failed = len(self.pending) + before, before, 0
        self.recorded, self.seconds = 0, 0.0
        self.estimate = Estimate(self.ledger.seconds())
        self._last_poll = time.monotonic()

    def run(self, engine: Engine) -> None:
        """Work until all tasks are done or have failed, in any process; leave no claim behind, whatever happens."""
        try:
            while (self.pending or self.elsewhere or self.running) and time.monotonic() < self.until:
                self._poll_others()
                self._fill(engine)
                self.on_progress(self.progress(engine.slots))
                if self.running:
                    self._record_ended(engine, POLL)
                elif self.pending and not any(map(self._fits, self.pending)):
                    break
                elif self.pending or self.elsewhere:
                    time.sleep(POLL)
            self._record_ended(engine, 0)
            self.on_progress(self.progress(engine.slots))
        except KeyboardInterrupt:
            self._record_ended(engine, 0)  # keep what has finished
            raise
        finally:
            engine.close()
            self.ledger.release()

    @property
    def left(self) -> int:
        """Runs that are neither done nor failed."""
        return self.wanted - self.done - self.failed

    def progress(self, slots: int) -> Progress:
        """The state of the work, with so many runs at once."""
        running = tuple(task.job for task in self.running)
        return Progress(self.wanted, self.done, self.failed, running, self._seconds_left(slots))

    def _fill(self, engine: Engine) -> None:
        """Start runs while slots are free. A run that must be alone waits until nothing else runs."""
        while self.pending and len(self.running) < engine.slots:
            task = next(filter(self._fits, self.pending), None)
            if task is None:
                return
            if self.running and (task.alone or any(other.alone for other in self.running)):
                return
            status = self.ledger.claim(task.job, task.stamp, alone=task.alone)
            if status is ClaimStatus.BLOCKED:
                return
            self.pending.remove(task)
            if status is ClaimStatus.OURS:
                self.running[task] = time.monotonic()
                engine.start(task)
            elif status is ClaimStatus.TAKEN:
                self.elsewhere.append(task)
            else:
                self.done += status is ClaimStatus.DONE
                self.failed += status is ClaimStatus.FAILED

    def _fits(self, task: Task) -> bool:
        """Whether a run is expected to end in time; one of which nothing is known is tried."""
        if self.until == math.inf:
            return True
        expected = self.estimate.of(task.job.cell, least=2)
        return expected is None or time.monotonic() + expected < self.until

    def _poll_others(self) -> None:
        """From time to time, try again to claim what another process had."""
        now = time.monotonic()
        if now - self._last_poll >= POLL:
            self.pending.extendleft(reversed(self.elsewhere))
            self.elsewhere.clear()
            self._last_poll = now

    def _record_ended(self, engine: Engine, seconds: float) -> None:
        """Record what ends. A run that was received but not recorded would be lost, so Ctrl-C is held back."""
        with hold_interrupts():
            for ended in engine.wait(seconds):
                self._record(ended)

    def _record(self, ended: Ended) -> None:
        task = ended.task
        if self.stamp_of(task.job.cell.kind, task.job.cell.dataset, self.device) != task.stamp:
            raise DemonetError("the source changed during the runs; unfinished runs are discarded", hint="start again")
        del self.running[task]
        if ended.outcome is None:
            self.ledger.fail(task.job, task.stamp, ended.error)
            self.failed += 1
            return
        self.recorded += self.ledger.record(task.job, task.stamp, ended.outcome)
        self.seconds += ended.outcome.seconds
        self.estimate.add(task.job.cell, ended.outcome.seconds)
        self.done += 1

    def _seconds_left(self, slots: int) -> float | None:
        """The estimate for what is not finished: in parallel, except for runs that must be alone."""
        now, parallel, sequential = time.monotonic(), 0.0, 0.0
        for task in (*self.pending, *self.elsewhere, *self.running):
            expected = self.estimate.of(task.job.cell)
            if expected is None:
                return None
            so_far = now - self.running.get(task, now)
            expected = expected - so_far if so_far < expected else so_far  # an overdue run may be half done
            if task.alone:
                sequential += expected
            else:
                parallel += expected
        return parallel / slots + sequential


class Estimate:
    """Mean processor seconds of a run: of the same cell, or else of the most similar cells that have runs.

    Args:
        known: Cells, how many runs of each have finished, and their seconds in total.

    >>> estimate = Estimate([(Cell("accuracy", "brazil", "gcn"), 4, 8.0)])
    >>> estimate.of(Cell("accuracy", "usa", "gcn")), Estimate([]).of(Cell("accuracy", "usa", "gcn"))
    (2.0, None)
    """

    def __init__(self, known: Iterable[tuple[Cell, int, float]] = ()) -> None:
        self._sums: dict[Hashable, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
        for cell, runs, seconds in known:
            self.add(cell, seconds, runs)

    def add(self, cell: Cell, seconds: float, runs: int = 1) -> None:
        """Add finished runs."""
        for level in _levels(cell):
            before = self._sums[level]
            self._sums[level] = before[0] + runs, before[1] + seconds

    def of(self, cell: Cell, least: int | None = None) -> float | None:
        """Seconds of one run of a cell; ``None`` if no run has ever finished, or none of the first ``least`` levels."""
        sums = (self._sums.get(level, (0, 0.0)) for level in islice(_levels(cell), least))
        return next((seconds / runs for runs, seconds in sums if runs), None)


def _levels(cell: Cell) -> Iterator[Any]:
    """What a cell has in common with others, most specific first; folds take much longer than thirds."""
    yield cell
    yield cell.dataset, cell.method, cell.split
    yield cell.method, cell.split
    yield cell.method
    yield None


@contextmanager
def hold_interrupts() -> Iterator[None]:
    """Delay a Ctrl-C until the block ends. (Only the main thread receives it.)"""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        signal.raise_signal(signal.SIGINT)
