"""CPU schedules: how rows grouped by degree are cut into matrix products.

A call of a matrix product costs a few microseconds, however small the matrices are, and a graph of a thousand nodes
has a hundred degrees with a handful of nodes each. Three schedules deal with that:

- :class:`Blocks`: the first rows of every group go into one padded batched product; larger groups are multiplied on
  their own.
- :class:`Tiers`: for a whole network as one function on a small graph. Rows are stored padded, so that groups of
  similar size are one batched product without any gathering.
- :class:`Piece`: for a convolution of a large graph. A few thousand rows at a time go through a layer while they are in
  the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from demonet.ops import backend

Lists = tuple[Tensor, Tensor]  # pointer and neighbours


class Blocks(NamedTuple):
    """Groups of rows whose first rows are padded to equal height.

    Attributes:
        height: How many rows of each group are in the batch; 0 where there is none.
        gather: ``[groups * height]`` the row at each place of the batch; below a group's last row, that row again.
        filled: ``[groups * height, 1]`` whether the place holds a row for the first time.
        rows: ``[k]`` the rows of the groups that are in the batch as a whole, or None where that is all rows.
        place: ``[k]`` their places in it.
        rest: Group, first row and last row (exclusive) of the groups that are not.
        whole: The same of all groups that have rows, as if there were no batch.
        sizes: Their numbers of rows.
        num_groups: Number of groups.
    """

    height: int
    gather: Tensor
    filled: Tensor
    rows: Tensor | None
    place: Tensor
    rest: list[tuple[int, int, int]]
    whole: list[tuple[int, int, int]]
    sizes: list[int]
    num_groups: int


def cut_blocks(offsets: Tensor) -> Blocks:
    """Cut groups of rows into a batch and a rest, at the least cost.

    Args:
        offsets: ``[groups + 1]`` where the rows of each group begin and end.
    """
    bounds = list(pairwise(offsets.tolist()))
    sizes = [end - start for start, end in bounds]

    limits = backend.current()

    def cost(height: int) -> int:
        calls = limits.block_call_cost * sum(size > height for size in sizes)
        return calls + (limits.block_batch_cost + height * len(sizes) if height else 0)

    height = min(limits.block_heights, key=cost) if 0 not in sizes else 0  # a group without rows has none to repeat
    whole = [(g, start, end) for g, (start, end) in enumerate(bounds) if end > start]
    of_whole = [end - start for _, start, end in whole]
    if height == 0:
        nothing = offsets.new_empty(0)  # not a view, which would keep the offsets alive
        return Blocks(0, nothing, nothing.bool(), None, nothing, whole, whole, of_whole, len(sizes))
    first = offsets[:-1, None] + torch.arange(height)
    filled = first < offsets[1:, None]
    gather = torch.minimum(first, offsets[1:, None] - 1).flatten()
    rest = [(g, start, end) for g, start, end in whole if end - start > height]
    inside = filled & (offsets.diff() <= height)[:, None]
    rows, place = first[inside] if rest else None, inside.flatten().nonzero()[:, 0]
    return Blocks(height, gather, filled.view(-1, 1), rows, place, rest, whole, of_whole, len(sizes))


class Tier(NamedTuple):
    """Groups ``first`` to ``last`` (exclusive), each ``height`` places high."""

    first: int
    last: int
    height: int


class Tiers(NamedTuple):
    """A graph whose rows are padded, so that every group of a tier is equally high.

    An empty place has no neighbours and is no neighbour, so it adds zero to every sum over edges or rows.

    Attributes:
        cuts: The tiers, from the first group to the last.
        counts: Number of groups of each.
        sizes: Number of places of each.
        place: ``[n]`` the place of each row.
        source: ``[places]`` the row at each place; below a group's last row, that row again.
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
        """Rows at their places, zeros elsewhere."""
        return x.new_zeros(self.source.numel(), x.size(1)).index_copy_(0, self.place, x)

    def blocks(self, x: Tensor) -> list[Tensor]:
        """Padded rows, tier by tier: ``[groups, height, columns]``."""
        parts = x.split_with_sizes(self.sizes)
        return [part.view(count, -1, x.size(1)) for part, count in zip(parts, self.counts, strict=True)]

    def groups(self, matrices: Tensor) -> Sequence[Tensor]:
        """Matrices of all groups, tier by tier."""
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
    """The cheapest tiers of groups with so many rows each: every tier costs one call, and every place one row.

    >>> cheapest([90, 70, 3, 2, 1])
    [Tier(first=0, last=2, height=90), Tier(first=2, last=5, height=3)]
    """
    call = backend.current().tier_call_cost
    best: list[tuple[int, int, int]] = [(0, 0, 0)]  # of the first groups: cost, first group and height of the last tier
    for last in range(1, len(sizes) + 1):
        found, height = (-1, 0, 0), 1  # a group without rows has a place as well
        for first in range(last - 1, -1, -1):
            height = max(height, sizes[first])
            cost = call + (last - first) * height
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


class Piece(NamedTuple):
    """Consecutive rows.

    Attributes:
        rows: Their slice.
        lists: Pointer and neighbours of these rows.
        back: The same of the reversed edges.
        groups: Each group that they belong to, and which of the rows here are the group's.
    """

    rows: slice
    lists: Lists
    back: Lists
    groups: list[tuple[int, slice]]


def cut_pieces(offsets: Tensor, lists: Lists, back: Lists, rows: int | None = None) -> list[Piece]:
    """Cut the rows into about equal pieces, whatever groups they belong to.

    Args:
        offsets: ``[groups + 1]`` where the rows of each group begin and end.
        lists: Pointer and neighbours of every row.
        back: The same, reversed; the very same tensors in an undirected graph.
        rows: How many rows a piece has at most; by default as the backend says.
    """
    bounds = offsets.tolist()
    most, total = rows or backend.current().piece_rows, bounds[-1]
    step = -(-total // max(-(-total // most), 1)) or 1
    pieces, group = [], 0
    for start in range(0, total, step):
        end = min(start + step, total)
        while bounds[group + 1] <= start:
            group += 1
        inside, g = [], group
        while g + 1 < len(bounds) and bounds[g] < end:
            part = slice(max(bounds[g], start) - start, min(bounds[g + 1], end) - start)
            if part.stop > part.start:
                inside.append((g, part))
            g += 1
        own = _cut_lists(*lists, start, end)
        pieces.append(
            Piece(slice(start, end), own, own if back[1] is lists[1] else _cut_lists(*back, start, end), inside)
        )
    return pieces


def _cut_lists(pointer: Tensor, neighbours: Tensor, start: int, end: int) -> Lists:
    """The lists of some rows, counted from 0."""
    own = pointer[start : end + 1]
    return own - own[0], neighbours[int(own[0]) : int(own[-1])]
