"""Accuracies with confidence intervals, and bins of sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from demonet.runs.evaluate import wilson

MOST_BINS = 12
"""With more distinct sizes, bins double in width."""


@dataclass(frozen=True)
class Share:
    """A proportion with its 95 % Wilson interval; NaN if the total is 0."""

    right: int
    total: int

    @property
    def value(self) -> float:
        """The proportion."""
        return self.right / self.total if self.total else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval. It stays within 0 to 1, and has a width even if all or none are right.

        >>> [round(end, 3) for end in Share(10, 10).interval]
        [0.722, 1.0]
        """
        if not self.total:
            return float("nan"), float("nan")
        low, high = wilson(self.right, self.total)
        return low, high


@dataclass(frozen=True)
class Bin:
    """The sizes from ``low`` to ``high``, both included."""

    low: int
    high: int

    @property
    def name(self) -> str:
        """The label on an axis."""
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,}–{self.high:,}"


def size_bins(sizes: NDArray[np.int64]) -> list[Bin]:
    """A bin per distinct size; if these are too many, bins that double; if those are too few, bins of equal width.

    >>> [bin.name for bin in size_bins(np.arange(20))]
    ['0', '1', '2–3', '4–7', '8–15', '16–31']
    >>> [bin.name for bin in size_bins(np.arange(10, 29))]
    ['10–12', '13–15', '16–18', '19–21', '22–24', '25–27', '28–30']
    """
    distinct = np.unique(sizes)
    if distinct.size <= MOST_BINS:
        return [Bin(int(size), int(size)) for size in distinct]
    starts = [0, *(2**power for power in range(int(distinct[-1]).bit_length()))]
    bins = [Bin(start, max(start, 2 * start - 1)) for start in starts if 2 * start > distinct[0] or start == 0]
    if len(bins) < 5:
        smallest, largest = int(distinct[0]), int(distinct[-1])
        width = (largest - smallest) // 8 + 1
        bins = [Bin(start, start + width - 1) for start in range(smallest, largest + 1, width)]
    return [bin for bin in bins if np.any((distinct >= bin.low) & (distinct <= bin.high))]


def bin_of(sizes: NDArray[np.int64], bins: Sequence[Bin]) -> NDArray[np.int64]:
    """``[items]``: the index of the bin of each size."""
    return np.searchsorted([bin.low for bin in bins], sizes, side="right").astype(np.int64) - 1


def percent(share: float) -> str:
    """A proportion as a percentage with one decimal.

    >>> percent(0.7251)
    '72.5\xa0%'
    """
    return f"{100 * share:.1f}\u00a0%"


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers as text, with consecutive ones joined.

    >>> ranges([1, 2, 3, 7, 9, 10])
    '1–3, 7, 9–10'
    """
    found: list[Bin] = []
    for number in numbers:
        if found and found[-1].high == number - 1:
            found[-1] = Bin(found[-1].low, number)
        else:
            found.append(Bin(number, number))
    return ", ".join(bin.name for bin in found)
