"""Tiers: the rows of each degree padded to a few equal heights, for small graphs on a CPU.

Where a whole network is one function, the order of the rows between its layers is nobody's concern. So neighbouring
degrees that have about as many rows stand in a tier, each padded to the height of the largest: a tier is multiplied in
one batched product as it stands in memory, nothing is gathered before or put back after. An empty place has no
neighbours and is nobody's neighbour, so whatever is added up along arcs or rows, it adds zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

# What a batched product costs before it begins, in padded rows; measured on one core with matrices of 64 by 32.
CALL = 60


class Tier(NamedTuple):
    """Groups ``first`` to ``last`` (exclusive), each ``height`` places high."""

    first: int
    last: int
    height: int


class Tiers(NamedTuple):
    """A graph whose rows stand apart.

    Attributes:
        cuts: The tiers, from the first group to the last.
        counts: How many groups each of them has.
        sizes: How many places.
        place: ``[n]`` where each row stands.
        source: ``[places]`` the row that stands there; below a group's last row, that row again.
        pointer, neighbours: The neighbour lists by places.
        back_pointer, back_neighbours: The reversed lists.
    """

    cuts: list[Tier]
    counts: list[int]
    sizes: list[int]
    place: Tensor
    source: Tensor
    pointer: Tensor
    neighbours: Tensor
    back_pointer: Tensor
    back_neighbours: Tensor

    def pad(self, x: Tensor) -> Tensor:
        """Rows at their places, zeros between them."""
        return x.new_zeros(self.source.numel(), x.size(1)).index_copy_(0, self.place, x)

    def blocks(self, x: Tensor) -> list[Tensor]:
        """Of rows at their places, those of every tier: ``[groups, height, columns]``."""
        parts = x.split_with_sizes(self.sizes)
        return [part.view(count, -1, x.size(1)) for part, count in zip(parts, self.counts, strict=True)]

    def groups(self, matrices: Tensor) -> Sequence[Tensor]:
        """Of a matrix for every group, those of every tier."""
        return matrices.split_with_sizes(self.counts)


def cut_tiers(offsets: Tensor, lists: tuple[Tensor, Tensor], back: tuple[Tensor, Tensor]) -> Tiers:
    """Cut groups of rows into tiers.

    Args:
        offsets: ``[groups + 1]`` where the rows of each group begin and end.
        lists: Pointer and neighbours of every row.
        back: The same, reversed; the very same tensors in an undirected graph.
    """
    sizes = offsets.diff()
    cuts = cheapest(sizes.tolist())
    height = torch.cat([torch.full((cut.last - cut.first,), cut.height) for cut in cuts] or [sizes])
    begin = height.cumsum(0) - height
    group = torch.repeat_interleave(sizes)
    place = begin[group] + torch.arange(group.numel()) - offsets[:-1][group]
    within = torch.arange(int(height.sum())) - torch.repeat_interleave(begin, height)
    source = torch.repeat_interleave(offsets[:-1], height) + within
    source = torch.minimum(source, torch.repeat_interleave(offsets[1:], height) - 1).clamp(min=0)
    forth = _spread(*lists, place, source.numel())
    reverse = forth if back[1] is lists[1] else _spread(*back, place, source.numel())
    counts = [cut.last - cut.first for cut in cuts]
    places = [count * cut.height for count, cut in zip(counts, cuts, strict=True)]
    return Tiers(cuts, counts, places, place, source, *forth, *reverse)


def cheapest(sizes: list[int]) -> list[Tier]:
    """The tiers of groups with so many rows each that cost least: :data:`CALL` a tier, and every place.

    >>> cheapest([90, 70, 3, 2, 1])
    [Tier(first=0, last=2, height=90), Tier(first=2, last=5, height=3)]
    """
    best: list[tuple[int, int, int]] = [(0, 0, 0)]  # of the first groups: cost, where the last tier begins, its height
    for last in range(1, len(sizes) + 1):
        found, height = (-1, 0, 0), 1  # a group without rows has a place as well
        for first in range(last - 1, -1, -1):
            height = max(height, sizes[first])
            cost = CALL + (last - first) * height
            if 0 <= found[0] <= cost:
                break  # it only grows from here
            if found[0] < 0 or best[first][0] + cost < found[0]:
                found = (best[first][0] + cost, first, height)
        best.append(found)
    bounds, last = [], len(sizes)
    while last:
        bounds.append(Tier(best[last][1], last, best[last][2]))
        last = best[last][1]
    return bounds[::-1]


def _spread(pointer: Tensor, neighbours: Tensor, place: Tensor, places: int) -> tuple[Tensor, Tensor]:
    """Lists of rows as lists of places; an empty place has none."""
    length = torch.zeros(places, dtype=torch.long).index_copy_(0, place, pointer.diff().long())
    spread = torch.nn.functional.pad(length.cumsum(0), (1, 0)).to(pointer.dtype)
    return spread, place[neighbours.long()].to(neighbours.dtype)
