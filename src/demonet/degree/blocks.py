"""Blocks: the rows of each degree as a CPU multiplies them, small degrees together and large ones on their own.

A call of a matrix product costs a few microseconds, however small the matrices are. Graphs of a thousand nodes have a
hundred degrees with a handful of nodes each: one call a degree would be nearly all the time that they take. So the
first few rows of every degree go into one batched product, padded to equal height, and only what is left of the larger
degrees is multiplied degree by degree.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

HEIGHTS = (0, 2, 4, 8, 16, 32)
# Measured on one core with matrices of 64 by 32: what a call costs, and a batch before it begins, in padded rows.
CALL, BATCH = 200, 500


class Blocks(NamedTuple):
    """Groups of rows, their beginnings padded to equal height.

    Attributes:
        height: How many rows of each group are in the batch; 0 where there is none.
        rows: ``[k]`` the rows in the batch, or None where all rows are, in their order.
        place: ``[k]`` where they stand in it: row ``i`` of group ``g`` at ``g * height + i``.
        rest: Group, first row and last row (exclusive) of what is left.
        whole: The same of all groups that have rows, as if there were no batch.
        num_groups: Number of groups.
    """

    height: int
    rows: Tensor | None
    place: Tensor
    rest: list[tuple[int, int, int]]
    whole: list[tuple[int, int, int]]
    num_groups: int


def cut_blocks(offsets: Tensor) -> Blocks:
    """Cut groups of rows into a batch and a rest, by what costs least.

    Args:
        offsets: ``[groups + 1]`` where the rows of each group begin and end, in main memory.
    """
    bounds = list(pairwise(offsets.tolist()))
    sizes = [end - start for start, end in bounds]

    def cost(height: int) -> int:
        return CALL * sum(size > height for size in sizes) + (BATCH + height * len(sizes) if height else 0)

    height = min(HEIGHTS, key=cost)
    whole = [(g, start, end) for g, (start, end) in enumerate(bounds) if end > start]
    if height == 0:
        return Blocks(0, None, offsets[:0], whole, whole, len(sizes))
    rest = [(g, start + height, end) for g, start, end in whole if end - start > height]
    first = offsets[:-1, None] + torch.arange(height)
    inside = first < offsets[1:, None]
    rows = first[inside]
    place = inside.flatten().nonzero()[:, 0]
    return Blocks(height, rows if rest else None, place, rest, whole, len(sizes))
