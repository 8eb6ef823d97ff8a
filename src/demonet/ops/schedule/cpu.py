"""CPU schedules: how rows grouped by degree are cut into matrix products.

A call of a matrix product costs a few microseconds, however small the matrices are, and a graph of a thousand nodes
has a hundred degrees with a handful of nodes each. So the first rows of every group go into one padded batched product,
and larger groups are multiplied on their own (:class:`Blocks`). Of a large graph, a few thousand rows at a time go
through a layer while they are in the cache (:class:`Piece`).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from demonet.ops import backend

Lists = tuple[Tensor, Tensor]  # pointer and neighbours
HEIGHTS = (0, 2, 4, 8, 16, 32)  # rows to which groups may be padded for one batched product; 0 is no such product
CALL_COST, BATCH_COST = 40, 200  # cost of calling a product and a batched one, in padded rows
BUFFER_BYTES = 2**18  # the memory of results of at least this size is reused in the next epoch
SLACK = 1.5  # times the size of a result that its memory may have


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

    def cost(height: int) -> int:
        calls = CALL_COST * sum(size > height for size in sizes)
        return calls + (BATCH_COST + height * len(sizes) if height else 0)

    height = min(HEIGHTS, key=cost) if 0 not in sizes else 0  # a group without rows has none to repeat
    whole = [(g, start, end) for g, (start, end) in enumerate(bounds) if end > start]
    if height == 0:
        return _unbatched(whole, len(sizes))
    first = offsets[:-1, None] + torch.arange(height)
    filled = first < offsets[1:, None]
    gather = torch.minimum(first, offsets[1:, None] - 1).flatten()
    rest = [(g, start, end) for g, start, end in whole if end - start > height]
    inside = filled & (offsets.diff() <= height)[:, None]
    rows, place = first[inside] if rest else None, inside.flatten().nonzero()[:, 0]
    plain = _unbatched(whole, len(sizes))
    return plain._replace(height=height, gather=gather, filled=filled.view(-1, 1), rows=rows, place=place, rest=rest)


def _unbatched(whole: list[tuple[int, int, int]], num_groups: int) -> Blocks:
    """Every group with rows (group, first row, last row) on its own."""
    nothing = torch.empty(0, dtype=torch.long)
    sizes = [end - start for _, start, end in whole]
    return Blocks(0, nothing, nothing.bool(), None, nothing, whole, whole, sizes, num_groups)


class Piece(NamedTuple):
    """Consecutive rows.

    Attributes:
        rows: Their slice.
        lists: Pointer and neighbours of these rows.
        back: The same of the reversed edges.
        blocks: The groups that they belong to, and which of the rows here are each group's.
    """

    rows: slice
    lists: Lists
    back: Lists
    blocks: Blocks

    def of(self, x: Tensor) -> Tensor:
        """These rows of x; x itself where they are all, because a view costs as much as a product of a small graph."""
        return x if self.rows.stop - self.rows.start == x.size(0) else x[self.rows]


def cut_pieces(offsets: Tensor, lists: Lists, back: Lists, rows: int | None = None) -> list[Piece]:
    """Cut the rows into about equal pieces, whatever groups they belong to.

    Args:
        offsets: ``[groups + 1]`` where the rows of each group begin and end.
        lists: Pointer and neighbours of every row.
        back: The same, reversed; the very same tensors in an undirected graph.
        rows: How many rows a piece has at most; by default as the backend says.
    """
    pieces = []
    for place in _equal_slices(int(offsets[-1]), rows or backend.PIECE_ROWS):
        own = _cut_lists(*lists, place.start, place.stop)
        reverse = own if back[1] is lists[1] else _cut_lists(*back, place.start, place.stop)
        groups, starts = _groups_in(offsets, place)
        inside = zip(range(groups.start, groups.stop), pairwise(starts.tolist()), strict=True)
        blocks = _unbatched([(g, start, end) for g, (start, end) in inside if end > start], offsets.numel() - 1)
        pieces.append(Piece(place, own, reverse, blocks))
    return pieces


def _equal_slices(total: int, most: int) -> list[slice]:
    """About equal shares of all rows, of ``most`` rows at most."""
    step = -(-total // max(-(-total // most), 1)) or 1
    return [slice(start, min(start + step, total)) for start in range(0, total, step)]


def _groups_in(offsets: Tensor, rows: slice) -> tuple[slice, Tensor]:
    """The groups that have some of the rows, and where those of each begin and end, counted from the first row."""
    first, last = (int((offsets[1:] <= rows.start).sum()), int((offsets[:-1] < rows.stop).sum()))
    return slice(first, last), offsets[first : last + 1].clamp(rows.start, rows.stop) - rows.start


class Part(NamedTuple):
    """Consecutive rows of neighbour lists.

    Attributes:
        rows: Their slice.
        pointer, neighbours, weight: Their lists, counted from 0, and the factors in these.
        groups: The slice of groups that they belong to, if there are any.
        starts: ``[groups + 1]`` where the rows of each of them begin and end here.
        sizes: How many rows of each of them are here.
    """

    rows: slice
    pointer: Tensor
    neighbours: Tensor
    weight: Tensor | None
    groups: slice
    starts: Tensor
    sizes: list[int]

    def cut(self, x: Tensor, dim: int = 0) -> Sequence[Tensor]:
        """These rows of x, group by group."""
        return x.split_with_sizes(self.sizes, dim)


def cut_parts(
    pointer: Tensor, neighbours: Tensor, weight: Tensor | None, dtype: torch.dtype, offsets: Tensor | None = None
) -> list[Part]:
    """Cut lists as :func:`cut_rows` cuts rows of that type; indices of 32 bits are read in half the time."""
    parts, small = [], max(pointer.numel(), neighbours.numel()) < 2**31
    offsets = pointer.new_zeros(1) if offsets is None else offsets
    for rows in cut_rows(pointer.numel() - 1, dtype):
        own, others = _cut_lists(pointer, neighbours, rows.start, rows.stop)
        factors = None if weight is None else weight[int(pointer[rows.start]) : int(pointer[rows.stop])]
        lists = (own.int(), others.int()) if small else (own, others)
        groups, starts = _groups_in(offsets, rows)
        parts.append(Part(rows, *lists, factors, groups, starts.to(lists[0].dtype), starts.diff().tolist()))
    return parts


def cut_rows(rows: int, dtype: torch.dtype) -> list[slice]:
    """The pieces of a large graph, about equal; all rows of a small one, and of 16 bits, whose sums lose too much."""
    whole = rows < backend.PIECE_GRAPH_ROWS or dtype not in (torch.float32, torch.float64)
    return _equal_slices(rows, rows if whole else backend.PIECE_ROWS) if rows else [slice(0, 0)]


def _cut_lists(pointer: Tensor, neighbours: Tensor, start: int, end: int) -> Lists:
    """The lists of some rows, counted from 0."""
    own = pointer[start : end + 1]
    return own - own[0], neighbours[int(own[0]) : int(own[-1])]


class Buffers:
    """Memory for large results that is reused in the next epoch: storages, each used by one result at a time.

    The system clears fresh memory page by page at the first touch. For the derivative by ten million parameters that
    takes as long as the rest of an epoch. So memory is kept here, and handed out again once no tensor, view or NumPy
    array uses it. Batches have results of many sizes: one may get memory that is up to half as large again, and the
    memory of a larger one replaces free memory that is little smaller. So what is kept does not grow with their number.
    """

    def __init__(self) -> None:
        self._kept: list[torch.UntypedStorage] = []
        self._lock = threading.Lock()

    def empty(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """An uninitialised CPU tensor with the dtype of ``like``."""
        size = torch.Size(shape).numel() * like.element_size()
        if size < BUFFER_BYTES:
            return like.new_empty(shape)
        with self._lock:
            free = [storage for storage in self._kept if _references(storage) == 1]
            fitting = [storage for storage in free if size <= storage.nbytes() <= SLACK * size]
            chosen = min(fitting, key=torch.UntypedStorage.nbytes, default=None)
            if chosen is None:
                outgrown = next(
                    (storage for storage in free if storage.nbytes() < size <= SLACK * storage.nbytes()), None
                )
                chosen = torch.UntypedStorage(size)
                self._kept = [*(storage for storage in self._kept if storage is not outgrown), chosen]
            return like.new_empty(0).set_(chosen, 0, shape)  # type: ignore[call-overload]

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffers:
        return Buffers()

    def __reduce__(self) -> tuple[type[Buffers], tuple[()]]:
        return Buffers, ()


def _references(storage: torch.UntypedStorage) -> int:
    """Number of references to the memory, including the one here."""
    return int(torch._C._storage_Use_Count(storage._cdata))
