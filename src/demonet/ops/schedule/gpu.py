"""Triton schedules: neighbour lists and groups of rows cut into equal work.

Rows whose lists have one length (and that share a group) are cut into tiles of a few rows. Long lists, those of hubs,
are cut into chunks of edges that are summed separately, then joined in a fixed order: the same bits every time, and no
tile waits for a hub.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

TILE_ROWS = 64  # rows of a block, a power of two of at least 16
SHORT_LIST = 32  # longest neighbour list that is summed inside its tile
CHUNK_EDGES = 256  # edges of a longer list that are summed at a time
WHOLE_LIST = 1024  # where no list is longer, long ones are not cut: a kernel less takes less time than a program longer
# Most columns of the input and of each half of the output in a fused convolution, and most bytes of its matrices in one
# program: float32 counts twice, because its products keep copies.
WIDEST_INPUT, WIDEST_HALF, MATRIX_BYTES = 256, 128, 2**17
MOST_CLASSES = 128  # of the fused head and loss


class Tiles(NamedTuple):
    """Neighbour lists in tiles and chunks; positions count rows in the order of ``rows``.

    Attributes:
        rows: ``[n]`` the row at each position, or empty where they are the same.
        short: ``[tiles, 4]`` first and last position (exclusive), list length, group.
        long: ``[tiles, 4]`` first and last position, number of its first row among the long ones, group.
        hubs: ``[long rows]`` the rows whose lists are long, in the order in which they are numbered.
        chunks: ``[chunks, 2]`` first and last edge (exclusive) of each piece of a long list.
        pieces: ``[long rows + 1]`` where the pieces of each long row begin and end.
    """

    rows: Tensor
    short: Tensor
    long: Tensor
    hubs: Tensor
    chunks: Tensor
    pieces: Tensor


class Groups(NamedTuple):
    """Groups of rows cut into pieces; every row of a table is first and last row (exclusive) and group.

    The tables are as long as they could be for so many rows and groups, whatever the groups' sizes: the pieces at their
    ends are empty, and nothing has to be read back from a GPU to build them.

    Attributes:
        tiles: ``[tiles, 3]`` pieces of some rows, for products.
        spans: ``[spans, 3]`` longer pieces, for sums over all rows of a group.
        pieces: ``[groups + 1]`` where the spans of each group begin and end.
    """

    tiles: Tensor
    spans: Tensor
    pieces: Tensor


def block_width(width: int, largest: int) -> int:
    """The power of two that covers a width, between 16 (the least that GPU matrix units take) and ``largest``."""
    return min(largest, max(16, 1 << max(width - 1, 0).bit_length()))


def fits_conv(seed: Tensor, matrices: Tensor) -> bool:
    """Whether a convolution fits into one Triton program."""
    columns, widths = seed.size(0), (seed.size(1), matrices.size(2))
    if columns > WIDEST_INPUT or max(widths) > WIDEST_HALF:
        return False
    held = block_width(columns, WIDEST_INPUT) * sum(block_width(width, WIDEST_HALF) for width in widths)
    return held * seed.element_size() * (2 if seed.dtype == torch.float32 else 1) <= MATRIX_BYTES


def fits_head(weight: Tensor) -> bool:
    """Whether a linear head fits into one Triton program."""
    return weight.size(1) <= WIDEST_INPUT and weight.size(0) <= MOST_CLASSES


def cut_lists(pointer: Tensor, offsets: Tensor | None = None) -> Tiles:
    """Cut lists into tiles and chunks.

    Args:
        pointer: ``[n + 1]`` where each list begins and ends.
        offsets: ``[groups + 1]`` rows of each group; one group if not given.
    """
    pointer = pointer.long()
    length = pointer.diff()
    n, device = length.numel(), pointer.device
    group = torch.zeros_like(length)
    if offsets is not None:
        group = torch.repeat_interleave(offsets.diff(), output_size=n)
    rows = torch.empty(0, dtype=torch.long, device=device)
    if n > 1 and bool(((length.diff() < 0) & (group.diff() == 0)).any()):
        rows = torch.argsort(length, stable=True)
        rows = rows[torch.argsort(group[rows], stable=True)]
        length, group = length[rows], group[rows]
    start = _run_starts(length, group)
    tiles = _cut(start, n, tile_rows(n))
    first = tiles[:, 0]
    if n == 0:
        empty = torch.empty(0, 4, dtype=torch.long, device=device)
        return Tiles(rows, empty, empty, rows, empty[:, :2], torch.zeros(1, dtype=torch.long, device=device))
    over = length > SHORT_LIST
    is_long = over[first]
    long_before = torch.cumsum(over, 0) - over.long()
    third = torch.where(is_long, long_before[first], length[first])
    table = torch.cat([tiles, third[:, None], group[first][:, None]], 1)
    hubs = over.nonzero()[:, 0]
    length = length[hubs]
    hubs = rows[hubs] if rows.numel() else hubs
    size = CHUNK_EDGES if hubs.numel() and int(length.max()) > WHOLE_LIST else WHOLE_LIST
    count = (length + size - 1) // size
    pieces = torch.nn.functional.pad(count.cumsum(0), (1, 0))
    hub = torch.repeat_interleave(count)
    begin = pointer[hubs]
    inside = torch.arange(hub.numel(), device=device) - pieces[hub]
    at = begin[hub] + inside * size
    chunks = torch.stack([at, torch.minimum(at + size, (begin + length)[hub])], 1)
    # Longest first: the last tiles to start are the shortest.
    return Tiles(rows, table[~is_long].flip(0).contiguous(), table[is_long].contiguous(), hubs, chunks, pieces)


def cut_groups(offsets: Tensor, num_rows: int) -> Groups:
    """Cut groups of rows into tiles and spans.

    Args:
        offsets: ``[groups + 1]`` where the rows of each group begin and end.
        num_rows: Number of rows.
    """
    tiles, _ = _cut_groups(offsets, num_rows, tile_rows(num_rows))
    spans, pieces = _cut_groups(offsets, num_rows, span_rows(num_rows))
    return Groups(tiles, spans, pieces)


def tile_rows(num_rows: int) -> int:
    """Rows of a tile: some blocks, for which matrices are read once, if enough tiles are left to keep a GPU busy."""
    return TILE_ROWS * min(8, max(1, num_rows // (TILE_ROWS * 2048)))


def span_rows(num_rows: int) -> int:
    """Rows of a span: enough spans to keep a GPU busy, few enough for their partial sums to be cheap."""
    return min(1024, TILE_ROWS * max(1, num_rows // (TILE_ROWS * 1024)))


def _cut_groups(offsets: Tensor, num_rows: int, size: int) -> tuple[Tensor, Tensor]:
    count = (offsets.diff() + size - 1) // size
    before = torch.nn.functional.pad(count.cumsum(0), (1, 0))
    piece = torch.arange(num_rows // size + count.numel(), device=offsets.device)
    group = torch.searchsorted(before[1:].contiguous(), piece, right=True).clamp(max=max(0, count.numel() - 1))
    first = offsets[group] + (piece - before[group]) * size
    last = torch.minimum(first + size, offsets[group + 1])
    return torch.stack([torch.minimum(first, last), last, group], 1), before


def _run_starts(*values: Tensor) -> Tensor:
    """Where runs of equal values begin."""
    n = values[0].numel()
    changes = torch.ones(n, dtype=torch.bool, device=values[0].device)
    if n > 1:
        changes[1:] = torch.stack([value.diff() != 0 for value in values]).any(0)
    return changes.nonzero()[:, 0]


def _cut(start: Tensor, n: int, size: int) -> Tensor:
    """``[pieces, 2]``: runs that begin at ``start`` (the last ends at ``n``), cut into pieces of at most ``size``."""
    end = torch.cat([start[1:], start.new_tensor([n])]) if start.numel() else start
    count = (end - start + size - 1) // size
    run = torch.repeat_interleave(count)
    before = torch.nn.functional.pad(count.cumsum(0), (1, 0))[run]
    first = start[run] + (torch.arange(run.numel(), device=start.device) - before) * size
    return torch.stack([first, torch.minimum(first + size, end[run])], 1)
