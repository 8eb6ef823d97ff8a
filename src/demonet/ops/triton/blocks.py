"""What all kernels share: sizes of blocks, precision of products, the right device."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
import triton
from torch import Tensor

ACTIVATIONS = {"none": 0, "elu": 1, "relu": 2}
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def block(width: int, largest: int) -> int:
    """The power of two that covers a width, between 16 (the least a matrix unit takes) and ``largest``."""
    return min(largest, max(16, triton.next_power_of_2(width)))


def precision(dtype: torch.dtype) -> str:
    """How float32 is multiplied: in TF32 where torch is told so, else as three TF32 products, which lose nothing."""
    if dtype != torch.float32:
        return "ieee"  # 16-bit operands are exact in the matrix units, and sums are float32
    return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "tf32x3"


def on_device(x: Tensor) -> AbstractContextManager[object]:
    """Kernels start on the current device: make it the one that holds ``x``."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()
