"""The end of a convolution whose degrees scale its columns, fused (:mod:`demonet.ops.scale`)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from demonet.ops.scale import Splines
from demonet.ops.schedule.gpu import TILE_ROWS, block_width, span_rows
from demonet.ops.triton.blocks import ACTIVATIONS, on_device
from demonet.ops.triton.by_weights import times_slope
from demonet.ops.triton.conv import activate

WIDEST = 64  # columns of a tile


@triton.jit
def _forward_kernel(
    y,
    basis,
    gamma,
    beta,
    bias,
    own,
    out,
    n,
    F,
    HAS_BIAS: tl.constexpr,
    HAS_OWN: tl.constexpr,
    ACTIVATION: tl.constexpr,
    SPLINES: tl.constexpr,
    BM: tl.constexpr,
    BF: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    f = tl.program_id(1) * BF + tl.arange(0, BF)
    inside = row < n
    mask = inside[:, None] & (f < F)[None, :]
    at = row[:, None] * F + f[None, :]
    rows = tl.load(y + at, mask=mask, other=0).to(tl.float32)
    total = rows
    for k in tl.static_range(SPLINES):
        b = tl.load(basis + row * SPLINES + k, mask=inside, other=0).to(tl.float32)
        scale = tl.load(gamma + k * F + f, mask=f < F, other=0).to(tl.float32)
        shift = tl.load(beta + k * F + f, mask=f < F, other=0).to(tl.float32)
        total += b[:, None] * (scale[None, :] * rows + shift[None, :])
    if HAS_BIAS:
        total += tl.load(bias + f, mask=f < F, other=0).to(tl.float32)[None, :]
    if HAS_OWN:
        total += tl.load(own + at, mask=mask, other=0).to(tl.float32)
    tl.store(out + at, activate(total, ACTIVATION).to(out.dtype.element_ty), mask=mask)


@triton.jit
def _backward_kernel(
    grad,
    out,
    y,
    basis,
    gamma,
    by_y,
    before,
    partial,
    n,
    F,
    ROWS,
    HAS_OWN: tl.constexpr,
    ACTIVATION: tl.constexpr,
    SPLINES: tl.constexpr,
    BM: tl.constexpr,
    BF: tl.constexpr,
    BK: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    f = tl.program_id(1) * BF + tl.arange(0, BF)
    k = tl.arange(0, BK)
    d_gamma = tl.zeros([BK, BF], tl.float32)
    d_beta = tl.zeros([BK, BF], tl.float32)
    d_bias = tl.zeros([BF], tl.float32)
    for start in range(program * ROWS, tl.minimum(program * ROWS + ROWS, n), BM):
        row = start + tl.arange(0, BM).to(tl.int64)
        inside = row < n
        mask = inside[:, None] & (f < F)[None, :]
        at = row[:, None] * F + f[None, :]
        g = tl.load(grad + at, mask=mask, other=0).to(tl.float32)
        if ACTIVATION != 0:
            g = times_slope(g, tl.load(out + at, mask=mask, other=0).to(tl.float32), ACTIVATION)
            if HAS_OWN:
                tl.store(before + at, g.to(before.dtype.element_ty), mask=mask)
        rows = tl.load(y + at, mask=mask, other=0).to(tl.float32)
        scale = tl.full([BM, BF], 1.0, tl.float32)
        for s in tl.static_range(SPLINES):
            b = tl.load(basis + row * SPLINES + s, mask=inside, other=0).to(tl.float32)
            scale += b[:, None] * tl.load(gamma + s * F + f, mask=f < F, other=0).to(tl.float32)[None, :]
        tl.store(by_y + at, (g * scale).to(by_y.dtype.element_ty), mask=mask)
        turned = tl.load(
            basis + row[None, :] * SPLINES + k[:, None], mask=(k < SPLINES)[:, None] & inside[None, :], other=0
        ).to(tl.float32)
        d_gamma += tl.dot(turned, g * rows, input_precision="ieee")
        d_beta += tl.dot(turned, g, input_precision="ieee")
        d_bias += tl.sum(g, 0)
    partial += program * (2 * SPLINES + 1) * F
    mask = (k < SPLINES)[:, None] & (f < F)[None, :]
    at = k[:, None] * F + f[None, :]
    tl.store(partial + at, d_gamma, mask=mask)
    tl.store(partial + SPLINES * F + at, d_beta, mask=mask)
    tl.store(partial + 2 * SPLINES * F + f, d_bias, mask=f < F)


def scale_rows(y: Tensor, splines: Splines, bias: Tensor | None, own: Tensor | None, activation: str) -> Tensor:
    """:func:`demonet.ops.scale.definition`."""
    y, basis, gamma, beta = (one.contiguous() for one in (y, *splines))
    own = None if own is None else own.contiguous()
    out, wide = torch.empty_like(y), block_width(y.size(1), WIDEST)
    with on_device(y):
        _forward_kernel[(triton.cdiv(y.size(0), TILE_ROWS), triton.cdiv(y.size(1), wide))](
            *(y, basis, gamma, beta, bias, own, out, y.size(0), y.size(1)),
            HAS_BIAS=bias is not None,
            HAS_OWN=own is not None,
            ACTIVATION=ACTIVATIONS[activation],
            SPLINES=basis.size(1),
            BM=TILE_ROWS,
            BF=wide,
        )
    return out


def scale_rows_backward(
    grad: Tensor, out: Tensor | None, y: Tensor, splines: Splines, activation: str, *, own: bool
) -> tuple[Tensor | None, ...]:
    """Its derivatives by the rows, both coefficients, the bias and, where ``own``, what was added to the rows."""
    grad, y, basis, gamma = (one.contiguous() for one in (grad, y, splines.basis, splines.gamma))
    n, columns, count = y.size(0), y.size(1), basis.size(1)
    rows, wide = span_rows(n), block_width(columns, WIDEST)
    programs = triton.cdiv(n, rows)
    by_y = torch.empty_like(y)
    before = grad if activation == "none" else torch.empty_like(y) if own else None
    partial = torch.empty(programs, 2 * count + 1, columns, dtype=torch.float32, device=y.device)
    with on_device(y):
        _backward_kernel[(programs, triton.cdiv(columns, wide))](
            *(grad, out, y, basis, gamma, by_y, before, partial, n, columns, rows),
            HAS_OWN=own,
            ACTIVATION=ACTIVATIONS[activation],
            SPLINES=count,
            BM=TILE_ROWS,
            BF=wide,
            BK=block_width(count, 64),
        )
    by_gamma, by_beta, by_bias = partial.sum(0).to(y.dtype).split_with_sizes([count, count, 1])
    return by_y, by_gamma, by_beta, by_bias[0], before
