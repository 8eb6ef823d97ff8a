"""A number of a table: the mean over the runs of a cell, with all that stands beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A line of ``results/<part>.csv``.

    Attributes:
        part, dataset, method, preset: Where it stands; ``preset`` is empty for baselines.
        variant: What differs within a method, such as ``"layers=3"``; else empty.
        split, train_fraction: The protocol, and the share of training items that it names (NaN where none).
        mean, std, ci95: Over the runs that are there: standard deviation, and half the 95 % interval of the mean by
            Student's t. NaN where there are too few.
        runs, wanted: How many runs are there, and how many there will be.
        paper, paper_std: What is printed in the paper, NaN where nothing is.
        seconds, peak_memory_mb: Mean processor time of a run, and the least peak of all.
        device, code: Of the stamp that all these runs share.
        values: Every run, in the order of seeds; not in the file.
    """

    part: str
    dataset: str
    method: str
    preset: str
    variant: str
    split: str
    train_fraction: float
    mean: float
    std: float
    ci95: float
    runs: int
    wanted: int
    paper: float
    paper_std: float
    seconds: float
    peak_memory_mb: float
    device: str
    code: str
    values: tuple[float, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether every run is there that was wanted, and a mean of them: what is not whole wins nothing yet."""
        return self.runs >= self.wanted and not math.isnan(self.mean)
