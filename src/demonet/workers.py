"""Engines perform tasks: this process, or worker processes with one thread each."""

from __future__ import annotations

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

Perform = Callable[[Any], Any]  # from a task to its outcome; both and the function itself go to other processes


@dataclass(frozen=True)
class Ended:
    """A task that has ended, with an outcome or with an error text."""

    task: Any
    outcome: Any
    error: str = ""


class Engine(Protocol):
    """A pool of workers."""

    @property
    def slots(self) -> int:
        """How many tasks are performed at once."""

    def start(self, task: Any) -> None:
        """Start a task; a slot must be free."""

    def wait(self, seconds: float) -> list[Ended]:
        """Return the tasks that have ended; wait at most so long for the first."""

    def close(self) -> None:
        """Stop all workers at once."""


def attempt(perform: Perform, task: Any) -> Ended:
    """Perform one task in a worker. An error is returned, not raised: it must not end the worker."""
    import torch

    torch.set_num_threads(1)  # so that results do not depend on the number of cores
    try:
        return Ended(task, perform(task))
    except Exception:
        return Ended(task, None, traceback.format_exc())


class InProcess:
    """One task at a time, in this process with all of its threads; an error of a task is raised.

    Args:
        perform: Performs a task.
    """

    slots = 1

    def __init__(self, perform: Perform) -> None:
        self._perform, self._tasks = perform, list[Any]()

    def start(self, task: Any) -> None:
        """Keep a task until it is waited for."""
        self._tasks.append(task)

    def wait(self, seconds: float) -> list[Ended]:
        """Perform it."""
        tasks, self._tasks = self._tasks, []
        return [Ended(task, self._perform(task)) for task in tasks]

    def close(self) -> None:
        """Nothing is left to stop."""


CONTEXT = multiprocessing.get_context("spawn")  # a forked worker would share its parent's threads and GPU state
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    task: Any = None


class LocalEngine:
    """Spawned processes with one thread each, which end with their parent.

    If a worker dies, its task ends with an error and another worker replaces it.

    Args:
        perform: Performs a task.
        jobs: Number of processes.
    """

    def __init__(self, perform: Perform, jobs: int) -> None:
        self.slots = jobs
        self._perform = perform
        self._workers: list[_Worker] = []

    def start(self, task: Any) -> None:
        """Send a task to an idle worker; start a new worker if none is idle."""
        worker = next((worker for worker in self._workers if worker.task is None), None) or self._spawn()
        worker.task = task
        with suppress(OSError):  # it died while idle: wait() finds its pipe closed
            worker.pipe.send(task)

    def wait(self, seconds: float) -> list[Ended]:
        """Return tasks that have ended, normally or by the death of their worker."""
        ready = connection.wait([worker.pipe for worker in self._workers if worker.task is not None], seconds)
        return [
            self._receive(worker, worker.task)
            for worker in list(self._workers)
            if worker.task is not None and worker.pipe in ready
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
        process = CONTEXT.Process(target=_serve, args=(theirs, self._perform), daemon=True)
        with _child_environment():
            process.start()
        theirs.close()  # otherwise the pipe of a dead worker would stay open here
        self._workers.append(worker := _Worker(process, ours))
        return worker

    def _receive(self, worker: _Worker, task: Any) -> Ended:
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


def _serve(pipe: Connection, perform: Perform) -> None:
    """The main loop of a worker: one task after the other until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent
    warnings.filterwarnings("ignore", message=".*Sparse CSR tensor support is in beta state")
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        pipe.send(attempt(perform, task))


def _exit_with_parent() -> None:
    """Exit when the parent process ends, however it ends, even during a task."""
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
