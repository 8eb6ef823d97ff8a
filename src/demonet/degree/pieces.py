"""Pieces: a few thousand rows at a time with lists of their own, for large graphs on a CPU.

What is done with a piece from its sums to its derivatives is done while the piece is in the cores' caches; and results
of its size are small enough for memory that was there before, where those of the whole graph are handed out page by
page and cleared.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

ROWS = 16384  # a few arrays of so many rows and of usual width are in a shared cache together

Lists = tuple[Tensor, Tensor]


class Piece(NamedTuple):
    """Some rows, one after the other.

    Attributes:
        rows: Which.
        lists: Pointer and neighbours of these rows.
        back: The same of the reversed arcs.
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
        rows: How many rows a piece has at most, :data:`ROWS` if not given.
    """
    bounds = offsets.tolist()
    most, total = rows or ROWS, bounds[-1]
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
        own = _cut(*lists, start, end)
        pieces.append(Piece(slice(start, end), own, own if back[1] is lists[1] else _cut(*back, start, end), inside))
    return pieces


def _cut(pointer: Tensor, neighbours: Tensor, start: int, end: int) -> Lists:
    """The lists of some rows, counted from their own beginning."""
    own = pointer[start : end + 1]
    return own - own[0], neighbours[int(own[0]) : int(own[-1])]
