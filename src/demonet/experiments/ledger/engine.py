"""What an engine is: something that does runs, as many at once as it has room for, and hands back what came of them."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from demonet.errors import DemonetError
from demonet.experiments.ledger.job import Job, Outcome, Stamp
from demonet.experiments.ledger.record import outcome_row

Perform = Callable[[Job, str], Outcome]  # a job and a device; importable by name, as another process calls it
Stamped = Callable[[str, str, str], Stamp]  # of a kind, a set and a device


@dataclass(frozen=True)
class Task:
    """A run that is to be done, the stamp that it is claimed with, and whether nothing may run beside it."""

    job: Job
    stamp: Stamp
    alone: bool = False


@dataclass(frozen=True)
class Ended:
    """A run that has ended: with an outcome, or with the text of an error."""

    task: Task
    outcome: Outcome | None
    error: str = ""


class Engine(Protocol):
    """Workers."""

    @property
    def room(self) -> int:
        """How many runs at once."""

    def start(self, task: Task) -> None:
        """Begin a run; there must be room."""

    def wait(self, seconds: float) -> list[Ended]:
        """What has ended; the first to end is waited for, not longer than that."""

    def close(self) -> None:
        """End all workers, whatever they are doing."""


def carry_out(perform: Perform, stamped: Stamped, task: Task, device: str) -> Ended:
    """Do one run, where the worker is. What goes wrong is written down: it must not end the worker."""
    import torch

    torch.set_num_threads(1)  # so that the bits do not depend on how many processors there are
    try:
        if stamped(task.job.cell.kind, task.job.cell.dataset, device) != task.stamp:
            raise DemonetError("this worker has other code, libraries, data or device than what claimed the run")
        outcome = perform(task.job, device)
        outcome_row(outcome)  # what cannot be written is told here
    except Exception:
        return Ended(task, None, traceback.format_exc())
    return Ended(task, outcome)
