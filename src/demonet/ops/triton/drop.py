"""Dropout in Triton: the factors of entries follow from a key, so that none are stored (:mod:`demonet.ops.noise`)."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from demonet.ops.noise import Noise, chances
from demonet.ops.schedule.gpu import block_width
from demonet.ops.triton.blocks import kernel, on_device


@triton.jit
def _mix(bits):
    bits = (bits ^ (bits >> 16)) * 0x7FEB352D
    bits = (bits ^ (bits >> 15)) * 0x846CA68B
    return bits ^ (bits >> 16)


@triton.jit
def drop(y, key, row, column, KEPT: tl.constexpr):
    """A tile times its factors: ``row [BM]`` and ``column [BF]`` are the places of its entries; all kept if 0."""
    if KEPT != 0:  # without an early return, after which the compiler would go on to read a key that is None
        of_row = _mix(row.to(tl.uint32) ^ tl.load(key).to(tl.uint32))
        of_column = column.to(tl.uint32) * 0x9E3779B9 + tl.load(key + 1).to(tl.uint32)
        kept = _mix(of_row[:, None] + of_column[None, :]) < KEPT
        y = tl.where(kept, y * (4294967296.0 / KEPT), 0.0)
    return y


@kernel()
def _drop_kernel(x, key, out, n, F, KEPT: tl.constexpr, BM: tl.constexpr, BF: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BF + tl.arange(0, BF)
    mask = (row < n)[:, None] & (column < F)[None, :]
    at = row[:, None] * F + column[None, :]
    y = drop(tl.load(x + at, mask=mask, other=0).to(tl.float32), key, row, column, KEPT)
    tl.store(out + at, y.to(out.dtype.element_ty), mask=mask)


def dropout(x: Tensor, noise: Noise) -> Tensor:
    """``[n, F]`` rows times the factors of a key."""
    x = x.contiguous()
    out = torch.empty_like(x)
    wide = block_width(x.size(1), 128)
    if x.numel():
        with on_device(x):
            _drop_kernel[(triton.cdiv(x.size(0), 64), triton.cdiv(x.size(1), wide))](
                x, noise.values, out, x.size(0), x.size(1), KEPT=chances(noise.p), BM=64, BF=wide
            )
    return out


def arguments(noise: Noise | None) -> dict[str, Any]:
    """What kernels with dropout take: a key and the number of values that keep an entry, 0 without dropout."""
    if noise is None:
        return {"key": None, "KEPT": 0}
    return {"key": noise.values, "KEPT": chances(noise.p)}
