"""Engines perform tasks: this process, worker processes with one thread each, or a Ray cluster."""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, TypeVar

from demonet.errors import needed

T = TypeVar("T")
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


# A worker that is forked from this process would share its threads and GPU state. A server has neither: it imports
# what workers need, which takes seconds, once and beside this process, and forks each of them.
CONTEXT: BaseContext = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
SPAWN = multiprocessing.get_context("spawn")  # where there is no server: its socket needs a temporary folder
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def import_ahead() -> None:
    """Start the imports of workers that will soon be needed; without this call, the first of them waits for these."""
    if CONTEXT.get_start_method() == "forkserver":
        from multiprocessing import forkserver

        CONTEXT.set_forkserver_preload(["demonet.ensemble.fitting"])
        with _child_environment(), suppress(OSError):
            forkserver.ensure_running()


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    task: Any = None


class LocalEngine:
    """Processes with one thread each, which end with their parent.

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
        import_ahead()
        with _child_environment():
            try:
                process = _started(CONTEXT, theirs)
            except (OSError, EOFError):
                process = _started(SPAWN, theirs)
        theirs.close()  # otherwise the pipe of a dead worker would stay open here
        with suppress(OSError):  # not an argument of the process: `start` would wait for one that dies in its imports
            ours.send(self._perform)
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


@contextmanager
def beside(task: Callable[[], T], jobs: int) -> Iterator[Callable[[], T]]:
    """Perform a task in a process beside the block, if there may be several; what is yielded waits for its result.

    It is performed here where there is one process alone, or where that process fails.
    """
    engine = LocalEngine(_call, 1) if jobs > 1 else InProcess(_call)
    # As bytes: the pickler of processes would move tensors into shared memory, away from arrays that share theirs.
    engine.start(pickle.dumps(task) if jobs > 1 else task)

    def result() -> T:
        ended: list[Ended] = []
        while not ended:
            ended = engine.wait(3600.0)
        return task() if ended[0].error else ended[0].outcome

    try:
        yield result
    finally:
        engine.close()


def _call(task: Callable[[], T] | bytes) -> T:
    found: T = (pickle.loads(task) if isinstance(task, bytes) else task)()
    return found


def join_ray() -> tuple[Any, bool]:
    """Ray, connected to a cluster, and whether it was connected here.

    It is the cluster at ``$RAY_ADDRESS``, or a new one on this machine, which listens on the loopback device alone.
    """
    here = "RAY_ADDRESS" not in os.environ
    if here:  # Ray reads it when it is imported; without clusters, as on macOS, its address is 127.0.0.1
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    ray = needed("ray", "ray", "the engine ray")
    started = not ray.is_initialized()
    if started:
        address = "local" if here else None
        ray.init(address, log_to_driver=False, logging_level=logging.WARNING, include_dashboard=False)
    return ray, started


class RayEngine:
    """Ray tasks with one CPU (and, if the device is one, one GPU) each; this process keeps what comes of them.

    Joins the cluster at ``$RAY_ADDRESS``, or starts one on this machine. Every node needs the same version of this
    package and its libraries. If a node dies, its tasks end with an error.

    Args:
        perform: Performs a task; sent to the cluster once.
        jobs: Tasks at once; by default as many as the cluster has processors.
        device: Where they are performed; each takes a GPU if it is one.
    """

    def __init__(self, perform: Perform, jobs: int | None = None, device: str = "cpu") -> None:
        self._perform, self._gpus = perform, 0 if device == "cpu" else 1
        self._kept: Any = None  # the function in the cluster, while this process is connected
        self._running: dict[Any, Any] = {}
        self._started = False
        self._connect()
        found = self._ray.cluster_resources().get("GPU" if self._gpus else "CPU", 1)
        self.slots = int(found) if jobs is None else jobs

    def start(self, task: Any) -> None:
        """Submit a task to the cluster."""
        self._connect()
        self._running[self._remote.remote(self._kept, pickle.dumps(task))] = task

    def wait(self, seconds: float) -> list[Ended]:
        """Return tasks that have ended."""
        if not self._running:
            return []
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=seconds)
        return [self._receive(reference) for reference in ready]

    def close(self) -> None:
        """Cancel what runs; stop the cluster if it was started here."""
        for reference in self._running:
            self._ray.cancel(reference, force=True)
        self._running.clear()
        if self._started and self._kept is not None:
            self._ray.shutdown()
        self._kept = None

    def _connect(self) -> None:
        if self._kept is not None:
            return
        self._ray, started = join_ray()
        self._started = self._started or started
        self._kept = self._ray.put(self._perform)
        self._remote = self._ray.remote(num_cpus=1, num_gpus=self._gpus, max_retries=0)(_attempt_packed)

    def _receive(self, reference: Any) -> Ended:
        task = self._running.pop(reference)
        try:
            ended: Ended = pickle.loads(self._ray.get(reference))
        except self._ray.exceptions.RayError as error:  # the worker died: attempt returns errors of the task itself
            return Ended(task, None, f"the Ray worker died: {error}")
        return ended


def _attempt_packed(perform: Perform, task: bytes) -> bytes:
    """:func:`attempt`, as bytes: arrays that Ray hands over by itself are read-only."""
    return pickle.dumps(attempt(perform, pickle.loads(task)))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # some signals have no name
        return f"signal {number}"


def _started(context: BaseContext, pipe: Connection) -> BaseProcess:
    process: BaseProcess = context.Process(target=_serve, args=(pipe, dict(os.environ)), daemon=True)  # type: ignore[attr-defined]
    process.start()
    return process


def _serve(pipe: Connection, environment: dict[str, str]) -> None:
    """The main loop of a worker: what performs tasks, then one task after the other until the pipe is closed."""
    os.environ.clear()  # a server's is as old as the server
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent
    warnings.filterwarnings("ignore", message=".*Sparse CSR tensor support is in beta state")
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    with suppress(EOFError):
        perform = pipe.recv()
        while True:
            pipe.send(attempt(perform, pipe.recv()))


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
