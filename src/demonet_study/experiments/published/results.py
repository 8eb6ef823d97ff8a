"""Results published elsewhere: method, data set, protocol, the published number, and how to measure it here.

Every fold, split or setting is one run of the ledger, so an interrupted measurement resumes.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from demonet.errors import DemonetError
from demonet.runs.measure import Meter
from demonet.sealed import canonical
from demonet_study.experiments.rows import read_rows, write_rows
from demonet_study.ledger.job import Cell, Job, Outcome, Result

# Each of these modules has a list RESULTS.
MODULES = ("gin", "gcn", "kernels", "embeddings")


@dataclass(frozen=True)
class PublishedResult:
    """A published result."""

    # Their names in this package.
    method: str
    dataset: str
    protocol: str  # how items were split and the result was chosen, and who published it
    # Mean accuracy and its standard deviation (NaN if none was published).
    published: float
    published_std: float
    pieces: int  # the number of folds, splits or settings that can be measured independently
    piece: Callable[[int], Any]  # measures one of them; returns plain JSON
    # From the answers of all pieces, in order, to the accuracies of all folds or runs.
    combine: Callable[[list[Any]], list[float]] = list

    @property
    def key(self) -> tuple[str, str, str]:
        """Its identifier."""
        return self.method, self.dataset, self.protocol

    @property
    def cell(self) -> Cell:
        """Its cell in the ledger; seed ``i`` is piece ``i``."""
        return Cell("published", self.dataset, self.method, options=canonical({"protocol": self.protocol}))


@dataclass(frozen=True)
class PublishedRow:
    """A published result and its measurement here: a row of ``results/published.csv``."""

    # Those of the published result.
    method: str
    dataset: str
    protocol: str
    published: float
    published_std: float
    # Mean accuracy over the folds or runs, and its standard deviation.
    measured: float
    std: float
    runs: int  # number of folds or runs
    seconds: float  # processor time of all of them
    within: str  # yes or no, see is_within

    @property
    def key(self) -> tuple[str, str, str]:
        """The key of its published result."""
        return self.method, self.dataset, self.protocol


def all_results() -> list[PublishedResult]:
    """Every published result, module by module."""
    return [one for module in MODULES for one in import_module(f"demonet_study.experiments.published.{module}").RESULTS]


def measure(job: Job, device: str = "cpu") -> Outcome:
    """Piece ``seed`` of a published result, on the CPU. The value is the mean of the piece's accuracies."""
    meter, protocol = Meter(), json.loads(job.cell.options)["protocol"]
    key = (job.cell.method, job.cell.dataset, protocol)
    found = [one for one in all_results() if one.key == key]
    if not found:
        raise DemonetError(f"no published result of {job.cell.method} on {job.cell.dataset}: {protocol}")
    answer = found[0].piece(job.seed)
    return Outcome(statistics.mean(_flat(answer)), meter.seconds, meter.peak_memory_mb, {"answer": answer})


def _flat(answer: Any) -> list[float]:
    return [number for part in answer for number in _flat(part)] if isinstance(answer, list) else [float(answer)]


def is_within(published: float, published_std: float, measured: float, std: float) -> bool:
    """Whether the measured mean is at most one standard deviation from the published one.

    The deviation is the published one, or ours if none was published.

    >>> is_within(0.80, 0.03, 0.77, 0.01), is_within(0.80, math.nan, 0.77, 0.01), is_within(0.80, math.nan, 0.79, 0.01)
    (True, False, True)
    """
    half = std if math.isnan(published_std) else published_std
    return abs(measured - published) <= half + 1e-9


def compare(result: PublishedResult, runs: Sequence[Result]) -> PublishedRow:
    """The row of a published result, from the runs of all its pieces."""
    values = result.combine([run.outcome.extra["answer"] for run in runs])
    mean = statistics.mean(values)
    std = statistics.stdev(values) if len(values) > 1 else math.nan
    within = "yes" if is_within(result.published, result.published_std, mean, std) else "no"
    seconds = sum(run.outcome.seconds for run in runs)
    return PublishedRow(*result.key, result.published, result.published_std, mean, std, len(values), seconds, within)


def read(path: Path) -> list[PublishedRow]:
    """Read the rows of a file; none if it does not exist."""
    return read_rows(PublishedRow, path) if path.exists() else []


def keep(row: PublishedRow, path: Path, order: Sequence[PublishedResult]) -> None:
    """Write a row into the file, replacing an older one; rows are in the given order of results."""
    kept = {old.key: old for old in read(path)} | {row.key: row}
    places = {result.key: place for place, result in enumerate(order)}
    rows: list[PublishedRow] = sorted(kept.values(), key=lambda found: places.get(found.key, len(places)))
    write_rows(rows, path)
