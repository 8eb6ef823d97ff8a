"""A claim: what was printed, for which method and set, under which protocol, and how to measure it here."""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from demonet.experiments.rows import write_rows

# Where claims are kept: each module has a list CLAIMS.
MODULES = ("gin", "gcn", "kernels", "embeddings")


@dataclass(frozen=True)
class Claim:
    """A printed result.

    Attributes:
        method, dataset: By the names they have here.
        protocol: How items were split and the result was chosen, and who printed it.
        published, published_std: Mean accuracy, and its deviation where one was printed, else NaN.
        pieces: How many folds, splits or settings there are that can be measured apart, in any order.
        piece: Measures one of them; importable by name, as another process calls it, and its answer is plain JSON.
        combine: From the answers of all pieces, in order, to the accuracies of all folds or runs.
    """

    method: str
    dataset: str
    protocol: str
    published: float
    published_std: float
    pieces: int
    piece: Callable[[int], Any]
    combine: Callable[[list[Any]], list[float]] = list

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from all others."""
        return self.method, self.dataset, self.protocol


@dataclass(frozen=True)
class Row:
    """A claim beside what was measured.

    Attributes:
        method, dataset, protocol, published, published_std: Those of the claim.
        measured, std: Mean accuracy over the folds or runs, and its standard deviation.
        runs: How many folds or runs.
        seconds: Processor time of all of them.
        within: ``yes`` or ``no``: see :func:`is_within`. Where no deviation was printed, the interval is our own.
    """

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
    """Whether the measured mean is at most one deviation from the printed one: the printed deviation, or else ours.

    Where none was printed, our own tells how far runs lie apart, which is all that is known of how far theirs did.

    >>> is_within(0.80, 0.03, 0.77, 0.01), is_within(0.80, math.nan, 0.77, 0.01), is_within(0.80, math.nan, 0.79, 0.01)
    (True, False, True)
    """
    half = std if math.isnan(published_std) else published_std
    return abs(measured - published) <= half + 1e-9


def compare(claim: Claim, answers: list[Any], seconds: float) -> Row:
    """The row of a claim whose pieces have all been measured."""
    runs = claim.combine(answers)
    mean = statistics.mean(runs)
    std = statistics.stdev(runs) if len(runs) > 1 else math.nan
    within = "yes" if is_within(claim.published, claim.published_std, mean, std) else "no"
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


def table(rows: Iterable[Row]) -> str:
    """The rows in Markdown."""
    lines = ["| method | set | protocol | printed | measured | within |", "|---|---|---|---|---|---|"]
    for row in rows:
        spread = "" if math.isnan(row.published_std) else f" ± {row.published_std:.3f}"
        measured = f"{row.measured:.3f} ± {row.std:.3f}"
        printed = f"{row.published:.3f}{spread}"
        lines.append(f"| `{row.method}` | {row.dataset} | {row.protocol} | {printed} | {measured} | {row.within} |")
    return "\n".join(lines)


def select(claims: Iterable[Claim], methods: Sequence[str], sets: Sequence[str]) -> list[Claim]:
    """Claims about some methods and sets; about all where none is named."""
    return [c for c in claims if (not methods or c.method in methods) and (not sets or c.dataset in sets)]
