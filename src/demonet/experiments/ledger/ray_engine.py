"""Workers on a Ray cluster: the same runs, and the ledger stays with who started them."""

from __future__ import annotations

import logging
from typing import Any

from demonet.errors import DemonetError
from demonet.experiments.ledger.engine import Ended, Perform, Stamped, Task, carry_out


class RayEngine:
    """An :class:`~demonet.experiments.ledger.engine.Engine` of Ray tasks, one processor (and one GPU) each.

    It joins the cluster that ``$RAY_ADDRESS`` names, or starts one on this machine. Every node must have the same
    version of this package and its libraries, which each run checks. Where a node dies, its run ends with an error.

    Args:
        perform: Does a run.
        stamped: Says with what.
        jobs: How many runs at once; as many as the cluster has processors if not given.
        device: Handed to ``perform``.
    """

    def __init__(self, perform: Perform, stamped: Stamped, jobs: int | None, device: str) -> None:
        self._ray = ray = _import()
        self._started = not ray.is_initialized()
        if self._started:
            ray.init(log_to_driver=False, logging_level=logging.WARNING, include_dashboard=False)
        gpus = 0 if device == "cpu" else 1
        self.room = int(ray.cluster_resources().get("GPU" if gpus else "CPU", 1)) if jobs is None else jobs
        self._remote = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=0)(carry_out)
        self._arguments = (perform, stamped, device)
        self._running: dict[Any, Task] = {}

    def start(self, task: Task) -> None:
        """Send a run to the cluster."""
        perform, stamped, device = self._arguments
        self._running[self._remote.remote(perform, stamped, task, device)] = task

    def wait(self, seconds: float) -> list[Ended]:
        """What the cluster has handed back."""
        if not self._running:
            return []
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=seconds)
        return [self._heard(reference) for reference in ready]

    def close(self) -> None:
        """Stop what runs, and the cluster if it was started for this."""
        for reference in self._running:
            self._ray.cancel(reference, force=True)
        self._running.clear()
        if self._started:
            self._ray.shutdown()

    def _heard(self, reference: Any) -> Ended:
        task = self._running.pop(reference)
        try:
            ended: Ended = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:  # the worker died: what is raised in a run is carried out
            return Ended(task, None, f"its worker was lost: {error}")
        return ended


def _import() -> Any:
    try:
        import ray
    except ImportError as error:
        raise DemonetError("--engine ray needs Ray", hint="pip install demonet[ray]") from error
    return ray
