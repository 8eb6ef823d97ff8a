"""Rows in another order: PyTorch's ``index_select`` takes four times as long for rows of some hundred bytes."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from demonet.ops.schedule.gpu import block_width
from demonet.ops.triton.blocks import kernel, on_device


@kernel()
def _rows_kernel(x, index, out, n, F, BM: tl.constexpr, BF: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BF + tl.arange(0, BF)
    row = tl.load(index + place, mask=place < n, other=0).to(tl.int64)
    mask = (place < n)[:, None] & (column < F)[None, :]
    rows = tl.load(x + row[:, None] * F + column[None, :], mask=mask, other=0)
    tl.store(out + place[:, None] * F + column[None, :], rows, mask=mask)


def select_rows(x: Tensor, index: Tensor) -> Tensor:
    """``x[index]`` of a matrix."""
    x = x.contiguous()
    n, columns = index.numel(), x.size(1)
    out, wide = x.new_empty(n, columns), block_width(columns, 128)
    if out.numel():
        with on_device(x):
            _rows_kernel[(triton.cdiv(n, 32), triton.cdiv(columns, wide))](x, index, out, n, columns, BM=32, BF=wide)
    return out
