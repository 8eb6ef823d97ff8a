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
    """How products are taken: float32 as three TF32 products, which lose nothing beside plain float32.

    They do not slow a kernel down that waits for memory, so there is no reason to give away precision where torch
    would allow single TF32 products (measured slower here). 16-bit operands are exact in the matrix units.
    """
    return "tf32x3" if dtype == torch.float32 else "ieee"


def on_device(x: Tensor) -> AbstractContextManager[object]:
    """Kernels start on the current device: make it the one that holds ``x``."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()
