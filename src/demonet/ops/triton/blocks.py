"""What all kernels share: codes of the activations, precision of products, the current device."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

ACTIVATIONS = {"none": 0, "elu": 1, "relu": 2}


def precision(dtype: torch.dtype) -> str:
    """Precision of products: float32 as three TF32 products, as precise as plain float32.

    These kernels are bound by memory, so single TF32 products would not be faster (measured), even where torch allows
    them. 16-bit operands are exact in the matrix units.
    """
    return "tf32x3" if dtype == torch.float32 else "ieee"


def on_device(x: Tensor) -> AbstractContextManager[object]:
    """Make the device of ``x`` current: Triton starts kernels there."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()
