"""After: what follows the convolution of a deep layer, as one function where there is a kernel for it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from demonet.nn.dropout import Dropout
from demonet.ops.refine import Refine, applies, refine


class After(nn.Sequential):
    """A norm, an activation, and dropout; between the last two perhaps a second linear map and its activation.

    While training, batch norm with ReLU is one function (:mod:`demonet.ops.refine`), which draws the same numbers.
    """

    def forward(self, y: Tensor) -> Tensor:
        """Apply them, as one function where there is a kernel."""
        fused = self.fused()
        if fused is None or not applies(y, fused[1]):
            return super().forward(y)
        norm, given, drop = fused
        width = y.size(1) if given.weight is None else given.weight.size(0)
        noise = drop.noise(y.size(0), (width, 0), y) if drop.active else None
        out, mean, variance = refine(y, given, noise)
        keep_statistics(norm, mean, variance * (y.size(0) / (y.size(0) - 1)))
        return out

    def fused(self) -> tuple[nn.BatchNorm1d, Refine, Dropout] | None:
        """Norm, parameters and dropout, where all may be one function: batch norm with ReLU while training."""
        norm, activation, *second, drop = self
        if not (self.training and type(norm) is nn.BatchNorm1d and isinstance(activation, nn.ReLU)):
            return None
        assert isinstance(drop, Dropout)
        mapped: list[Any] = [second[0].weight, second[0].bias] if second else [None, None]
        return norm, Refine(norm.weight, norm.bias, mapped[0], mapped[1], norm.eps), drop


@torch.no_grad()
def keep_statistics(norm: nn.BatchNorm1d, mean: Tensor, variance: Tensor) -> None:
    """Move the running statistics of a norm towards a mean and an unbiased variance, as the norm itself does."""
    running_mean, running_variance, momentum = count_batch(norm)
    running_mean.lerp_(mean.to(running_mean.dtype), momentum)
    running_variance.lerp_(variance.to(running_variance.dtype), momentum)


def count_batch(norm: nn.BatchNorm1d) -> tuple[Tensor, Tensor, float]:
    """Count one more batch; the running mean and variance, which are to be moved, and by how much."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    assert norm.momentum is not None
    norm.num_batches_tracked.add_(1)
    return norm.running_mean, norm.running_var, norm.momentum
