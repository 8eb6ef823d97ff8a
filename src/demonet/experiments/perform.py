"""One job of any kind: what the ledger's workers call."""

from __future__ import annotations

from importlib import import_module

from demonet.errors import DemonetError
from demonet.experiments.ledger.job import Job, Outcome

# Where each kind is done: a function (job, device) of that name. A worker imports what its jobs ask for.
KINDS: dict[str, tuple[str, str]] = {
    "accuracy": ("demonet.experiments.accuracy", "accuracy"),
    "speed": ("demonet.experiments.timing", "speed"),
    "identity": ("demonet.experiments.identity", "identity"),
    "properties": ("demonet.experiments.properties", "properties"),
}


def perform(job: Job, device: str = "cpu") -> Outcome:
    """Do a run.

    Args:
        job: What, and with which seed.
        device: ``"cpu"`` or ``"cuda"``; what has no use for a GPU does not touch it.
    """
    if job.cell.kind not in KINDS:
        raise DemonetError(f"no kind of run is called {job.cell.kind!r}", hint=f"there are {', '.join(KINDS)}")
    module, function = KINDS[job.cell.kind]
    outcome: Outcome = getattr(import_module(module), function)(job, device)
    return outcome
