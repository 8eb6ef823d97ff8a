"""Blocks: the rows of each degree as a CPU multiplies them, small degrees together and large ones on their own.

A call of a matrix product costs a few microseconds, however small the matrices are. Graphs of a thousand nodes have a
hundred degrees with a handful of nodes each: one call a degree would be nearly all the time that they take. So the
first few rows of every degree go into one batched product, padded to equal height, and only the larger degrees are
multiplied on their own, over what the batch made of their beginnings.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

HEIGHTS = (0, 2, 4, 8, 16, 32)
# Measured on one core with matrices of 64 by 32: what a call costs, and a batch before it begins, in padded rows.
CALL, BATCH = 40, 200


class Blocks(NamedTuple):
    """Groups of rows, their beginnings padded to equal height.

    Attributes:
        height: How many rows of each group are in the batch; 0 where there is none.
        gather: ``[groups * height]`` the row at each place of the batch; below a group's last row, that row again.
        filled: ``[groups * height, 1]`` whether the place is a row's own.
        rows: ``[k]`` the rows of the groups that are in the batch as a whole, or None where that is all rows.
        place: ``[k]`` where they stand in it.
        rest: Group, first row and last row (exclusive) of the groups that are not.
        whole: The same of all groups that have rows, as if there were no batch.
        num_groups: Number of groups.
    """

    height: int
    gather: Tensor
    filled: Tensor
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

    height = min(HEIGHTS, key=cost) if 0 not in sizes else 0  # a group without rows has none to repeat
    whole = [(g, start, end) for g, (start, end) in enumerate(bounds) if end > start]
    if height == 0:
        nothing = offsets[:0]
        return Blocks(0, nothing, nothing.bool(), None, nothing, whole, whole, len(sizes))
    first = offsets[:-1, None] + torch.arange(height)
    filled = first < offsets[1:, None]
    gather = torch.minimum(first, offsets[1:, None] - 1).flatten()
    rest = [(g, start, end) for g, start, end in whole if end - start > height]
    inside = filled & (offsets.diff() <= height)[:, None]
    rows, place = first[inside] if rest else None, inside.flatten().nonzero()[:, 0]
    return Blocks(height, gather, filled.view(-1, 1), rows, place, rest, whole, len(sizes))
