"""A run as a row of the table, and back."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, astuple
from typing import Any

from demonet.errors import DemonetError
from demonet.experiments.ledger.job import Cell, Job, Outcome, Result, Stamp, canonical
from demonet.experiments.ledger.schema import JOB, STAMP

_SEED, _STAMPED = len(JOB) - 1, len(JOB) + len(STAMP)


def key(job: Job, stamp: Stamp) -> str:
    """The name of a run: another job or another stamp has another one.

    >>> job, made = Job(Cell("accuracy", "brazil", "gcn"), 0), Stamp("a", "{}", "cpu")
    >>> key(job, made) == key(job, made), key(job, made) == key(Job(job.cell, 1), made)
    (True, False)
    """
    return hashlib.sha256(canonical(asdict(job) | asdict(stamp)).encode()).hexdigest()


def job_row(job: Job) -> tuple[Any, ...]:
    """The columns of ``JOB``."""
    return (*astuple(job.cell), job.seed)


def outcome_row(outcome: Outcome) -> tuple[float, float, float, str]:
    """The columns of ``OUTCOME``. SQLite keeps a NaN as NULL.

    Raises:
        DemonetError: When the value is no number that a mean can be taken of.
    """
    if not math.isfinite(outcome.value):
        raise DemonetError(f"the run gave {outcome.value}", hint="a run has to give a number")
    extra = json.dumps(outcome.extra, sort_keys=True, separators=(",", ":"))
    return float(outcome.value), float(outcome.seconds), float(outcome.peak_memory_mb), extra


def job_of(row: Sequence[Any]) -> Job:
    """From a row that begins with the columns of ``JOB``."""
    return Job(Cell(*row[:_SEED]), row[_SEED])


def stamp_of(row: Sequence[Any]) -> Stamp:
    """From a row where those of ``STAMP`` follow."""
    return Stamp(*row[_SEED + 1 : _STAMPED])


def result_of(row: Sequence[Any]) -> Result:
    """From a row where those of ``OUTCOME`` follow."""
    *numbers, extra = row[_STAMPED : _STAMPED + 4]
    value, seconds, peak = (math.nan if number is None else number for number in numbers)
    return Result(job_of(row), stamp_of(row), Outcome(value, seconds, peak, json.loads(extra)))
