"""A whole convolution in one kernel: gather, sum, seed product, degree-grouped product, bias, activation (Eq. 5-7)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from demonet.degree.tiles import TILE, Groups, Tiles
from demonet.ops.triton.blocks import ACTIVATIONS, block, on_device, precision
from demonet.ops.triton.gather import AGGR, gather_sum, list_scale, sum_long

GATHER, COMPACT, ROWS = 0, 1, 2  # where a tile finds its sums: in the lists, among the hubs', in its own rows


@triton.jit
def activate(y, ACTIVATION: tl.constexpr):
    """ELU, ReLU or nothing."""
    if ACTIVATION == 1:
        return tl.where(y > 0, y, tl.exp(tl.minimum(y, 0.0)) - 1.0)
    if ACTIVATION == 2:
        return tl.maximum(y, 0.0)
    return y


@triton.jit
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
    F,
    S,
    W,
    OUT,
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
    first = tl.load(tile)
    position = first + tl.arange(0, BM)
    inside = position < tl.load(tile + 1)
    third, group = tl.load(tile + 2), tl.load(tile + COLUMNS - 1)
    row = position
    if HAS_ROWS:
        row = tl.load(rows + position, mask=inside, other=0)
    f, s, w = tl.arange(0, BF), tl.arange(0, BS), tl.arange(0, BW)
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
    W0 = tl.load(seed + f[:, None] * S + s[None, :], mask=(f < F)[:, None] & (s < S)[None, :], other=0)
    Wd = tl.load(
        matrices + group * F * W + f[:, None] * W + w[None, :], mask=(f < F)[:, None] & (w < W)[None, :], other=0
    )
    left = tl.dot(own, W0, input_precision=PRECISION)
    right = tl.dot(total, Wd, input_precision=PRECISION)
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
        out + row[:, None] * OUT + s[None, :], left.to(out.dtype.element_ty), mask=inside[:, None] & (s < S)[None, :]
    )


def gather_conv(
    x: Tensor,
    seed: Tensor,
    matrices: Tensor,
    bias: Tensor | None,
    aggr: str,
    combine: str,
    activation: str,
    pointer: Tensor,
    neighbours: Tensor,
    tiles: Tiles,
    *,
    keep: bool,
) -> tuple[Tensor, Tensor]:
    """One convolution of all rows; also the sums over the lists, where ``keep`` asks for them (else empty).

    Args:
        x: ``[n, F]``.
        seed: ``[F, S]``.
        matrices: ``[groups, F, W]``.
        bias: ``[S + W]``, or ``[W]`` when the halves are added, or None.
        aggr, combine, activation: As the layer has them.
        pointer, neighbours, tiles: The graph.
        keep: Whether the sums are wanted.
    """
    x = x.contiguous()
    kept = torch.empty_like(x) if keep else x.new_empty(0, x.size(1))
    start = _Start(x, seed, matrices, bias, combine, activation, kept, tiles.rows, pointer, neighbours, AGGR[aggr])
    with on_device(x):
        if tiles.hubs.numel():
            start(tiles.long, COMPACT, sum_long(x, pointer, neighbours, None, aggr, tiles, None))
        start(tiles.short, GATHER, x)
    return start.out, kept


def rows_conv(
    x: Tensor,
    a: Tensor,
    seed: Tensor,
    matrices: Tensor,
    bias: Tensor | None,
    combine: str,
    activation: str,
    groups: Groups,
) -> Tensor:
    """One convolution of all rows, whose sums ``a [n, F]`` are known; the rest as in :func:`gather_conv`."""
    x = x.contiguous()
    start = _Start(x, seed, matrices, bias, combine, activation, None, None, None, None, 0)
    with on_device(x):
        start(groups.tiles, ROWS, a.contiguous())
    return start.out


class _Start:
    """Starts the kernel on one table of tiles after another; all write into one output."""

    def __init__(
        self,
        x: Tensor,
        seed: Tensor,
        matrices: Tensor,
        bias: Tensor | None,
        combine: str,
        activation: str,
        kept: Tensor | None,
        rows: Tensor | None,
        pointer: Tensor | None,
        neighbours: Tensor | None,
        aggr: int,
    ) -> None:
        columns, S, W = x.size(1), seed.size(1), matrices.size(2)
        self.out = x.new_empty(x.size(0), W if combine == "add" else S + W)
        self._before = (x, seed.contiguous(), matrices.contiguous(), bias, self.out, kept)
        self._after = (rows, pointer, neighbours, columns, S, W, self.out.size(1))
        self._options = {
            "AGGR": aggr,
            "ACTIVATION": ACTIVATIONS[activation],
            "ADD": combine == "add",
            "HAS_BIAS": bias is not None,
            "KEEP": kept is not None and kept.size(0) > 0,
            "HAS_ROWS": rows is not None and rows.numel() > 0,
            "PRECISION": precision(x.dtype),
            "BM": TILE,
            "BF": block(columns, 256),
            "BS": block(S, 128),
            "BW": block(W, 128),
        }

    def __call__(self, tiles: Tensor, source: int, sums: Tensor) -> None:
        if tiles.size(0):
            grid = (tiles.size(0),)
            _conv_kernel[grid](
                *self._before, sums, tiles, *self._after, SOURCE=source, COLUMNS=tiles.size(1), **self._options
            )
