"""Bins of sizes, and shares with confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from demonet.runs.evaluate import wilson

MOST_BINS = 12
"""With more distinct sizes, bins double in width."""


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


def share(right: int, total: int) -> tuple[float, float, float]:
    """A proportion and the ends of its 95 % Wilson interval; NaN if the total is 0.

    >>> [round(number, 3) for number in share(10, 10)]
    [1.0, 0.722, 1.0]
    """
    if not total:
        return np.nan, np.nan, np.nan
    low, high = wilson(right, total)
    return right / total, low, high


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


def decimals(size: float) -> int:
    """Digits after the decimal point that show numbers of a size with four digits.

    >>> decimals(1.4), decimals(2000.0), decimals(0.002)
    (3, 0, 6)
    """
    return int(np.clip(3 - np.floor(np.log10(size)), 0, 12)) if size > 0 else 3
