"""Batch norm, ReLU, a second map, ReLU and dropout in Triton (:mod:`demonet.ops.refine`): two kernels each way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from demonet.ops import backend
from demonet.ops.noise import Noise
from demonet.ops.schedule.gpu import span_rows, tile_rows
from demonet.ops.triton.blocks import add_product, on_device, precision, product, split
from demonet.ops.triton.drop import arguments, drop

if TYPE_CHECKING:
    from demonet.ops.refine import Refine


@triton.jit
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


@triton.jit
def _refine_kernel(
    y,
    scale,
    shift,
    weight,
    bias,
    out,
    key,
    n,
    F,
    H,
    ROWS,
    KEPT: tl.constexpr,
    MAP: tl.constexpr,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BF: tl.constexpr,
    BO: tl.constexpr,
):
    f, o = tl.arange(0, BF), tl.arange(0, BO)
    by = tl.load(scale + f, mask=f < F, other=0)[None, :]
    plus = tl.load(shift + f, mask=f < F, other=0)[None, :]
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


@triton.jit
def _back_kernel(
    grad,
    out,
    y,
    scale,
    shift,
    mean,
    weight,
    by_y,
    partial_weight,
    partial_bias,
    partial_beta,
    partial_gamma,
    n,
    F,
    H,
    ROWS,
    FACTOR,
    MAP: tl.constexpr,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BF: tl.constexpr,
    BO: tl.constexpr,
):
    """By what the norm returned, and by all parameters; each program has its own sums."""
    program = tl.program_id(0).to(tl.int64)
    f, o = tl.arange(0, BF), tl.arange(0, BO)
    by = tl.load(scale + f, mask=f < F, other=0)
    plus = tl.load(shift + f, mask=f < F, other=0)
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
    if MAP:
        at = program * F * H + o[None, :] * F + f[:, None]
        tl.store(partial_weight + at, d_weight, mask=(f < F)[:, None] & (o < H)[None, :])
        tl.store(partial_bias + program * H + o, d_bias, mask=o < H)
    tl.store(partial_beta + program * F + f, d_beta, mask=f < F)
    tl.store(partial_gamma + program * F + f, d_gamma, mask=f < F)


@triton.jit
def _norm_kernel(by_y, y, scale, slope, constant, n, F, BM: tl.constexpr, BF: tl.constexpr):
    """Through the norm: ``by_y * scale + y * slope + constant``, written over ``by_y``."""
    row = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    f = tl.arange(0, BF)
    mask = (row < n)[:, None] & (f < F)[None, :]
    at = row[:, None] * F + f[None, :]
    by = tl.load(scale + f, mask=f < F, other=0)[None, :]
    times = tl.load(slope + f, mask=f < F, other=0)[None, :]
    plus = tl.load(constant + f, mask=f < F, other=0)[None, :]
    part = tl.load(y + at, mask=mask, other=0).to(tl.float32)
    found = tl.load(by_y + at, mask=mask, other=0).to(tl.float32) * by + part * times + plus
    tl.store(by_y + at, found.to(by_y.dtype.element_ty), mask=mask)


def refine(y: Tensor, given: Refine, noise: Noise | None) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`demonet.ops.refine.definition`; mean and variance are float32."""
    y = y.contiguous()
    n, columns = y.shape
    rows, programs, blocks = _plan(y, given)
    sums: dict[str, Any] = {"dtype": torch.float32, "device": y.device}
    means, squares = torch.empty(2, programs, columns, **sums)
    out = y.new_empty(n, columns if given.weight is None else given.weight.size(0))
    with on_device(y):
        _moments_kernel[(programs,)](y, means, squares, n, columns, rows, BM=blocks["BM"], BF=blocks["BF"])
        mean, variance = _join(means, squares, n, rows)
        scale, shift = _affine(given, mean, variance)
        tile = tile_rows(n)
        _refine_kernel[(triton.cdiv(n, tile),)](
            *(y, scale, shift, given.weight, given.bias, out),
            n=n,
            F=columns,
            H=out.size(1),
            ROWS=tile,
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
    sums: dict[str, Any] = {"dtype": torch.float32, "device": y.device}
    scale, shift = _affine(given, mean, variance)
    by_y = torch.empty_like(y)
    partial_weight = torch.empty(0 if weight is None else programs, width, columns, **sums)
    partial_bias = torch.empty(0 if weight is None else programs, width, **sums)
    partial_beta, partial_gamma = torch.empty(2, programs, columns, **sums)
    with on_device(y):
        _back_kernel[(programs,)](
            *(grad, out, y, scale, shift, mean, weight, by_y),
            *(partial_weight, partial_bias, partial_beta, partial_gamma, n, columns, width, rows, factor),
            **blocks | _few(blocks),
        )
        by_beta, inverse = partial_beta.sum(0), torch.rsqrt(variance + given.eps)
        by_gamma = partial_gamma.sum(0) * inverse
        slope = scale * inverse * by_gamma / -n
        constant = scale * by_beta / -n - slope * mean
        _norm_kernel[(triton.cdiv(n, blocks["BM"]),)](
            by_y, y, scale, slope, constant, n, columns, BM=blocks["BM"], BF=blocks["BF"]
        )
    own = [by_gamma.to(given.gamma.dtype), by_beta.to(given.beta.dtype)]
    if weight is None:
        return [by_y, *own, None, None]
    return [by_y, *own, partial_weight.sum(0).to(weight.dtype), partial_bias.sum(0).to(weight.dtype)]


def _plan(y: Tensor, given: Refine) -> tuple[int, int, dict[str, Any]]:
    """Rows of a program that sums, the number of programs, and the blocks of the kernels."""
    limits, width = backend.current(), y.size(1) if given.weight is None else given.weight.size(0)
    rows = span_rows(y.size(0), limits.tile_rows)
    blocks = {"BF": backend.block_width(y.size(1), limits.widest_half), "PRECISION": precision(y.dtype)}
    blocks |= {"BO": backend.block_width(width, limits.widest_half), "MAP": given.weight is not None}
    return rows, triton.cdiv(y.size(0), rows), blocks | {"BM": limits.tile_rows}


def _wide(blocks: dict[str, Any]) -> bool:
    """Whether the matrix leaves no shared memory for rows that are loaded ahead."""
    return bool(blocks["BF"] * blocks["BO"] > 64 * 64)


def _few(blocks: dict[str, Any]) -> dict[str, Any]:
    """Few rows at a time: operands and sums of two products are in registers."""
    return {"BM": 16, "num_stages": 1} if _wide(blocks) else {"BM": 32, "num_stages": 2}


def _join(means: Tensor, squares: Tensor, n: int, rows: int) -> tuple[Tensor, Tensor]:
    """Mean and variance of all rows, from those of the programs; the last one may have fewer rows."""
    last = n - rows * (means.size(0) - 1)
    mean = (means[:-1].sum(0) * rows + means[-1] * last) / n
    apart = (means - mean).square_()
    return mean, (squares.sum(0) + apart[:-1].sum(0) * rows + apart[-1] * last) / n


def _affine(given: Refine, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """The norm as one product and one sum."""
    scale = given.gamma.float() * torch.rsqrt(variance + given.eps)
    return scale, given.beta.float() - mean * scale
