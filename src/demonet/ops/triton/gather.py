"""Sums over neighbour lists: short lists inside a tile of rows, long lists chunk by chunk."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from demonet.ops import reference
from demonet.ops.schedule.gpu import Tiles, block_width, cut_lists
from demonet.ops.triton.blocks import kernel, on_device
from demonet.ops.triton.ends import NOTHING, End, scaled

WIDEST_END = 64  # columns of a tile that goes on after its sums
BLOCK_ROWS = 16  # rows that are summed at a time: with 64, a sum takes twice as long, as fewer programs have registers
AGGR = {"sum": 0, "mean": 1, "sqrt": 2}


@triton.jit
def list_scale(length, AGGR: tl.constexpr):
    """What a sum over so many neighbours is multiplied by: nothing, 1/d or 1/sqrt(d)."""
    d = tl.maximum(length, 1).to(tl.float32)
    if AGGR == 1:
        return 1.0 / d
    if AGGR == 2:
        return 1.0 / tl.sqrt(d)
    return d * 0.0 + 1.0


@triton.jit
def rows_at(rows, start, last, HAS_ROWS: tl.constexpr, BM: tl.constexpr):
    """A block of a tile: its positions, which of them are inside the tile, and the rows there."""
    position = start + tl.arange(0, BM)
    inside = position < last
    row = position
    if HAS_ROWS:
        row = tl.load(rows + position, mask=inside, other=0)
    return position, inside, row


@triton.jit
def gather_sum(
    x,
    weight,
    pointer,
    neighbours,
    row,
    inside,
    column,
    F,
    length,
    HAS_WEIGHT: tl.constexpr,
    BM: tl.constexpr,
    BF: tl.constexpr,
):
    """``[BM, BF]`` float32: the sum of ``length`` neighbours of every row of a tile."""
    begin = tl.load(pointer + row, mask=inside, other=0).to(tl.int64)
    mask = inside[:, None] & (column < F)[None, :]
    total = tl.zeros([BM, BF], tl.float32)
    for j in tl.range(0, length, loop_unroll_factor=4):  # rows of four neighbours are on their way at once
        u = tl.load(neighbours + begin + j, mask=inside, other=0).to(tl.int64)
        message = tl.load(x + u[:, None] * F + column[None, :], mask=mask, other=0).to(tl.float32)
        if HAS_WEIGHT:
            message *= tl.load(weight + begin + j, mask=inside, other=0).to(tl.float32)[:, None]
        total += message
    return total


@triton.jit
def chunk_sum(
    x, weight, neighbours, begin, end, column, F, HAS_WEIGHT: tl.constexpr, BJ: tl.constexpr, BF: tl.constexpr
):
    """``[BF]`` float32: the sum over a piece of a long list."""
    total = tl.zeros([BJ, BF], tl.float32)
    for at in range(begin, end, BJ):
        arc = at + tl.arange(0, BJ)
        u = tl.load(neighbours + arc, mask=arc < end, other=0).to(tl.int64)
        mask = (arc < end)[:, None] & (column < F)[None, :]
        message = tl.load(x + u[:, None] * F + column[None, :], mask=mask, other=0).to(tl.float32)
        if HAS_WEIGHT:
            message *= tl.load(weight + arc, mask=arc < end, other=0).to(tl.float32)[:, None]
        total += message
    return tl.sum(total, 0)


@kernel(do_not_specialize=["hubs_first"])
def _sum_kernel(
    x,
    weight,
    scale,
    out,
    chunks,
    hubs,
    tiles,
    rows,
    pointer,
    neighbours,
    F,
    hubs_first,
    y,
    basis,
    gamma,
    beta,
    bias,
    own,
    key,
    place,
    LEFT,
    HAS_HUBS: tl.constexpr,
    AGGR: tl.constexpr,
    HAS_WEIGHT: tl.constexpr,
    HAS_SCALE: tl.constexpr,
    HAS_ROWS: tl.constexpr,
    HAS_Y: tl.constexpr,
    SPLINES: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_OWN: tl.constexpr,
    KEPT: tl.constexpr,
    HAS_PLACE: tl.constexpr,
    ACTIVATION: tl.constexpr,
    BM: tl.constexpr,
    BJ: tl.constexpr,
    BF: tl.constexpr,
):
    """The first programs sum a long list each, the others a tile of short ones; then what follows, if SPLINES."""
    program = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BF + tl.arange(0, BF)
    tile = tiles + 4 * (program - hubs_first)
    is_hub = False
    if HAS_HUBS:  # a constant: without hubs, their branch takes no registers
        is_hub = program < hubs_first
    first, last = program, program + 1
    length = 0
    if not is_hub:
        first, last = tl.load(tile), tl.load(tile + 1)
        length = tl.load(tile + 2).to(tl.int32)
    for start in range(first, last, BM):
        _, inside, row = rows_at(rows, start, last, HAS_ROWS, BM)
        if is_hub:
            inside = tl.arange(0, BM) == 0
            row = tl.load(hubs + program) + tl.zeros([BM], tl.int64)
            begin, end = tl.load(chunks + 2 * program), tl.load(chunks + 2 * program + 1)
            whole = chunk_sum(x, weight, neighbours, begin, end, column, F, HAS_WEIGHT, BJ, BF)
            total = (whole * list_scale(end - begin, AGGR))[None, :] + tl.zeros([BM, BF], tl.float32)
        else:
            total = gather_sum(x, weight, pointer, neighbours, row, inside, column, F, length, HAS_WEIGHT, BM, BF)
            total *= list_scale(length, AGGR)
        mask = inside[:, None] & (column < F)[None, :]
        at = row[:, None] * F + column[None, :]
        if HAS_SCALE:
            total *= tl.load(scale + row, mask=inside, other=0).to(tl.float32)[:, None]
        if HAS_Y:
            tl.store(y + at, total.to(y.dtype.element_ty), mask=mask)
        if SPLINES > 0:
            total = scaled(
                total,
                row,
                inside,
                column,
                F,
                basis,
                gamma,
                beta,
                bias,
                own,
                key,
                place,
                LEFT,
                SPLINES,
                HAS_BIAS,
                HAS_OWN,
                KEPT,
                HAS_PLACE,
                ACTIVATION,
            )
        tl.store(out + at, total.to(out.dtype.element_ty), mask=mask)


@kernel()
def _chunk_kernel(
    x, weight, partial, chunks, neighbours, F, HAS_WEIGHT: tl.constexpr, BJ: tl.constexpr, BF: tl.constexpr
):
    c = tl.program_id(0).to(tl.int64)
    begin, end = tl.load(chunks + 2 * c), tl.load(chunks + 2 * c + 1)
    column = tl.program_id(1) * BF + tl.arange(0, BF)
    total = chunk_sum(x, weight, neighbours, begin, end, column, F, HAS_WEIGHT, BJ, BF)
    tl.store(partial + c * F + column, total, mask=column < F)


@kernel()
def join_kernel(
    partial,
    out,
    pieces,
    rows,
    pointer,
    F,
    AGGR: tl.constexpr,
    HAS_ROWS: tl.constexpr,
    BJ: tl.constexpr,
    BF: tl.constexpr,
):
    """``out[i] = sum(partial[pieces[i]:pieces[i + 1]])`` in the order of the pieces, scaled by the list of row i."""
    i = tl.program_id(0).to(tl.int64)
    begin, end = tl.load(pieces + i), tl.load(pieces + i + 1)
    column = tl.program_id(1) * BF + tl.arange(0, BF)
    total = tl.zeros([BJ, BF], tl.float32)
    for at in range(begin, end, BJ):
        piece = at + tl.arange(0, BJ)
        mask = (piece < end)[:, None] & (column < F)[None, :]
        total += tl.load(partial + piece[:, None] * F + column[None, :], mask=mask, other=0)
    joined = tl.sum(total, 0)
    if AGGR > 0:
        row = tl.load(rows + i)
        joined *= list_scale(tl.load(pointer + row + 1) - tl.load(pointer + row), AGGR)
    target = i
    if HAS_ROWS:
        target = tl.load(rows + i)
    tl.store(out + target * F + column, joined.to(out.dtype.element_ty), mask=column < F)


def sum_long(
    x: Tensor, pointer: Tensor, neighbours: Tensor, weight: Tensor | None, aggr: str, tiles: Tiles, out: Tensor | None
) -> Tensor:
    """The sums of the long lists: ``[long rows, F]``, or written into their rows of ``out``."""
    columns, hubs = x.size(1), tiles.hubs.numel()
    wide = block_width(columns, 128)
    across = triton.cdiv(columns, wide)
    partial = torch.empty(tiles.chunks.size(0), columns, dtype=torch.float32, device=x.device)
    into = x.new_empty(hubs, columns) if out is None else out
    with on_device(x):
        _chunk_kernel[(tiles.chunks.size(0), across)](
            x, weight, partial, tiles.chunks, neighbours, columns, HAS_WEIGHT=weight is not None, BJ=16, BF=wide
        )
        join_kernel[(hubs, across)](
            partial,
            into,
            tiles.pieces,
            tiles.hubs,
            pointer,
            columns,
            AGGR=AGGR[aggr],
            HAS_ROWS=out is not None,
            BJ=16,
            BF=wide,
        )
    return into


def aggregate(
    x: Tensor,
    pointer: Tensor,
    neighbours: Tensor,
    weight: Tensor | None,
    aggr: str,
    tiles: Tiles | None = None,
    scale: Tensor | None = None,
    end: End | None = None,
) -> Tensor:
    """:func:`demonet.ops.reference.aggregate`; without tiles, the lists are cut for this call.

    Args:
        x, pointer, neighbours, weight, aggr: As there.
        tiles: The lists as they were cut.
        scale: ``[n, 1]`` what the sums are multiplied by, or None.
        end: What follows the sums, where :func:`sums_at_once`, or None.
    """
    columns, end = x.size(1), end or NOTHING
    if neighbours.numel() == 0 or columns == 0:
        out = reference.aggregate(x, pointer, neighbours, weight, aggr)
        return out if scale is None else out * scale.to(out.dtype)
    x, tiles = x.contiguous(), tiles or cut_lists(pointer)
    out = x.new_empty(pointer.numel() - 1, columns)
    wide, together = block_width(columns, 128 if end is NOTHING else WIDEST_END), sums_at_once(tiles)
    hubs = tiles.hubs.numel() if together else 0
    programs = hubs + tiles.short.size(0)
    if programs:
        with on_device(x):
            _sum_kernel[(programs, triton.cdiv(columns, wide))](
                *(x, weight, scale, out, tiles.chunks, tiles.hubs, tiles.short, tiles.rows, pointer, neighbours),
                *(columns, hubs, *end.tensors, end.left),
                HAS_HUBS=hubs > 0,
                AGGR=AGGR[aggr],
                HAS_WEIGHT=weight is not None,
                HAS_SCALE=scale is not None,
                HAS_ROWS=tiles.rows.numel() > 0,
                **end.constants,
                BM=BLOCK_ROWS,
                BJ=16,
                BF=wide,
            )
    if not together:
        sum_long(x, pointer, neighbours, weight, aggr, tiles, out)
        if scale is not None:
            out[tiles.hubs] *= scale[tiles.hubs].to(out.dtype)
    return out


def sums_at_once(tiles: Tiles) -> bool:
    """Whether no list is so long that it was cut, so that one kernel makes all sums."""
    return tiles.chunks.size(0) == tiles.hubs.size(0)
