"""Batch norm, ReLU, a second map, ReLU and dropout in Triton (:mod:`demonet.ops.refine`): three kernels each way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from demonet.ops.noise import Noise
from demonet.ops.schedule.gpu import TILE_ROWS, WIDEST_HALF, block_width, span_rows, tile_rows
from demonet.ops.triton.blocks import add_product, kernel, on_device, precision, product, split
from demonet.ops.triton.drop import arguments, drop

if TYPE_CHECKING:
    from demonet.ops.refine import Refine


@kernel()
def _moments_kernel(y, means, squares, n, F, ROWS, BM: tl.constexpr, BF: tl.constexpr):
    """Mean and sum of squared deviations of the rows of each program, tile by tile."""
    program = tl.program_id(0).to(tl.int64)
    f = tl.arange(0, BF)
    mean = tl.zeros([BF], tl.float32)
    total = tl.zeros([BF], tl.float32)
    first = program * ROWS
    for start in range(first, tl.minimum(first + ROWS, n), BM):
        row = start + tl.arange(0, BM).to(tl.int64)
        mask = (row < n)[:, None] & (f < F)[None, :]
        part = tl.load(y + row[:, None] * F + f[None, :], mask=mask, other=0).to(tl.float32)
        count = tl.minimum(n - start, BM).to(tl.float32)
        seen = (start - first).to(tl.float32)
        own = tl.sum(part, 0) / count
        apart = tl.where(mask, part - own[None, :], 0.0)
        between = own - mean
        mean += between * (count / (seen + count))
        total += tl.sum(apart * apart, 0) + between * between * (seen * count / (seen + count))
    tl.store(means + program * F + f, mean, mask=f < F)
    tl.store(squares + program * F + f, total, mask=f < F)


@kernel()
def _statistics_kernel(means, squares, mean, variance, n, programs, F, ROWS, BP: tl.constexpr, BF: tl.constexpr):
    """Mean and variance of all rows, from the moments of the programs; the last one may have fewer rows."""
    f = tl.program_id(0) * BF + tl.arange(0, BF)
    total = tl.zeros([BF], tl.float32)
    for start in range(0, programs, BP):
        program = start + tl.arange(0, BP).to(tl.int64)
        count = tl.minimum(n - program * ROWS, ROWS).to(tl.float32)
        mask = (program < programs)[:, None] & (f < F)[None, :]
        total += tl.sum(tl.load(means + program[:, None] * F + f[None, :], mask=mask, other=0) * count[:, None], 0)
    center = total / n
    total = tl.zeros([BF], tl.float32)
    for start in range(0, programs, BP):
        program = start + tl.arange(0, BP).to(tl.int64)
        count = tl.minimum(n - program * ROWS, ROWS).to(tl.float32)
        mask = (program < programs)[:, None] & (f < F)[None, :]
        at = program[:, None] * F + f[None, :]
        apart = tl.where(mask, tl.load(means + at, mask=mask, other=0) - center[None, :], 0.0)
        total += tl.sum(tl.load(squares + at, mask=mask, other=0) + apart * apart * count[:, None], 0)
    tl.store(mean + f, center, mask=f < F)
    tl.store(variance + f, total / n, mask=f < F)


@triton.jit
def _affine(mean, variance, gamma, beta, f, F, EPS):
    """The norm as one product and one sum."""
    inverse = 1.0 / tl.sqrt(tl.load(variance + f, mask=f < F, other=1) + EPS)
    scale = tl.load(gamma + f, mask=f < F, other=0).to(tl.float32) * inverse
    shift = tl.load(beta + f, mask=f < F, other=0).to(tl.float32) - tl.load(mean + f, mask=f < F, other=0) * scale
    return scale, shift


@kernel()
def _refine_kernel(
    y,
    mean,
    variance,
    gamma,
    beta,
    weight,
    bias,
    out,
    key,
    n,
    F,
    H,
    ROWS,
    EPS,
    KEPT: tl.constexpr,
    MAP: tl.constexpr,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BF: tl.constexpr,
    BO: tl.constexpr,
):
    f, o = tl.arange(0, BF), tl.arange(0, BO)
    by, plus = _affine(mean, variance, gamma, beta, f, F, EPS)
    by, plus = by[None, :], plus[None, :]
    if MAP:
        matrix = tl.load(weight + f[:, None] + o[None, :] * F, mask=(f < F)[:, None] & (o < H)[None, :], other=0)
        high, low = split(matrix, PRECISION)
        constant = tl.load(bias + o, mask=o < H, other=0).to(tl.float32)[None, :]
    first = tl.program_id(0).to(tl.int64) * ROWS
    for start in range(first, tl.minimum(first + ROWS, n), BM):
        row = start + tl.arange(0, BM).to(tl.int64)
        inside = row < n
        part = tl.load(y + row[:, None] * F + f[None, :], mask=inside[:, None] & (f < F)[None, :], other=0)
        h = tl.maximum(part.to(tl.float32) * by + plus, 0.0)
        if MAP:
            h = tl.maximum(product(h.to(matrix.dtype), high, low, PRECISION) + constant, 0.0)
        h = drop(h, key, row, o, KEPT)
        mask = inside[:, None] & (o < H)[None, :]
        tl.store(out + row[:, None] * H + o[None, :], h.to(out.dtype.element_ty), mask=mask)


@kernel()
def _back_kernel(
    grad,
    out,
    y,
    mean,
    variance,
    gamma,
    beta,
    weight,
    by_y,
    partial,
    n,
    F,
    H,
    ROWS,
    EPS,
    FACTOR,
    MAP: tl.constexpr,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BF: tl.constexpr,
    BO: tl.constexpr,
):
    """By what the norm returned, and by all parameters; each program has its own sums, one after the other."""
    program = tl.program_id(0).to(tl.int64)
    f, o = tl.arange(0, BF), tl.arange(0, BO)
    by, plus = _affine(mean, variance, gamma, beta, f, F, EPS)
    center = tl.load(mean + f, mask=f < F, other=0)
    d_weight = tl.zeros([BF, BO], tl.float32)
    d_bias = tl.zeros([BO], tl.float32)
    d_beta = tl.zeros([BF], tl.float32)
    d_gamma = tl.zeros([BF], tl.float32)
    if MAP:
        matrix = tl.load(weight + o[:, None] * F + f[None, :], mask=(o < H)[:, None] & (f < F)[None, :], other=0)
        high, low = split(matrix, PRECISION)
    first = program * ROWS
    for start in range(first, tl.minimum(first + ROWS, n), BM):
        row = start + tl.arange(0, BM).to(tl.int64)
        inside = row < n
        whole = inside[:, None] & (f < F)[None, :]
        at = row[:, None] * H + o[None, :]
        mask = inside[:, None] & (o < H)[None, :]
        kept = tl.load(out + at, mask=mask, other=0) > 0
        behind = tl.where(kept, tl.load(grad + at, mask=mask, other=0).to(tl.float32) * FACTOR, 0.0)
        part = tl.load(y + row[:, None] * F + f[None, :], mask=whole, other=0).to(tl.float32)
        if MAP:
            d_bias += tl.sum(behind, 0)
            # Rows are loaded as columns: the product wants them so, and turning a tile over costs more than reading it.
            turned = tl.load(y + row[None, :] * F + f[:, None], mask=(f < F)[:, None] & inside[None, :], other=0)
            h = tl.maximum(turned.to(tl.float32) * by[:, None] + plus[:, None], 0.0)
            h_high, h_low = split(h.to(matrix.dtype), PRECISION)
            own_high, own_low = split(behind.to(matrix.dtype), PRECISION)
            d_weight = add_product(d_weight, h_high, h_low, own_high, own_low, PRECISION)
            behind = add_product(tl.zeros([BM, BF], tl.float32), own_high, own_low, high, low, PRECISION)
            behind = tl.where(part * by[None, :] + plus[None, :] > 0, behind, 0.0)
        d_beta += tl.sum(behind, 0)
        d_gamma += tl.sum(behind * (part - center[None, :]), 0)
        tl.store(by_y + row[:, None] * F + f[None, :], behind.to(by_y.dtype.element_ty), mask=whole)
    partial += program * (2 * F + H * (F + 1) if MAP else 2 * F)
    tl.store(partial + f, d_gamma, mask=f < F)
    tl.store(partial + F + f, d_beta, mask=f < F)
    if MAP:
        at = 2 * F + o[None, :] * F + f[:, None]
        tl.store(partial + at, d_weight, mask=(f < F)[:, None] & (o < H)[None, :])
        tl.store(partial + 2 * F + H * F + o, d_bias, mask=o < H)


@kernel()
def _norm_kernel(by_y, y, mean, variance, gamma, sums, by_gamma, n, F, EPS, BM: tl.constexpr, BF: tl.constexpr):
    """Through the norm, written over ``by_y``; ``sums`` are those by gamma, still to be scaled, and by beta."""
    row = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    f = tl.arange(0, BF)
    mask = (row < n)[:, None] & (f < F)[None, :]
    at = row[:, None] * F + f[None, :]
    inverse = 1.0 / tl.sqrt(tl.load(variance + f, mask=f < F, other=1) + EPS)
    scale = tl.load(gamma + f, mask=f < F, other=0).to(tl.float32) * inverse
    own = tl.load(sums + f, mask=f < F, other=0) * inverse
    slope = scale * inverse * own / -n
    constant = scale * tl.load(sums + F + f, mask=f < F, other=0) / -n
    constant -= slope * tl.load(mean + f, mask=f < F, other=0)
    part = tl.load(y + at, mask=mask, other=0).to(tl.float32)
    found = tl.load(by_y + at, mask=mask, other=0).to(tl.float32) * scale[None, :]
    found += part * slope[None, :] + constant[None, :]
    tl.store(by_y + at, found.to(by_y.dtype.element_ty), mask=mask)
    if tl.program_id(0) == 0:
        tl.store(by_gamma + f, own.to(by_gamma.dtype.element_ty), mask=f < F)


def refine(y: Tensor, given: Refine, noise: Noise | None) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`demonet.ops.refine.definition`; mean and variance are float32."""
    y = y.contiguous()
    n, columns = y.shape
    rows, programs, blocks = _plan(y, given)
    moments = torch.empty(2 * programs + 2, columns, dtype=torch.float32, device=y.device)
    means, squares, mean, variance = moments[:programs], moments[programs:-2], moments[-2], moments[-1]
    out = y.new_empty(n, columns if given.weight is None else given.weight.size(0))
    with on_device(y):
        _moments_kernel[(programs,)](y, means, squares, n, columns, rows, BM=blocks["BM"], BF=blocks["BF"])
        _statistics_kernel[(triton.cdiv(columns, 16),)](
            means, squares, mean, variance, n, programs, columns, rows, BP=64, BF=16
        )
        tile = tile_rows(n)
        _refine_kernel[(triton.cdiv(n, tile),)](
            *(y, mean, variance, *given[:4], out),
            n=n,
            F=columns,
            H=out.size(1),
            ROWS=tile,
            EPS=given.eps,
            num_stages=1 if _wide(blocks) else 3,
            **arguments(noise),
            **blocks,
        )
    return out, mean, variance


