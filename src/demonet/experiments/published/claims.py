"""A claim: what was printed, for which method and set, under which protocol, and how to measure it here."""

from __future__ import annotations

import csv
import math
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from demonet.experiments.rows import write_rows

# Where claims are kept: each module has a list CLAIMS.
MODULES = ("networks", "kernels", "embeddings")


@dataclass(frozen=True)
class Claim:
    """A printed result.

    Attributes:
        method, dataset: By the names they have here.
        protocol: How items were split and the result was chosen, and who printed it.
        published, published_std: Mean accuracy, and its deviation where one was printed, else NaN.
        measure: The accuracies of all folds or runs under the same protocol.
    """

    method: str
    dataset: str
    protocol: str
    published: float
    published_std: float
    measure: Callable[[], list[float]]

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from all others."""
        return self.method, self.dataset, self.protocol


@dataclass(frozen=True)
class Row:
    """A claim beside what was measured; ``within`` is ``yes`` or ``no``, as :func:`is_within` has it."""

    method: str
    dataset: str
    protocol: str
    published: float
    published_std: float
    measured: float
    std: float
    runs: int
    seconds: float
    within: str

    @property
    def key(self) -> tuple[str, str, str]:
        """The key of its claim."""
        return self.method, self.dataset, self.protocol


def all_claims() -> list[Claim]:
    """Every claim, module by module."""
    return [claim for module in MODULES for claim in import_module(f"demonet.experiments.published.{module}").CLAIMS]


def is_within(published: float, published_std: float, measured: float, std: float) -> bool:
    """Whether the measured mean is inside the printed interval, or has the printed mean inside its own.

    >>> is_within(0.80, 0.03, 0.77, 0.01), is_within(0.80, math.nan, 0.77, 0.01), is_within(0.80, math.nan, 0.79, 0.01)
    (True, False, True)
    """
    half = std if math.isnan(published_std) else published_std
    return abs(measured - published) <= half + 1e-9


def measure(claim: Claim) -> Row:
    """Measure a claim."""
    start = time.perf_counter()
    runs = claim.measure()
    mean = statistics.mean(runs)
    std = statistics.stdev(runs) if len(runs) > 1 else math.nan
    within = "yes" if is_within(claim.published, claim.published_std, mean, std) else "no"
    seconds = time.perf_counter() - start
    return Row(*claim.key, claim.published, claim.published_std, mean, std, len(runs), seconds, within)


def read(path: Path) -> list[Row]:
    """The rows that were written, none where there is no file yet."""
    if not path.exists():
        return []
    texts = ("method", "dataset", "protocol", "within")
    with path.open(newline="", encoding="utf-8") as file:
        found = [
            {name: text if name in texts else float(text) for name, text in row.items()} for row in csv.DictReader(file)
        ]
    return [Row(**row | {"runs": int(row["runs"])}) for row in found]  # type: ignore[arg-type]


def keep(row: Row, path: Path, order: Sequence[Claim]) -> None:
    """Put a row into the file, in place of an older one; rows stand in the order of the claims."""
    kept = {old.key: old for old in read(path)} | {row.key: row}
    places = {claim.key: place for place, claim in enumerate(order)}
    rows: list[Row] = sorted(kept.values(), key=lambda found: places.get(found.key, len(places)))
    write_rows(rows, path)


def select(claims: Iterable[Claim], methods: Sequence[str], sets: Sequence[str]) -> list[Claim]:
    """Claims about some methods and sets; about all where none is named."""
    return [c for c in claims if (not methods or c.method in methods) and (not sets or c.dataset in sets)]
