"""Degree pooling: the rows of each cell (one task of one graph) summed in a fixed order, however many there are."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from demonet.ops.schedule.gpu import block_width
from demonet.ops.triton.blocks import kernel, on_device

ROWS = 1024  # that one program sums


@kernel()
def _pool_kernel(
    x,
    order,
    pointer,
    partial,
    F,
    PIECES: tl.constexpr,
    BJ: tl.constexpr,
    BF: tl.constexpr,
):
    cell, piece = tl.program_id(0).to(tl.int64), tl.program_id(1)
    begin, end = tl.load(pointer + cell), tl.load(pointer + cell + 1)
    length = (end - begin + PIECES - 1) // PIECES
    first = begin + piece * length
    last = tl.minimum(first + length, end)
    column = tl.program_id(2) * BF + tl.arange(0, BF)
    total = tl.zeros([BJ, BF], tl.float32)
    for at in range(first, last, BJ):
        place = at + tl.arange(0, BJ)
        row = tl.load(order + place, mask=place < last, other=0)
        mask = (place < last)[:, None] & (column < F)[None, :]
        total += tl.load(x + row[:, None] * F + column[None, :], mask=mask, other=0).to(tl.float32)
    tl.store(partial + (cell * PIECES + piece) * F + column, tl.sum(total, 0), mask=column < F)


def degree_pool(x: Tensor, cell: Tensor, num_cells: int, mode: str) -> Tensor:
    """:func:`demonet.ops.reference.degree_pool`; nothing is read back from the GPU, so it can be captured."""
    x = x.contiguous()
    n, columns = x.shape
    if num_cells == 0 or x.numel() == 0:
        return x.new_zeros(num_cells, columns)
    ascending, order = torch.sort(cell, stable=True)
    pointer = torch.searchsorted(ascending, torch.arange(num_cells + 1, device=x.device))
    pieces = max(1, min(1024, triton.next_power_of_2(triton.cdiv(n, num_cells * ROWS))))
    wide = block_width(columns, 128)
    partial = torch.empty(num_cells, pieces, columns, dtype=torch.float32, device=x.device)
    with on_device(x):
        _pool_kernel[(num_cells, pieces, triton.cdiv(columns, wide))](
            x, order, pointer, partial, columns, PIECES=pieces, BJ=16, BF=wide
        )
    out = partial.sum(1)
    if mode == "mean":
        out = out / pointer.diff().clamp(min=1)[:, None]
    return out.to(x.dtype)
