"""The derivatives of a convolution: sums over the rows of each group for its matrix, reversed lists for the input."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from demonet.degree.tiles import TILE, Spans, Tiles
from demonet.ops.triton.blocks import ACTIVATIONS, block, on_device, precision
from demonet.ops.triton.gather import AGGR, gather_sum, join_kernel, list_scale, sum_long


@triton.jit
def load_gradient(grad, out, row, inside, column, begin, WIDTH, OUT, ACTIVATION: tl.constexpr):
    """Rows of the gradient before the activation, from column ``begin`` on; the slopes follow from the output."""
    mask = inside[:, None] & (column < WIDTH)[None, :]
    at = row[:, None] * OUT + begin + column[None, :]
    g = tl.load(grad + at, mask=mask, other=0).to(tl.float32)
    if ACTIVATION == 1:
        y = tl.load(out + at, mask=mask, other=0).to(tl.float32)
        g = tl.where(y > 0, g, g * (y + 1.0))
    if ACTIVATION == 2:
        y = tl.load(out + at, mask=mask, other=0).to(tl.float32)
        g = tl.where(y > 0, g, 0.0)
    return g


@triton.jit
def _rows_kernel(
    grad,
    out,
    x,
    a,
    seed,
    matrices,
    by_x,
    by_a,
    partial_seed,
    partial_matrices,
    partial_bias,
    spans,
    pointer,
    F,
    S,
    W,
    OUT,
    ACTIVATION: tl.constexpr,
    ADD: tl.constexpr,
    BIAS: tl.constexpr,
    BY_X: tl.constexpr,
    BY_A: tl.constexpr,
    AGGR: tl.constexpr,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BF: tl.constexpr,
    BS: tl.constexpr,
    BW: tl.constexpr,
):
    span = tl.program_id(0).to(tl.int64)
    first, last, group = tl.load(spans + 3 * span), tl.load(spans + 3 * span + 1), tl.load(spans + 3 * span + 2)
    f, s, w = tl.arange(0, BF), tl.arange(0, BS), tl.arange(0, BW)
    split = 0 if ADD else S
    Wd = tl.load(
        matrices + group * F * W + f[:, None] * W + w[None, :], mask=(f < F)[:, None] & (w < W)[None, :], other=0
    )
    W0 = tl.load(seed + f[:, None] * S + s[None, :], mask=(f < F)[:, None] & (s < S)[None, :], other=0)
    d_seed = tl.zeros([BF, BS], tl.float32)
    d_matrix = tl.zeros([BF, BW], tl.float32)
    d_left = tl.zeros([BS], tl.float32)
    d_right = tl.zeros([BW], tl.float32)
    for start in range(first, last, BM):
        row = start + tl.arange(0, BM).to(tl.int64)
        inside = row < last
        whole = inside[:, None] & (f < F)[None, :]
        own = tl.load(x + row[:, None] * F + f[None, :], mask=whole, other=0)
        total = tl.load(a + row[:, None] * F + f[None, :], mask=whole, other=0)
        left = load_gradient(grad, out, row, inside, s, 0, S, OUT, ACTIVATION)
        right = load_gradient(grad, out, row, inside, w, split, W, OUT, ACTIVATION)
        if BIAS:
            d_left += tl.sum(left, 0)
            d_right += tl.sum(right, 0)
        left, right = left.to(own.dtype), right.to(own.dtype)
        d_seed += tl.dot(tl.trans(own), left, input_precision=PRECISION)
        d_matrix += tl.dot(tl.trans(total), right, input_precision=PRECISION)
        if BY_A:
            back = tl.dot(right, tl.trans(Wd), input_precision=PRECISION)
            if AGGR > 0:
                length = tl.load(pointer + row + 1, mask=inside, other=0) - tl.load(pointer + row, mask=inside, other=0)
                back *= list_scale(length, AGGR)[:, None]
            tl.store(by_a + row[:, None] * F + f[None, :], back.to(by_a.dtype.element_ty), mask=whole)
        if BY_X:
            back = tl.dot(left, tl.trans(W0), input_precision=PRECISION)
            tl.store(by_x + row[:, None] * F + f[None, :], back.to(by_x.dtype.element_ty), mask=whole)
    tl.store(
        partial_seed + span * F * S + f[:, None] * S + s[None, :], d_seed, mask=(f < F)[:, None] & (s < S)[None, :]
    )
    tl.store(
        partial_matrices + span * F * W + f[:, None] * W + w[None, :],
        d_matrix,
        mask=(f < F)[:, None] & (w < W)[None, :],
    )
    if BIAS:
        tl.store(partial_bias + span * OUT + s, d_left, mask=s < S)
        if not ADD:
            tl.store(partial_bias + span * OUT + S + w, d_right, mask=w < W)


def rows_backward(
    grad: Tensor,
    out: Tensor,
    x: Tensor,
    a: Tensor,
    seed: Tensor,
    matrices: Tensor,
    pointer: Tensor,
    spans: Spans,
    *,
    bias: bool,
    aggr: str,
    combine: str,
    activation: str,
    by_x: bool,
    by_a: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Derivatives by the rows ``x``, the sums ``a`` (before their scale), the seed map, the matrices, the bias.

    Those by ``x`` and ``a`` are empty where they are not asked for, that by the bias where there is none.
    """
    grad, x, a, seed, matrices = (t.contiguous() for t in (grad, x, a, seed, matrices))
    n, columns = x.shape
    S, W, count = seed.size(1), matrices.size(2), spans.rows.size(0)
    width = out.size(1)
    d_x = x.new_empty((n, columns) if by_x else (0, columns))
    d_a = x.new_empty((n, columns) if by_a else (0, columns))
    sums = {"dtype": torch.float32, "device": x.device}
    partial_seed = torch.empty(count, columns * S, **sums)
    partial_matrices = torch.empty(count, columns * W, **sums)
    partial_bias = torch.empty(count if bias else 0, width, **sums)
    by_matrices = torch.empty(matrices.size(0), columns * W, dtype=matrices.dtype, device=x.device)
    with on_device(x):
        if count:
            _rows_kernel[(count,)](
                grad,
                out,
                x,
                a,
                seed,
                matrices,
                d_x,
                d_a,
                partial_seed,
                partial_matrices,
                partial_bias,
                spans.rows,
                pointer,
                columns,
                S,
                W,
                width,
                ACTIVATION=ACTIVATIONS[activation],
                ADD=combine == "add",
                BIAS=bias,
                BY_X=by_x,
                BY_A=by_a,
                AGGR=AGGR[aggr],
                PRECISION=precision(x.dtype),
                BM=TILE,
                BF=block(columns, 256),
                BS=block(S, 128),
                BW=block(W, 128),
            )
        wide = block(columns * W, 128)
        join_kernel[(matrices.size(0), triton.cdiv(columns * W, wide))](
            partial_matrices,
            by_matrices,
            spans.pieces,
            spans.pieces,
            pointer,
            columns * W,
            AGGR=0,
            HAS_ROWS=False,
            BJ=16,
            BF=wide,
        )
    by_seed = partial_seed.sum(0).to(seed.dtype).view_as(seed)
    by_bias = partial_bias.sum(0).to(x.dtype)
    return d_x, d_a, by_seed, by_matrices.view_as(matrices), by_bias


