"""A linear head and its cross-entropy without ever writing the scores: the last step of an epoch, fused."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from demonet.ops.schedule.gpu import MOST_CLASSES, TILE_ROWS, WIDEST_INPUT, block_width, span_rows
from demonet.ops.triton.blocks import ACTIVATIONS, kernel, on_device, precision
from demonet.ops.triton.ends import times_slope


@triton.jit
def _scores(h, weight, bias, row, inside, f, c, F, C, PRECISION: tl.constexpr):
    """The rows, the matrix, and the scores of a tile; columns beyond the classes are minus infinity."""
    own = tl.load(h + row[:, None] * F + f[None, :], mask=inside[:, None] & (f < F)[None, :], other=0)
    matrix = tl.load(weight + c[:, None] * F + f[None, :], mask=(c < C)[:, None] & (f < F)[None, :], other=0)
    score = tl.dot(own, tl.trans(matrix), input_precision=PRECISION)
    score += tl.load(bias + c, mask=c < C, other=0).to(tl.float32)[None, :]
    return own, matrix, tl.where((c < C)[None, :], score, float("-inf"))


@kernel()
def _loss_kernel(
    h,
    weight,
    bias,
    target,
    share,
    partial,
    n,
    F,
    C,
    ROWS,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BF: tl.constexpr,
    BC: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    f, c = tl.arange(0, BF), tl.arange(0, BC)
    total = tl.zeros([BM], tl.float32)
    for start in range(program * ROWS, tl.minimum(program * ROWS + ROWS, n), BM):
        row = start + tl.arange(0, BM).to(tl.int64)
        inside = row < n
        _own, _matrix, score = _scores(h, weight, bias, row, inside, f, c, F, C, PRECISION)
        y = tl.load(target + row, mask=inside, other=0)
        weighs = tl.load(share + row, mask=inside, other=0)
        highest = tl.max(score, 1)
        log_sum = highest + tl.log(tl.sum(tl.exp(score - highest[:, None]), 1))
        right = tl.sum(tl.where(c[None, :] == y[:, None], score, 0.0), 1)
        total += tl.where(weighs > 0, weighs * (log_sum - right), 0.0)
    tl.store(partial + program, tl.sum(total, 0))


@kernel()
def _gradient_kernel(
    h,
    weight,
    bias,
    target,
    share,
    upstream,
    by_h,
    partial,
    n,
    F,
    C,
    ROWS,
    ACTIVATION: tl.constexpr,
    OVER: tl.constexpr,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BF: tl.constexpr,
    BC: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    f, c = tl.arange(0, BF), tl.arange(0, BC)
    scale = tl.load(upstream).to(tl.float32)
    d_weight = tl.zeros([BF, BC], tl.float32)
    d_bias = tl.zeros([BC], tl.float32)
    for start in range(program * ROWS, tl.minimum(program * ROWS + ROWS, n), BM):
        row = start + tl.arange(0, BM).to(tl.int64)
        inside = row < n
        own, matrix, score = _scores(h, weight, bias, row, inside, f, c, F, C, PRECISION)
        y = tl.load(target + row, mask=inside, other=0)
        weighs = tl.load(share + row, mask=inside, other=0) * scale
        p = tl.exp(score - tl.max(score, 1)[:, None])
        p = p / tl.sum(p, 1)[:, None]
        d = (p - tl.where(c[None, :] == y[:, None], 1.0, 0.0)) * weighs[:, None]
        d_bias += tl.sum(d, 0)
        d = d.to(own.dtype)
        # The rows once more, as columns: turning a tile over costs more than reading it again from the cache.
        turned = tl.load(h + row[None, :] * F + f[:, None], mask=(f < F)[:, None] & inside[None, :], other=0)
        d_weight += tl.dot(turned, d, input_precision=PRECISION)
        back = times_slope(tl.dot(d, matrix, input_precision=PRECISION), own.to(tl.float32), ACTIVATION)
        if OVER:
            tl.debug_barrier()  # every thread has read these rows before any writes over them
        mask = inside[:, None] & (f < F)[None, :]
        tl.store(by_h + row[:, None] * F + f[None, :], back.to(by_h.dtype.element_ty), mask=mask)
    mask = (f < F)[:, None] & (c < C)[None, :]
    partial += program * C * (F + 1)
    tl.store(partial + c[None, :] * F + f[:, None], d_weight, mask=mask)
    tl.store(partial + C * F + c, d_bias, mask=c < C)


def _plan(h: Tensor, weight: Tensor) -> tuple[int, int, dict[str, object]]:
    n, columns = h.shape
    rows = span_rows(n)
    blocks = {"BF": block_width(columns, WIDEST_INPUT), "BC": block_width(weight.size(0), MOST_CLASSES)}
    return rows, triton.cdiv(n, rows), {**blocks, "BM": TILE_ROWS, "PRECISION": precision(h.dtype)}


def loss(h: Tensor, weight: Tensor, bias: Tensor, target: Tensor, share: Tensor) -> Tensor:
    """:func:`demonet.ops.reference.linear_cross_entropy`."""
    h, weight = h.contiguous(), weight.contiguous()
    rows, programs, options = _plan(h, weight)
    partial = torch.empty(programs, dtype=torch.float32, device=h.device)
    with on_device(h):
        _loss_kernel[(programs,)](
            h, weight, bias, target, share, partial, h.size(0), h.size(1), weight.size(0), rows, **options
        )
    return partial.sum()


def gradient(
    upstream: Tensor,
    h: Tensor,
    weight: Tensor,
    bias: Tensor,
    target: Tensor,
    share: Tensor,
    activation: str = "none",
    *,
    over: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Its derivatives by the rows, the matrix and the bias; the scores are computed again, not kept.

    Args:
        upstream: The derivative by the loss.
        h, weight, bias, target, share: What :func:`loss` was called with.
        activation: What ``h`` is the output of, to go back through that too.
        over: Whether the derivative by ``h`` is written over it.
    """
    h, weight = h.contiguous(), weight.contiguous()
    rows, programs, options = _plan(h, weight)
    by_h = h if over else torch.empty_like(h)
    sizes = [weight.numel(), bias.numel()]
    partial = torch.empty(programs, sum(sizes), dtype=torch.float32, device=h.device)
    with on_device(h):
        _gradient_kernel[(programs,)](
            *(h, weight, bias, target, share, upstream, by_h, partial),
            *(h.size(0), h.size(1), weight.size(0), rows),
            ACTIVATION=ACTIVATIONS[activation],
            OVER=over,
            **options,
        )
    by_weight, by_bias = partial.sum(0).to(weight.dtype).split_with_sizes(sizes)
    return by_h, by_weight.view_as(weight), by_bias