def refine_backward(
    grad: Tensor, out: Tensor, y: Tensor, given: Refine, mean: Tensor, variance: Tensor, factor: float
) -> list[Tensor | None]:
    """:func:`demonet.ops.cpu_refine.refine_backward`."""
    y = y.contiguous()
    (n, columns), width, weight = y.shape, out.size(1), given.weight
    rows, programs, blocks = _plan(y, given)
    sizes = [columns, columns] if weight is None else [columns, columns, width * columns, width]
    by_y, by_gamma = torch.empty_like(y), torch.empty_like(given.gamma)
    partial = torch.empty(programs, sum(sizes), dtype=torch.float32, device=y.device)
    with on_device(y):
        _back_kernel[(programs,)](
            *(grad, out, y, mean, variance, *given[:3], by_y, partial, n, columns, width, rows, given.eps, factor),
            **blocks | _few(blocks),
        )
        sums = partial.sum(0)  # of everything at once: one kernel instead of four
        _norm_kernel[(triton.cdiv(n, blocks["BM"]),)](
            *(by_y, y, mean, variance, given.gamma, sums, by_gamma, n, columns, given.eps),
            BM=blocks["BM"],
            BF=blocks["BF"],
        )
    _, by_beta, *by_map = sums.to(y.dtype).split_with_sizes(sizes)
    if weight is None:
        return [by_y, by_gamma, by_beta, None, None]
    return [by_y, by_gamma, by_beta, by_map[0].view_as(weight), by_map[1]]


def _plan(y: Tensor, given: Refine) -> tuple[int, int, dict[str, Any]]:
    """Rows of a program that sums, the number of programs, and the blocks of the kernels."""
    width = y.size(1) if given.weight is None else given.weight.size(0)
    rows = span_rows(y.size(0))
    blocks = {"BF": block_width(y.size(1), WIDEST_HALF), "PRECISION": precision(y.dtype)}
    blocks |= {"BO": block_width(width, WIDEST_HALF), "MAP": given.weight is not None}
    return rows, triton.cdiv(y.size(0), rows), blocks | {"BM": TILE_ROWS}


def _wide(blocks: dict[str, Any]) -> bool:
    """Whether the matrix leaves no shared memory for rows that are loaded ahead."""
    return bool(blocks["BF"] * blocks["BO"] > 64 * 64)


def _few(blocks: dict[str, Any]) -> dict[str, Any]:
    """Few rows at a time: operands and sums of two products are in registers."""
    return {"BM": 16, "num_stages": 1} if _wide(blocks) else {"BM": 32, "num_stages": 2}
