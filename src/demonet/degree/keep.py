"""How everything is made that is kept for later calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def lasting() -> Iterator[None]:
    """Make tensors that any later call may use: not in inference mode, and without a graph of derivatives.

    A first call may be an evaluation under ``torch.inference_mode``. Training cannot save the tensors of that mode.
    """
    with torch.inference_mode(False), torch.no_grad():
        yield
