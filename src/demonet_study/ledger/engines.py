"""Engines perform runs: local worker processes, or a :class:`RayEngine` on a Ray cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from demonet.errors import DemonetError
from demonet.runs.workers import Ended, attempt
from demonet.runs.workers import Perform as Worker
from demonet_study.ledger.job import Job, Outcome, Stamp
from demonet_study.ledger.schema import outcome_row

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


class RayEngine:
    """Ray tasks with one CPU (and, if the device is one, one GPU) each; the driver keeps the ledger.

    Joins the cluster at ``$RAY_ADDRESS``, or starts one on this machine. Every node needs the same version of this
    package and its libraries; each run checks that. If a node dies, its run ends with an error.

    Args:
        perform: Performs a task.
        jobs: Runs at once; by default as many as the cluster has processors.
        device: Where runs are performed; each takes a GPU if it is one.
    """

    def __init__(self, perform: Worker, jobs: int | None, device: str) -> None:
        self._ray = ray = _import_ray()
        self._started = not ray.is_initialized()
        if self._started:
            ray.init(log_to_driver=False, logging_level=logging.WARNING, include_dashboard=False)
        gpus = 0 if device == "cpu" else 1
        self.slots = int(ray.cluster_resources().get("GPU" if gpus else "CPU", 1)) if jobs is None else jobs
        self._remote = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=0)(attempt)
        self._perform = perform
        self._running: dict[Any, Task] = {}

    def start(self, task: Task) -> None:
        """Submit a run to the cluster."""
        self._running[self._remote.remote(self._perform, task)] = task

    def wait(self, seconds: float) -> list[Ended]:
        """Return runs that have ended."""
        if not self._running:
            return []
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=seconds)
        return [self._receive(reference) for reference in ready]

    def close(self) -> None:
        """Cancel what runs; stop the cluster if it was started here."""
        for reference in self._running:
            self._ray.cancel(reference, force=True)
        self._running.clear()
        if self._started:
            self._ray.shutdown()

    def _receive(self, reference: Any) -> Ended:
        task = self._running.pop(reference)
        try:
            ended: Ended = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:  # the worker died: attempt returns errors of the run itself
            return Ended(task, None, f"the Ray worker died: {error}")
        return ended


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise DemonetError("--engine ray needs Ray", hint="pip install demonet[ray]") from error
    return ray
