"""Workers on this machine: spawned processes with one thread each, that do not outlive who started them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from demonet.experiments.ledger.engine import Ended, Perform, Stamped, Task, carry_out

CONTEXT = multiprocessing.get_context("spawn")  # a forked worker would share threads and a GPU's state with its parent
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    task: Task | None = None


class LocalEngine:
    """An :class:`~demonet.experiments.ledger.engine.Engine` of processes.

    A worker does one run after the other. One that dies takes its run with it, which ends with an error that says so;
    another worker takes its place.

    Args:
        perform: Does a run.
        stamped: Says with what.
        jobs: How many processes.
        device: Handed to ``perform``.
    """

    def __init__(self, perform: Perform, stamped: Stamped, jobs: int, device: str) -> None:
        self.room = jobs
        self._arguments = (perform, stamped, device)
        self._workers: list[_Worker] = []

    def start(self, task: Task) -> None:
        """Hand a run to a worker that is free, a new one where none is."""
        worker = next((worker for worker in self._workers if worker.task is None), None) or self._hire()
        worker.task = task
        with suppress(OSError):  # it died while it had nothing to do: wait() finds its pipe closed
            worker.pipe.send(task)

    def wait(self, seconds: float) -> list[Ended]:
        """What has ended, by a word of a worker or by its death."""
        ready = connection.wait([worker.pipe for worker in self._workers if worker.task], seconds)
        return [
            self._heard(worker, worker.task) for worker in list(self._workers) if worker.task and worker.pipe in ready
        ]

    def close(self) -> None:
        """Kill all: what a worker has not handed over is not finished."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.pipe.close()
        self._workers.clear()

    def _hire(self) -> _Worker:
        ours, theirs = CONTEXT.Pipe()
        process = CONTEXT.Process(target=_serve, args=(theirs, *self._arguments), daemon=True)
        with _quiet_children():
            process.start()
        theirs.close()  # else a dead worker's pipe would stay open here
        self._workers.append(worker := _Worker(process, ours))
        return worker

    def _heard(self, worker: _Worker, task: Task) -> Ended:
        worker.task = None
        try:
            ended: Ended = worker.pipe.recv()
            return ended
        except (EOFError, OSError):
            worker.process.join()
            self._workers.remove(worker)
            worker.pipe.close()
            code = worker.process.exitcode or 0
            how = f"by {_signal(-code)}" if code < 0 else f"with exit code {code}"
            return Ended(task, None, f"its process was ended {how}" + (", memory?" if code == -9 else ""))


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # one of those without a name
        return f"signal {number}"


def _serve(pipe: Connection, perform: Perform, stamped: Stamped, device: str) -> None:
    """What a worker does: one run after the other, until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who started it
    warnings.filterwarnings("ignore", message=".*Sparse CSR tensor support is in beta state")  # nobody can do anything
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        pipe.send(carry_out(perform, stamped, task, device))


def _end_with_parent() -> None:
    """Wait for the parent's death, however it dies, in the middle of a run too."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _quiet_children() -> Iterator[None]:
    """Processes that start meanwhile have one thread in every library, and do not hear Ctrl-C while they import."""
    before = {name: os.environ.get(name) for name in _THREADS}
    can_mask = hasattr(signal, "pthread_sigmask")  # not on Windows
    if can_mask:
        resource_tracker.ensure_running()  # started later, it would lift the mask
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