@triton.jit
def _input_kernel(
    grad,
    out,
    z,
    hub_sums,
    seed,
    by_x,
    tiles,
    rows,
    pointer,
    neighbours,
    F,
    S,
    OUT,
    COMPACT: tl.constexpr,
    ACTIVATION: tl.constexpr,
    HAS_ROWS: tl.constexpr,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BF: tl.constexpr,
    BS: tl.constexpr,
):
    tile = tiles + 4 * tl.program_id(0).to(tl.int64)
    first = tl.load(tile)
    position = first + tl.arange(0, BM)
    inside = position < tl.load(tile + 1)
    third = tl.load(tile + 2)
    row = position
    if HAS_ROWS:
        row = tl.load(rows + position, mask=inside, other=0)
    f, s = tl.arange(0, BF), tl.arange(0, BS)
    whole = inside[:, None] & (f < F)[None, :]
    W0 = tl.load(seed + f[:, None] * S + s[None, :], mask=(f < F)[:, None] & (s < S)[None, :], other=0)
    left = load_gradient(grad, out, row, inside, s, 0, S, OUT, ACTIVATION).to(W0.dtype)
    if COMPACT:
        place = third + position - first
        total = tl.load(hub_sums + place[:, None] * F + f[None, :], mask=whole, other=0).to(tl.float32)
    else:
        total = gather_sum(z, z, pointer, neighbours, row, inside, f, F, third.to(tl.int32), False, BM, BF)
    total += tl.dot(left, tl.trans(W0), input_precision=PRECISION)
    tl.store(by_x + row[:, None] * F + f[None, :], total.to(by_x.dtype.element_ty), mask=whole)


def input_backward(
    grad: Tensor,
    out: Tensor,
    z: Tensor,
    seed: Tensor,
    activation: str,
    pointer: Tensor,
    neighbours: Tensor,
    tiles: Tiles,
) -> Tensor:
    """By the input: ``z``, the derivatives by the sums, summed along reversed lists, and the seeds' part."""
    grad, seed = grad.contiguous(), seed.contiguous()
    columns = z.size(1)
    by_x = torch.empty_like(z)
    same = {
        "ACTIVATION": ACTIVATIONS[activation],
        "HAS_ROWS": tiles.rows.numel() > 0,
        "PRECISION": precision(z.dtype),
        "BM": TILE,
        "BF": block(columns, 256),
        "BS": block(seed.size(1), 128),
    }
    with on_device(z):
        for table, compact in ((tiles.long, True), (tiles.short, False)):
            if table.size(0):
                hub_sums = sum_long(z, pointer, neighbours, None, "sum", tiles, None) if compact else z
                _input_kernel[(table.size(0),)](
                    grad,
                    out,
                    z,
                    hub_sums,
                    seed,
                    by_x,
                    table,
                    tiles.rows,
                    pointer,
                    neighbours,
                    columns,
                    seed.size(1),
                    grad.size(1),
                    COMPACT=compact,
                    **same,
                )
    return by_x
