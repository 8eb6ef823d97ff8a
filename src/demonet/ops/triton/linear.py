"""Products grouped by degree, for rows of any width: a tile of rows times the matrix of its group, and back."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from demonet.ops import reference
from demonet.ops.schedule.gpu import TILE_ROWS, block_width, cut_groups
from demonet.ops.triton.blocks import kernel, on_device, precision
from demonet.ops.triton.gather import join_kernel


@kernel()
def _linear_kernel(
    x,
    weight,
    out,
    tiles,
    task,
    F,
    W,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BK: tl.constexpr,
    BW: tl.constexpr,
):
    tile = tiles + 3 * tl.program_id(0).to(tl.int64)
    first, last = tl.load(tile), tl.load(tile + 1)
    t = tl.load(task + tl.load(tile + 2)).to(tl.int64)
    w = tl.program_id(1) * BW + tl.arange(0, BW)
    for at in range(first, last, BM):
        row = at + tl.arange(0, BM)
        inside = row < last
        total = tl.zeros([BM, BW], tl.float32)
        if t >= 0:
            for start in range(0, F, BK):
                k = start + tl.arange(0, BK)
                left = tl.load(x + row[:, None] * F + k[None, :], mask=inside[:, None] & (k < F)[None, :], other=0)
                right = tl.load(
                    weight + t * F * W + k[:, None].to(tl.int64) * W + w[None, :],
                    mask=(k < F)[:, None] & (w < W)[None, :],
                    other=0,
                )
                total += tl.dot(left, right, input_precision=PRECISION)
        mask = inside[:, None] & (w < W)[None, :]
        tl.store(out + row[:, None] * W + w[None, :], total.to(out.dtype.element_ty), mask=mask)


@kernel()
def _outer_kernel(
    x,
    y,
    partial,
    spans,
    F,
    W,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BK: tl.constexpr,
    BW: tl.constexpr,
):
    span = tl.program_id(0).to(tl.int64)
    first, last = tl.load(spans + 3 * span), tl.load(spans + 3 * span + 1)
    k = tl.program_id(1) * BK + tl.arange(0, BK)
    w = tl.program_id(2) * BW + tl.arange(0, BW)
    total = tl.zeros([BK, BW], tl.float32)
    for start in range(first, last, BM):
        row = start + tl.arange(0, BM).to(tl.int64)
        inside = row < last
        left = tl.load(x + row[:, None] * F + k[None, :], mask=inside[:, None] & (k < F)[None, :], other=0)
        right = tl.load(y + row[:, None] * W + w[None, :], mask=inside[:, None] & (w < W)[None, :], other=0)
        total += tl.dot(tl.trans(left), right, input_precision=PRECISION)
    mask = (k < F)[:, None] & (w < W)[None, :]
    tl.store(partial + span * F * W + k[:, None].to(tl.int64) * W + w[None, :], total, mask=mask)


def degree_linear(x: Tensor, weight: Tensor, offsets: Tensor, task: Tensor) -> Tensor:
    """:func:`demonet.ops.reference.degree_linear`, a tile of rows of one group at a time."""
    x, weight = x.contiguous(), weight.contiguous()
    columns, width = weight.size(1), weight.size(2)
    if weight.numel() == 0 or x.size(0) == 0:
        return reference.degree_linear(x, weight, offsets, task)
    out = x.new_empty(x.size(0), width)
    tiles = cut_groups(offsets, x.size(0)).tiles
    wide = block_width(width, 128)
    with on_device(x):
        _linear_kernel[(tiles.size(0), triton.cdiv(width, wide))](
            x,
            weight,
            out,
            tiles,
            task,
            columns,
            width,
            PRECISION=precision(x.dtype),
            BM=TILE_ROWS,
            BK=block_width(columns, 64),
            BW=wide,
        )
    return out


def degree_outer(x: Tensor, y: Tensor, offsets: Tensor, task: Tensor, num_tasks: int) -> Tensor:
    """:func:`demonet.ops.reference.degree_outer`: spans of rows first, then their sums in a fixed order."""
    x, y = x.contiguous(), y.contiguous()
    columns, width = x.size(1), y.size(1)
    if x.numel() == 0 or y.numel() == 0 or num_tasks == 0:
        return x.new_zeros(num_tasks, columns, width)
    groups = cut_groups(offsets, x.size(0))
    spans, pieces = _by_task(groups.spans, task, num_tasks)
    cells = columns * width
    partial = torch.empty(spans.size(0), cells, dtype=torch.float32, device=x.device)
    out = x.new_empty(num_tasks, cells)
    high, wide = block_width(columns, 64), block_width(width, 64)
    with on_device(x):
        if partial.size(0):
            _outer_kernel[(partial.size(0), triton.cdiv(columns, high), triton.cdiv(width, wide))](
                x,
                y,
                partial,
                spans,
                columns,
                width,
                PRECISION=precision(x.dtype),
                BM=TILE_ROWS,
                BK=high,
                BW=wide,
            )
        join_kernel[(num_tasks, triton.cdiv(cells, 128))](
            partial, out, pieces, pieces, pieces, cells, AGGR=0, HAS_ROWS=False, BJ=16, BF=128
        )
    return out.view(num_tasks, columns, width)


def _by_task(spans: Tensor, task: Tensor, num_tasks: int) -> tuple[Tensor, Tensor]:
    """The spans in the order of their tasks, and where those of each task begin and end; task -1 comes before all."""
    ascending, order = torch.sort(task[spans[:, 2]], stable=True)
    return spans[order], torch.searchsorted(ascending, torch.arange(num_tasks + 1, device=task.device))
