"""The end of a convolution whose degrees scale its columns, fused (:mod:`demonet.ops.scale`)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from demonet.ops.noise import RowNoise, chances
from demonet.ops.scale import Lists, Splines
from demonet.ops.schedule.gpu import TILE_ROWS, block_width, span_rows
from demonet.ops.triton.blocks import ACTIVATIONS, kernel, on_device
from demonet.ops.triton.drop import drop
from demonet.ops.triton.ends import End, drop_row, scaled, times_slope
from demonet.ops.triton.gather import WIDEST_END, aggregate, sums_at_once


@kernel()
def _forward_kernel(
    rows,
    out,
    n,
    F,
    y,
    basis,
    gamma,
    beta,
    bias,
    own,
    key,
    place,
    LEFT,
    HAS_Y: tl.constexpr,
    SPLINES: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_OWN: tl.constexpr,
    KEPT: tl.constexpr,
    HAS_PLACE: tl.constexpr,
    ACTIVATION: tl.constexpr,
    BM: tl.constexpr,
    BF: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    f = tl.program_id(1) * BF + tl.arange(0, BF)
    inside = row < n
    mask = inside[:, None] & (f < F)[None, :]
    at = row[:, None] * F + f[None, :]
    total = scaled(
        tl.load(rows + at, mask=mask, other=0).to(tl.float32),
        row,
        inside,
        f,
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
def _backward_kernel(
    grad,
    out,
    y,
    basis,
    gamma,
    by_y,
    by_own,
    partial,
    lists_scale,
    key,
    place,
    n,
    F,
    ROWS,
    LEFT,
    HAS_OWN: tl.constexpr,
    HAS_SCALE: tl.constexpr,
    KEPT: tl.constexpr,
    HAS_PLACE: tl.constexpr,
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
        counted = drop_row(place, row, inside, HAS_PLACE)
        if HAS_OWN:
            tl.store(by_own + at, drop(g, key, counted, f, KEPT).to(by_own.dtype.element_ty), mask=mask)
        d_bias += tl.sum(g, 0)
        g = drop(g, key, counted, LEFT + f, KEPT)
        rows = tl.load(y + at, mask=mask, other=0).to(tl.float32)
        scale = tl.full([BM, BF], 1.0, tl.float32)
        for s in tl.static_range(SPLINES):
            b = tl.load(basis + row * SPLINES + s, mask=inside, other=0).to(tl.float32)
            scale += b[:, None] * tl.load(gamma + s * F + f, mask=f < F, other=0).to(tl.float32)[None, :]
        back = g * scale
        if HAS_SCALE:
            back *= tl.load(lists_scale + row, mask=inside, other=0).to(tl.float32)[:, None]
        tl.store(by_y + at, back.to(by_y.dtype.element_ty), mask=mask)
        turned = tl.load(
            basis + row[None, :] * SPLINES + k[:, None], mask=(k < SPLINES)[:, None] & inside[None, :], other=0
        ).to(tl.float32)
        d_gamma += tl.dot(turned, g * rows, input_precision="ieee")
        d_beta += tl.dot(turned, g, input_precision="ieee")
    partial += program * (2 * SPLINES + 1) * F
    mask = (k < SPLINES)[:, None] & (f < F)[None, :]
    at = k[:, None] * F + f[None, :]
    tl.store(partial + at, d_gamma, mask=mask)
    tl.store(partial + SPLINES * F + at, d_beta, mask=mask)
    tl.store(partial + 2 * SPLINES * F + f, d_bias, mask=f < F)


def scale_rows(
    y: Tensor,
    splines: Splines,
    bias: Tensor | None,
    own: Tensor | None,
    activation: str,
    noise: RowNoise | None = None,
) -> Tensor:
    """:func:`demonet.ops.scale.definition`."""
    y, given = y.contiguous(), _contiguous(splines, bias, own)
    out, wide = torch.empty_like(y), block_width(y.size(1), WIDEST_END)
    end = End.of(None, *given, noise, activation)
    with on_device(y):
        _forward_kernel[(triton.cdiv(y.size(0), TILE_ROWS), triton.cdiv(y.size(1), wide))](
            *(y, out, y.size(0), y.size(1), *end.tensors, end.left), **end.constants, BM=TILE_ROWS, BF=wide
        )
    return out


def sum_and_scale(
    x: Tensor,
    lists: Lists,
    splines: Splines,
    bias: Tensor | None,
    own: Tensor | None,
    activation: str,
    noise: RowNoise | None,
    *,
    keep: bool,
) -> tuple[Tensor, Tensor | None]:
    """:func:`scale_rows` of the sums over neighbours, and with ``keep`` the sums."""
    forth = lists.tiles
    if not (sums_at_once(forth) and lists.neighbours.numel() and x.numel()):
        sums = lists.sums(x)
        return scale_rows(sums, splines, bias, own, activation, noise), sums
    y = x.new_empty(lists.pointer.numel() - 1, x.size(1)) if keep else None
    end = End.of(y, *_contiguous(splines, bias, own), noise, activation)
    return aggregate(x, lists.pointer, lists.neighbours, lists.weight, "sum", forth, lists.scale, end), y


def _contiguous(
    splines: Splines, bias: Tensor | None, own: Tensor | None
) -> tuple[Splines, Tensor | None, Tensor | None]:
    splines = Splines(splines.basis, splines.gamma.contiguous(), splines.beta.contiguous())
    return splines, bias, None if own is None else own.contiguous()


def scale_rows_backward(
    grad: Tensor,
    out: Tensor | None,
    y: Tensor,
    splines: Splines,
    activation: str,
    noise: RowNoise | None = None,
    *,
    own: bool,
    scale: Tensor | None = None,
    room: Tensor | None = None,
) -> tuple[Tensor | None, ...]:
    """Its derivatives by the rows, both coefficients, the bias and, where ``own``, what was added to the rows.

    Args:
        grad, out, y, splines, activation, noise: As in the other direction.
        own: Whether rows were added, and the derivative by them is asked for.
        scale: ``[n, 1]`` what the derivative by the rows is multiplied by as well, or None.
        room: Where the derivative by the rows is written, which may be the rows; new memory by default.
    """
    grad, gamma, basis = grad.contiguous(), splines.gamma.contiguous(), splines.basis
    n, columns, count = y.size(0), y.size(1), basis.size(1)
    rows, wide = span_rows(n), block_width(columns, WIDEST_END)
    programs = triton.cdiv(n, rows)
    by_y = torch.empty_like(y) if room is None else room
    by_own = torch.empty_like(y) if own else None
    partial = torch.empty(programs, 2 * count + 1, columns, dtype=torch.float32, device=y.device)
    key, place, kept = (None, None, 0) if noise is None else (noise.key, noise.place, chances(noise.p))
    with on_device(y):
        _backward_kernel[(programs, triton.cdiv(columns, wide))](
            *(grad, out, y, basis, gamma, by_y, by_own, partial, scale, key, place, n, columns, rows),
            0 if noise is None else noise.left,
            HAS_OWN=own,
            HAS_SCALE=scale is not None,
            KEPT=kept,
            HAS_PLACE=place is not None,
            ACTIVATION=ACTIVATIONS[activation],
            SPLINES=count,
            BM=32,
            BF=wide,
            BK=block_width(count, 64),
        )
    sums = partial.sum(0)
    sums = sums if sums.dtype == y.dtype else sums.to(y.dtype)
    by_gamma, by_beta, by_bias = sums.split_with_sizes([count, count, 1])
    return by_y, by_gamma, by_beta, by_bias[0], by_own
