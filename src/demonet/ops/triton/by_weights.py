"""The derivatives of a convolution by its weights: sums over the rows of each group, in a fixed order."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from demonet.ops.graph import Graph, Options, Weights
from demonet.ops.noise import Noise
from demonet.ops.schedule.gpu import WIDEST_HALF, WIDEST_INPUT, block_width
from demonet.ops.triton.blocks import ACTIVATIONS, kernel, on_device, precision
from demonet.ops.triton.drop import arguments, drop
from demonet.ops.triton.ends import times_slope
from demonet.ops.triton.gather import join_kernel


@triton.jit
def load_gradient(grad, out, row, inside, column, begin, WIDTH, OUT, ACTIVATION: tl.constexpr):
    """Rows of the gradient before the activation, from column ``begin`` on."""
    mask = inside[:, None] & (column < WIDTH)[None, :]
    at = row[:, None] * OUT + begin + column[None, :]
    g = tl.load(grad + at, mask=mask, other=0).to(tl.float32)
    if ACTIVATION > 0:
        g = times_slope(g, tl.load(out + at, mask=mask, other=0).to(tl.float32), ACTIVATION)
    return g


@kernel()
def _weights_kernel(
    grad,
    out,
    x,
    a,
    partial,
    partial_matrices,
    spans,
    key,
    F,
    S,
    W,
    OUT,
    KEPT: tl.constexpr,
    ACTIVATION: tl.constexpr,
    ADD: tl.constexpr,
    BIAS: tl.constexpr,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BF: tl.constexpr,
    BS: tl.constexpr,
    BW: tl.constexpr,
):
    span = tl.program_id(0).to(tl.int64)
    first, last = tl.load(spans + 3 * span), tl.load(spans + 3 * span + 1)
    f, s, w = tl.arange(0, BF), tl.arange(0, BS), tl.arange(0, BW)
    d_seed = tl.zeros([BF, BS], tl.float32)
    d_matrix = tl.zeros([BF, BW], tl.float32)
    d_left = tl.zeros([BS], tl.float32)
    d_right = tl.zeros([BW], tl.float32)
    for start in range(first, last, BM):
        row = start + tl.arange(0, BM).to(tl.int64)
        inside = row < last
        # Rows are loaded as columns: the product wants them so, and turning a tile over costs more than reading it.
        whole = (f < F)[:, None] & inside[None, :]
        own = tl.load(x + row[None, :] * F + f[:, None], mask=whole, other=0)
        total = tl.load(a + row[None, :] * F + f[:, None], mask=whole, other=0)
        left = load_gradient(grad, out, row, inside, s, 0, S, OUT, ACTIVATION)
        right = left
        if not ADD:
            right = load_gradient(grad, out, row, inside, w, S, W, OUT, ACTIVATION)
        if BIAS:
            d_left += tl.sum(left, 0)
            if not ADD:
                d_right += tl.sum(right, 0)
        left, right = drop(left, key, row, s, KEPT), drop(right, key, row, S + w, KEPT)
        d_seed += tl.dot(own, left.to(own.dtype), input_precision=PRECISION)
        d_matrix += tl.dot(total, right.to(own.dtype), input_precision=PRECISION)
    partial += span * (F * S + OUT if BIAS else F * S)
    tl.store(partial + f[:, None] * S + s[None, :], d_seed, mask=(f < F)[:, None] & (s < S)[None, :])
    tl.store(
        partial_matrices + span * F * W + f[:, None] * W + w[None, :],
        d_matrix,
        mask=(f < F)[:, None] & (w < W)[None, :],
    )
    if BIAS:
        tl.store(partial + F * S + s, d_left, mask=s < S)
        if not ADD:
            tl.store(partial + F * S + S + w, d_right, mask=w < W)


def weights_backward(
    grad: Tensor,
    out: Tensor,
    x: Tensor,
    a: Tensor,
    weights: Weights,
    graph: Graph,
    options: Options,
    *,
    bias: bool,
    noise: Noise | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Derivatives by the seed map, the matrices, and the bias (empty unless ``bias``)."""
    grad, x, a = grad.contiguous(), x.contiguous(), a.contiguous()
    seed, matrices, groups = weights.seed, weights.matrices, graph.groups
    columns, S, W, width = x.size(1), seed.size(1), matrices.size(2), out.size(1)
    count = groups.spans.size(0)
    sums: dict[str, Any] = {"dtype": torch.float32, "device": x.device}
    sizes = [columns * S, width if bias else 0]
    partial = torch.empty(count, sum(sizes), **sums)
    partial_matrices = torch.empty(count, columns * W, **sums)
    by_matrices = torch.empty(matrices.size(0), columns * W, dtype=matrices.dtype, device=x.device)
    wide = block_width(columns * W, 128)
    with on_device(x):
        _weights_kernel[(count,)](
            grad,
            out,
            x,
            a,
            partial,
            partial_matrices,
            groups.spans,
            **arguments(noise),
            F=columns,
            S=S,
            W=W,
            OUT=width,
            ACTIVATION=ACTIVATIONS[options.activation],
            ADD=options.combine == "add",
            BIAS=bias,
            PRECISION=precision(x.dtype),
            BM=32,
            BF=block_width(columns, WIDEST_INPUT),
            BS=block_width(S, WIDEST_HALF),
            BW=block_width(W, WIDEST_HALF),
            num_warps=4,
            num_stages=3,
        )
        join_kernel[(matrices.size(0), triton.cdiv(columns * W, wide))](
            partial_matrices,
            by_matrices,
            groups.pieces,
            groups.pieces,
            groups.pieces,
            columns * W,
            AGGR=0,
            HAS_ROWS=False,
            BJ=16,
            BF=wide,
        )
    by_seed, by_bias = partial.sum(0).to(x.dtype).split_with_sizes(sizes)
    return by_seed.view_as(seed), by_matrices.view_as(matrices), by_bias
