"""What all kernels share: codes of the activations, products and their precision, the current device."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
import triton
import triton.language as tl
from torch import Tensor

ACTIVATIONS = {"none": 0, "elu": 1, "relu": 2}


def precision(dtype: torch.dtype) -> str:
    """Precision of products: float32 as three TF32 products, as precise as plain float32.

    16-bit operands are exact in the matrix units.
    """
    return "tf32x3" if dtype == torch.float32 else "ieee"


@triton.jit
def split(y, PRECISION: tl.constexpr):
    """A TF32 number and the rest, for three TF32 products; otherwise the operand itself, twice."""
    high = y
    low = y
    if PRECISION == "tf32x3":
        # Rounded, not cut off: the product of both rests, which is left out, is a quarter of what it would be.
        high = ((y.to(tl.uint32, bitcast=True) + 0x1000) & 0xFFFFE000).to(tl.float32, bitcast=True)
        low = tl.where(high == y, 0.0, y - high)  # infinity has no rest
    return high, low


@triton.jit
def add_product(total, left_high, left_low, high, low, PRECISION: tl.constexpr):
    """``total`` plus the product of two operands that were :func:`split`, small terms first."""
    if PRECISION == "tf32x3":
        total = tl.dot(left_low, high, total, input_precision="tf32")
        total = tl.dot(left_high, low, total, input_precision="tf32")
        total = tl.dot(left_high, high, total, input_precision="tf32")
    else:
        total = tl.dot(left_high, high, total, input_precision=PRECISION)
    return total


@triton.jit
def product(y, high, low, PRECISION: tl.constexpr):
    """Rows times a matrix that was :func:`split` once for many of them: that takes as long as a product."""
    own_high, own_low = split(y, PRECISION)
    return add_product(tl.zeros([y.shape[0], high.shape[1]], tl.float32), own_high, own_low, high, low, PRECISION)


def on_device(x: Tensor) -> AbstractContextManager[object]:
    """Make the device of ``x`` current: Triton starts kernels there."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()
