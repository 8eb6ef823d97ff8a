"""A whole convolution in one kernel: gather, sum, both products, dropout, bias, activation (Eq. 5-7)."""

from __future__ import annotations

import torch
import triton.language as tl
from torch import Tensor

from demonet.ops.graph import Graph, Options, Weights
from demonet.ops.noise import Noise
from demonet.ops.schedule.gpu import TILE_ROWS, WIDEST_HALF, WIDEST_INPUT, block_width
from demonet.ops.triton.blocks import ACTIVATIONS, kernel, on_device, precision, product, split
from demonet.ops.triton.drop import arguments, drop
from demonet.ops.triton.ends import activate
from demonet.ops.triton.gather import AGGR, gather_sum, list_scale, rows_at, sum_long

GATHER, COMPACT, ROWS = 0, 1, 2  # the sums of a tile: over its lists, precomputed for hubs, given for every row


@kernel()
def _conv_kernel(
    x,
    seed,
    matrices,
    bias,
    out,
    kept,
    a,
    tiles,
    rows,
    pointer,
    neighbours,
    key,
    F,
    S,
    W,
    OUT,
    KEPT: tl.constexpr,
    SOURCE: tl.constexpr,
    COLUMNS: tl.constexpr,
    AGGR: tl.constexpr,
    ACTIVATION: tl.constexpr,
    ADD: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    KEEP: tl.constexpr,
    HAS_ROWS: tl.constexpr,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BF: tl.constexpr,
    BS: tl.constexpr,
    BW: tl.constexpr,
):
    tile = tiles + COLUMNS * tl.program_id(0).to(tl.int64)
    first, last = tl.load(tile), tl.load(tile + 1)
    third, group = tl.load(tile + 2), tl.load(tile + COLUMNS - 1)
    f, s, w = tl.arange(0, BF), tl.arange(0, BS), tl.arange(0, BW)
    W0 = tl.load(seed + f[:, None] * S + s[None, :], mask=(f < F)[:, None] & (s < S)[None, :], other=0)
    Wd = tl.load(
        matrices + group * F * W + f[:, None] * W + w[None, :], mask=(f < F)[:, None] & (w < W)[None, :], other=0
    )
    seed_high, seed_low = split(W0, PRECISION)
    high, low = split(Wd, PRECISION)
    for start in range(first, last, BM):
        position, inside, row = rows_at(rows, start, last, HAS_ROWS, BM)
        whole = inside[:, None] & (f < F)[None, :]
        own = tl.load(x + row[:, None] * F + f[None, :], mask=whole, other=0)
        if SOURCE == 0:
            total = gather_sum(x, x, pointer, neighbours, row, inside, f, F, third.to(tl.int32), False, BM, BF)
            total = (total * list_scale(third, AGGR)).to(own.dtype)
        elif SOURCE == 1:
            place = third + position - first
            total = tl.load(a + place[:, None] * F + f[None, :], mask=whole, other=0)
        else:
            total = tl.load(a + row[:, None] * F + f[None, :], mask=whole, other=0)
        if KEEP:
            tl.store(kept + row[:, None] * F + f[None, :], total, mask=whole)
        left = drop(product(own, seed_high, seed_low, PRECISION), key, row, s, KEPT)
        right = drop(product(total, high, low, PRECISION), key, row, S + w, KEPT)
        if ADD:
            left += right
        else:
            if HAS_BIAS:
                right += tl.load(bias + S + w, mask=w < W, other=0).to(tl.float32)[None, :]
            right = activate(right, ACTIVATION)
            tl.store(
                out + row[:, None] * OUT + S + w[None, :],
                right.to(out.dtype.element_ty),
                mask=inside[:, None] & (w < W)[None, :],
            )
        if HAS_BIAS:
            left += tl.load(bias + s, mask=s < S, other=0).to(tl.float32)[None, :]
        left = activate(left, ACTIVATION)
        tl.store(
            out + row[:, None] * OUT + s[None, :],
            left.to(out.dtype.element_ty),
            mask=inside[:, None] & (s < S)[None, :],
        )


def conv(
    x: Tensor, a: Tensor | None, weights: Weights, graph: Graph, options: Options, noise: Noise | None = None
) -> tuple[Tensor, Tensor]:
    """:func:`demonet.ops.reference.conv`: the output and the sums (empty where they are neither given nor kept)."""
    x = x.contiguous()
    seed, matrices, bias = weights.seed.contiguous(), weights.matrices.contiguous(), weights.bias
    columns, S, W = x.size(1), seed.size(1), matrices.size(2)
    out = x.new_empty(x.size(0), weights.width(options.combine))
    blocks = {"BF": block_width(columns, WIDEST_INPUT), "BS": block_width(S, WIDEST_HALF)}
    blocks["BW"] = block_width(W, WIDEST_HALF)
    keep = a is None and options.keep
    kept = torch.empty_like(x) if keep else x.new_empty(0, columns)
    same = arguments(noise) | {
        "AGGR": AGGR[options.aggr],
        "ACTIVATION": ACTIVATIONS[options.activation],
        "ADD": options.combine == "add",
        "HAS_BIAS": bias is not None,
        "KEEP": keep,
        "HAS_ROWS": a is None and graph.tiles.rows.numel() > 0,
        "PRECISION": precision(x.dtype),
        **blocks,
    }
    # Beside wide matrices, shared memory has room for fewer rows, and none for those that are loaded ahead.
    wide = blocks["BF"] * (blocks["BS"] + blocks["BW"]) * x.element_size() > 2**15
    same |= {"BM": 32 if wide else TILE_ROWS, "num_stages": 1 if wide else 2}

    def start(tiles: Tensor, source: int, sums: Tensor) -> None:
        if tiles.size(0):
            lists = (None, None, None) if a is not None else (graph.tiles.rows, graph.pointer, graph.neighbours)
            _conv_kernel[(tiles.size(0),)](
                *(x, seed, matrices, bias, out, kept, sums, tiles, *lists),
                F=columns,
                S=S,
                W=W,
                OUT=out.size(1),
                SOURCE=source,
                COLUMNS=tiles.size(1),
                **same,
            )

    with on_device(x):
        if a is not None:
            start(graph.groups.tiles, ROWS, a.contiguous())
            return out, a
        if graph.tiles.hubs.numel():
            start(graph.tiles.long, COMPACT, sum_long(x, *graph.lists, None, options.aggr, graph.tiles, None))
        start(graph.tiles.short, GATHER, x)
    return out, kept
