"""Engines: in which processes a network is trained, or candidates are fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from demonet.distributed.launch import restarted, under_torchrun
from demonet.distributed.recipe import Lead, train_in_parts
from demonet.distributed.store import Store, is_store
from demonet.errors import DemonetError, Hint
from demonet.options import Settings
from demonet.train.recipes import Trained
from demonet.workers import Engine, RayEngine


class Role(NamedTuple):
    """The role of this process.

    Attributes:
        lead: What the first process trains with; None where training is in one process.
        served: Whether the process has only taken part in the trainings of another, which is done.
        again: Whether it was started again after a process has died, so that its run goes on.
    """

    lead: Lead | None = None
    served: bool = False
    again: bool = False


@contextmanager
def join(settings: Settings) -> Iterator[Role]:
    """The role of this process in the group of its engine; the group ends with the block."""
    if settings.engine == "ray" and not settings.fits_candidates:
        from demonet.distributed.ray_train import lead_on_ray

        yield Role(lead_on_ray)
        return
    if settings.engine != "torchrun":
        yield Role()
        return
    if not under_torchrun():
        problem = "torchrun has not started this process"
        raise DemonetError(problem, argument="engine", hint="torchrun --nproc-per-node 2 -m demonet fit ...")
    from demonet.distributed import worker
    from demonet.distributed.group import is_first

    with worker.group(settings.uses):
        if is_first():
            with worker.Leader() as lead:
                yield Role(lead, again=restarted())
        else:
            worker.serve()
            yield Role(served=True)


def count_workers(edges: str, workers: int | None) -> int:
    """The number of processes that was asked for, or the number of parts of a store."""
    parts = Store(edges).parts if is_store(Path(edges)) else None
    found = workers or parts
    if found is None:
        raise DemonetError("how many workers?", hint=Hint("{workers} says so", workers=2))
    return found


def recipe_of(settings: Settings, lead: Lead | None, edges: str, store: Store | None) -> Callable[..., Trained] | None:
    """What trains a network over processes; None where training is in one process."""
    if settings.engine in (None, "local") or settings.fits_candidates:
        return None
    if lead is None:
        raise DemonetError(f"{settings.engine!r} without a leader", argument="engine", hint="see demonet.runs.engines")
    if settings.engine == "torchrun":
        from demonet.distributed.group import world

        workers = world()
        if settings.workers not in (None, workers):
            problem = f"{settings.workers}, but torchrun has started {workers} processes"
            raise DemonetError(problem, argument="workers")
    else:
        workers = count_workers(edges, settings.workers)
    partition = settings.partition or "balanced"
    return partial(train_in_parts, lead=lead, workers=workers, partition=partition, store=store)


def candidate_engine(settings: Settings) -> Callable[..., Engine] | None:
    """What fits the candidates of the ensemble on a Ray cluster; None where they are fitted on this machine."""
    if settings.engine != "ray":
        return None
    return partial(RayEngine, jobs=settings.jobs, device=settings.uses)
