"""The loop between the ledger and an engine: claim, start, wait, record."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from demonet.errors import DemonetError
from demonet.experiments.ledger.engine import Ended, Engine, Stamped, Task
from demonet.experiments.ledger.estimate import Estimate
from demonet.experiments.ledger.interrupt import uninterrupted
from demonet.experiments.ledger.job import Job
from demonet.experiments.ledger.store import Claim, Ledger

POLL = 0.5  # seconds between two looks at what others are doing
BEAT = 30.0  # seconds between two heartbeats


@dataclass(frozen=True)
class Progress:
    """Where the work stands.

    Attributes:
        wanted, done, failed: How many runs are asked for, have ended well (before or now), and have failed now.
        running: Those in work here.
        left: Seconds until all are done, as far as runs that have ended tell; ``None`` where none has.
    """

    wanted: int
    done: int
    failed: int
    running: tuple[Job, ...]
    left: float | None


class Driver:
    """Has tasks done.

    Args:
        ledger: Where they are claimed and recorded.
        tasks: In the order in which they are to be done, those that run alone last.
        before: How many more were wanted and are done.
        stamped: Says with what a run is made; that must not change while it runs.
        device: On which.
        on_progress: Told at every turn of the loop.
    """

    def __init__(
        self,
        ledger: Ledger,
        tasks: Iterable[Task],
        before: int,
        stamped: Stamped,
        device: str,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self.ledger, self.stamped, self.device, self.on_progress = ledger, stamped, device, on_progress
        self.pending = deque(tasks)
        self.elsewhere: list[Task] = []  # in work in another process, which may die or fail
        self.running: dict[Task, float] = {}  # since when
        self.wanted, self.done, self.failed = len(self.pending) + before, before, 0
        self.recorded, self.seconds = 0, 0.0
        self.estimate = Estimate(ledger.seconds())
        self._beaten = self._looked = time.monotonic()

    def run(self, engine: Engine) -> None:
        """Until all are done or have failed, by whomever; whatever happens, no claim is left behind."""
        try:
            while self.pending or self.elsewhere or self.running:
                self._look_elsewhere()
                self._fill(engine)
                self.on_progress(self.progress(engine.room))
                if self.running:
                    self._hear(engine, POLL)
                elif self.pending or self.elsewhere:
                    time.sleep(POLL)
            self.on_progress(self.progress(engine.room))
        except KeyboardInterrupt:
            self._hear(engine, 0)  # what has ended is kept
            raise
        finally:
            engine.close()
            self.ledger.release()

    def progress(self, room: int) -> Progress:
        """Where the work stands now, with room for so many runs at once."""
        return Progress(self.wanted, self.done, self.failed, tuple(task.job for task in self.running), self._left(room))

    def _fill(self, engine: Engine) -> None:
        """Start as many as there is room for. One that runs alone waits until nothing else does."""
        while self.pending and len(self.running) < engine.room:
            task = self.pending[0]
            if self.running and (task.alone or any(other.alone for other in self.running)):
                return
            claim = self.ledger.claim(task.job, task.stamp, alone=task.alone)
            if claim is Claim.BLOCKED:
                return
            self.pending.popleft()
            if claim is Claim.OURS:
                self.running[task] = time.monotonic()
                engine.start(task)
            elif claim is Claim.TAKEN:
                self.elsewhere.append(task)
            else:
                self.done += claim is Claim.DONE
                self.failed += claim is Claim.FAILED

    def _look_elsewhere(self) -> None:
        """Ask again, now and then, for what another process had; and say that this one lives."""
        now = time.monotonic()
        if now - self._looked >= POLL:
            self.pending.extendleft(reversed(self.elsewhere))
            self.elsewhere.clear()
            self._looked = now
        if now - self._beaten >= BEAT:
            self.ledger.beat()
            self._beaten = now

    def _hear(self, engine: Engine, seconds: float) -> None:
        """Record what ends. Between a worker's word and the ledger a run is nowhere: no Ctrl-C may lose it there."""
        with uninterrupted():
            self._record(engine.wait(seconds))

    def _record(self, all_ended: list[Ended]) -> None:
        for ended in all_ended:
            task = ended.task
            if self.stamped(task.job.cell.kind, task.job.cell.dataset, self.device) != task.stamp:
                raise DemonetError(
                    "the source changed while runs were made: those in work do not count", hint="start again"
                )
            del self.running[task]
            if ended.outcome is None:
                self.ledger.fail(task.job, task.stamp, ended.error)
                self.failed += 1
                continue
            self.recorded += self.ledger.record(task.job, task.stamp, ended.outcome)
            self.seconds += ended.outcome.seconds
            self.estimate.add(task.job.cell, ended.outcome.seconds)
            self.done += 1

    def _left(self, room: int) -> float | None:
        """What is not finished, by what its like took: side by side, but for what runs alone."""
        now, side_by_side, one_by_one = time.monotonic(), 0.0, 0.0
        for task in (*self.pending, *self.elsewhere, *self.running):
            expected = self.estimate.of(task.job.cell)
            if expected is None:
                return None
            so_far = now - self.running.get(task, now)
            expected = expected - so_far if so_far < expected else so_far  # one that is late may be half done
            if task.alone:
                one_by_one += expected
            else:
                side_by_side += expected
        return side_by_side / room + one_by_one
