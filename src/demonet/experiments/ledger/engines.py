"""Engines perform runs: :class:`LocalEngine` in processes on this machine, :class:`RayEngine` on a Ray cluster."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

from demonet.errors import DemonetError
from demonet.experiments.ledger.job import Job, Outcome, Stamp
from demonet.experiments.ledger.schema import outcome_row

Perform = Callable[[Job, str], Outcome]  # (job, device); must be importable by name, as other processes call it
StampOf = Callable[[str, str, str], Stamp]  # (kind, dataset, device)


@dataclass(frozen=True)
class Task:
    """A run to do, the stamp it is claimed with, and whether nothing else may run meanwhile."""

    job: Job
    stamp: Stamp
    alone: bool = False


@dataclass(frozen=True)
class Ended:
    """A run that has ended, with an outcome or with an error text."""

    task: Task
    outcome: Outcome | None
    error: str = ""


class Engine(Protocol):
    """A pool of workers."""

    @property
    def slots(self) -> int:
        """How many runs are performed at once."""

    def start(self, task: Task) -> None:
        """Start a run; a slot must be free."""

    def wait(self, seconds: float) -> list[Ended]:
        """Return the runs that have ended; wait at most so long for the first."""

    def close(self) -> None:
        """Stop all workers at once."""


def run_task(perform: Perform, stamp_of: StampOf, task: Task, device: str) -> Ended:
    """Perform one run in a worker. An error is returned, not raised: it must not end the worker."""
    import torch

    torch.set_num_threads(1)  # so that results do not depend on the number of cores
    try:
        if stamp_of(task.job.cell.kind, task.job.cell.dataset, device) != task.stamp:
            raise DemonetError("the worker's code, libraries, data or device differ from those that claimed the run")
        outcome = perform(task.job, device)
        outcome_row(outcome)  # raises if the outcome cannot be recorded
    except Exception:
        return Ended(task, None, traceback.format_exc())
    return Ended(task, outcome)


CONTEXT = multiprocessing.get_context("spawn")  # a forked worker would share its parent's threads and GPU state
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    task: Task | None = None


class LocalEngine:
    """Spawned processes with one thread each, which end with their parent.

    If a worker dies, its run ends with an error and another worker replaces it.

    Args:
        perform: Performs a run.
        stamp_of: Returns the stamp of a run made now.
        jobs: Number of processes.
        device: Passed to ``perform``.
    """

    def __init__(self, perform: Perform, stamp_of: StampOf, jobs: int, device: str) -> None:
        self.slots = jobs
        self._arguments = (perform, stamp_of, device)
        self._workers: list[_Worker] = []

    def start(self, task: Task) -> None:
        """Send a run to an idle worker; start a new worker if none is idle."""
        worker = next((worker for worker in self._workers if worker.task is None), None) or self._spawn()
        worker.task = task
        with suppress(OSError):  # it died while idle: wait() finds its pipe closed
            worker.pipe.send(task)

    def wait(self, seconds: float) -> list[Ended]:
        """Return runs that have ended, normally or by the death of their worker."""
        ready = connection.wait([worker.pipe for worker in self._workers if worker.task], seconds)
        return [
            self._receive(worker, worker.task) for worker in list(self._workers) if worker.task and worker.pipe in ready
        ]

    def close(self) -> None:
        """Kill all workers."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.pipe.close()
        self._workers.clear()

    def _spawn(self) -> _Worker:
        ours, theirs = CONTEXT.Pipe()
        process = CONTEXT.Process(target=_serve, args=(theirs, *self._arguments), daemon=True)
        with _child_environment():
            process.start()
        theirs.close()  # otherwise the pipe of a dead worker would stay open here
        self._workers.append(worker := _Worker(process, ours))
        return worker

    def _receive(self, worker: _Worker, task: Task) -> Ended:
        worker.task = None
        try:
            ended: Ended = worker.pipe.recv()
            return ended
        except (EOFError, OSError):
            worker.process.join()
            self._workers.remove(worker)
            worker.pipe.close()
            code = worker.process.exitcode or 0
            how = f"was killed by {_signal_name(-code)}" if code < 0 else f"exited with code {code}"
            return Ended(task, None, f"the worker process {how}" + (" (out of memory?)" if code == -9 else ""))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # some signals have no name
        return f"signal {number}"


def _serve(pipe: Connection, perform: Perform, stamp_of: StampOf, device: str) -> None:
    """The main loop of a worker: one run after the other until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent
    warnings.filterwarnings("ignore", message=".*Sparse CSR tensor support is in beta state")
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        pipe.send(run_task(perform, stamp_of, task, device))


def _exit_with_parent() -> None:
    """Exit when the parent process ends, however it ends, even during a run."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _child_environment() -> Iterator[None]:
    """Processes started meanwhile use one thread in every library, and ignore Ctrl-C while they import."""
    before = {name: os.environ.get(name) for name in _THREADS}
    can_mask = hasattr(signal, "pthread_sigmask")  # not on Windows
    if can_mask:
        resource_tracker.ensure_running()  # if it were started later, it would lift the mask
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        if can_mask:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class RayEngine:
    """Ray tasks with one CPU (and, if the device is one, one GPU) each; the driver keeps the ledger.

    Joins the cluster at ``$RAY_ADDRESS``, or starts one on this machine. Every node needs the same version of this
    package and its libraries; each run checks that. If a node dies, its run ends with an error.

    Args:
        perform: Performs a run.
        stamp_of: Returns the stamp of a run made now.
        jobs: Runs at once; by default as many as the cluster has processors.
        device: Passed to ``perform``.
    """

    def __init__(self, perform: Perform, stamp_of: StampOf, jobs: int | None, device: str) -> None:
        self._ray = ray = _import_ray()
        self._started = not ray.is_initialized()
        if self._started:
            ray.init(log_to_driver=False, logging_level=logging.WARNING, include_dashboard=False)
        gpus = 0 if device == "cpu" else 1
        self.slots = int(ray.cluster_resources().get("GPU" if gpus else "CPU", 1)) if jobs is None else jobs
        self._remote = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=0)(run_task)
        self._arguments = (perform, stamp_of, device)
        self._running: dict[Any, Task] = {}

    def start(self, task: Task) -> None:
        """Submit a run to the cluster."""
        perform, stamp_of, device = self._arguments
        self._running[self._remote.remote(perform, stamp_of, task, device)] = task

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
        except self._ray.exceptions.RayError as error:  # the worker died: run_task returns errors of the run itself
            return Ended(task, None, f"the Ray worker died: {error}")
        return ended


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise DemonetError("--engine ray needs Ray", hint="pip install demonet[ray]") from error
    return ray
