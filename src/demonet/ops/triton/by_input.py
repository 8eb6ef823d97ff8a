"""The derivatives of a convolution by its input: through each half's matrices, and along reversed lists."""

from __future__ import annotations

import torch
import triton.language as tl
from torch import Tensor

from demonet.ops.graph import Graph
from demonet.ops.noise import Noise
from demonet.ops.schedule.gpu import TILE_ROWS, WIDEST_HALF, WIDEST_INPUT, Groups, block_width
from demonet.ops.triton.blocks import ACTIVATIONS, kernel, on_device, precision, product, split
from demonet.ops.triton.by_weights import load_gradient
from demonet.ops.triton.drop import arguments, drop
from demonet.ops.triton.gather import AGGR, gather_sum, list_scale, rows_at, sum_long


@kernel()
def _half_kernel(
    grad,
    out,
    matrices,
    by,
    tiles,
    pointer,
    key,
    F,
    W,
    OUT,
    BEGIN,
    PLACE,
    KEPT: tl.constexpr,
    ONE: tl.constexpr,
    ACTIVATION: tl.constexpr,
    AGGR: tl.constexpr,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BF: tl.constexpr,
    BW: tl.constexpr,
):
    tile = tiles + 3 * tl.program_id(0).to(tl.int64)
    first, last, group = tl.load(tile), tl.load(tile + 1), tl.load(tile + 2)
    if ONE:
        group = group * 0
    f, w = tl.arange(0, BF), tl.arange(0, BW)
    mask = (w < W)[:, None] & (f < F)[None, :]
    turned = tl.load(matrices + group * F * W + f[None, :] * W + w[:, None], mask=mask, other=0)
    high, low = split(turned, PRECISION)
    for start in range(first, last, BM):
        row = start + tl.arange(0, BM)
        inside = row < last
        half = drop(load_gradient(grad, out, row, inside, w, BEGIN, W, OUT, ACTIVATION), key, row, PLACE + w, KEPT)
        back = product(half.to(turned.dtype), high, low, PRECISION)
        if AGGR > 0:
            length = tl.load(pointer + row + 1, mask=inside, other=0) - tl.load(pointer + row, mask=inside, other=0)
            back *= list_scale(length, AGGR)[:, None]
        whole = inside[:, None] & (f < F)[None, :]
        tl.store(by + row[:, None] * F + f[None, :], back.to(by.dtype.element_ty), mask=whole)


def half_backward(
    grad: Tensor,
    out: Tensor,
    matrices: Tensor,
    groups: Groups,
    begin: int,
    activation: str,
    pointer: Tensor | None = None,
    aggr: str = "sum",
    into: Tensor | None = None,
    noise: Noise | None = None,
    place: int = 0,
) -> Tensor:
    """By the input of one half, whose columns of the output start at ``begin``: ``[n, F]``.

    Args:
        grad, out: ``[n, width]``.
        matrices: ``[groups, F, W]``, or ``[F, W]``, one for all.
        groups: How the rows are cut.
        begin: First output column of the half.
        activation: Of the layer.
        pointer, aggr: The lists whose sums were the input, whose scale applies again.
        into: Where to write it; a new tensor by default.
        noise, place: The factors of dropout, and the column of them where those of the half begin.
    """
    grad, matrices = grad.contiguous(), matrices.contiguous()
    columns, width = matrices.shape[-2:]
    by = grad.new_empty(grad.size(0), columns) if into is None else into
    with on_device(grad):
        _half_kernel[(groups.tiles.size(0),)](
            grad,
            out,
            matrices,
            by,
            groups.tiles,
            pointer,
            **arguments(noise),
            F=columns,
            W=width,
            OUT=grad.size(1),
            BEGIN=begin,
            PLACE=place,
            ONE=matrices.dim() == 2,
            ACTIVATION=ACTIVATIONS[activation],
            AGGR=AGGR[aggr],
            PRECISION=precision(grad.dtype),
            BM=TILE_ROWS,
            BF=block_width(columns, WIDEST_INPUT),
            BW=block_width(width, WIDEST_HALF),
            num_stages=1,
        )
    return by


@kernel()
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
    key,
    F,
    S,
    OUT,
    KEPT: tl.constexpr,
    COMPACT: tl.constexpr,
    ACTIVATION: tl.constexpr,
    OVER: tl.constexpr,
    HAS_ROWS: tl.constexpr,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BF: tl.constexpr,
    BS: tl.constexpr,
):
    tile = tiles + 4 * tl.program_id(0).to(tl.int64)
    first, last, third = tl.load(tile), tl.load(tile + 1), tl.load(tile + 2)
    f, s = tl.arange(0, BF), tl.arange(0, BS)
    turned = tl.load(seed + f[None, :] * S + s[:, None], mask=(s < S)[:, None] & (f < F)[None, :], other=0)
    high, low = split(turned, PRECISION)
    for start in range(first, last, BM):
        position, inside, row = rows_at(rows, start, last, HAS_ROWS, BM)
        whole = inside[:, None] & (f < F)[None, :]
        if COMPACT:
            place = third + position - first
            total = tl.load(hub_sums + place[:, None] * F + f[None, :], mask=whole, other=0).to(tl.float32)
        else:
            total = gather_sum(z, z, pointer, neighbours, row, inside, f, F, third.to(tl.int32), False, BM, BF)
        left = drop(load_gradient(grad, out, row, inside, s, 0, S, OUT, ACTIVATION), key, row, s, KEPT)
        total += product(left.to(turned.dtype), high, low, PRECISION)
        if OVER:
            tl.debug_barrier()  # every thread has read these rows before any writes over them
        tl.store(by_x + row[:, None] * F + f[None, :], total.to(by_x.dtype.element_ty), mask=whole)


def input_backward(
    grad: Tensor,
    out: Tensor,
    z: Tensor,
    seed: Tensor,
    activation: str,
    graph: Graph,
    *,
    over: bool = False,
    noise: Noise | None = None,
) -> Tensor:
    """By the input: ``z``, the derivatives by the sums, summed along reversed edges, plus the part of the seeds.

    With ``over``, it is written over ``grad``, if that has as many columns.
    """
    grad, seed = grad.contiguous(), seed.contiguous()
    (pointer, neighbours), tiles = graph.back, graph.back_tiles
    columns = z.size(1)
    over = over and grad.shape == z.shape
    by_x = grad if over else torch.empty_like(z)
    same = arguments(noise) | {
        "ACTIVATION": ACTIVATIONS[activation],
        "OVER": over,
        "HAS_ROWS": tiles.rows.numel() > 0,
        "PRECISION": precision(z.dtype),
        "num_stages": 1,
        "BM": 32,  # fewer rows, more programs: the gather waits for memory
        "BF": block_width(columns, WIDEST_INPUT),
        "BS": block_width(seed.size(1), WIDEST_HALF),
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
                    F=columns,
                    S=seed.size(1),
                    OUT=grad.size(1),
                    COMPACT=compact,
                    **same,
                )
    return by_x
