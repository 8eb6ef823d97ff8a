r"""Batch normalisation over the rows of all processes.

Torch's ``SyncBatchNorm`` needs GPUs. Mean and variance are put together from those of the processes,

.. math:: \mu = \sum_p \frac{n_p}{n} \mu_p, \qquad
    \sigma^2 = \sum_p \frac{n_p}{n} \left(\sigma_p^2 + (\mu_p - \mu)^2\right)

and the derivative by the rows needs two sums over all rows.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from demonet.distributed.group import gathered, total
from demonet.nn.fused import keep_statistics
from demonet.nn.models import DegreeNetwork


class BatchNorm(nn.BatchNorm1d):
    """``nn.BatchNorm1d`` with the statistics of all processes; its state is the same."""

    def _get_name(self) -> str:
        return "BatchNorm1d"  # a checkpoint does not depend on the number of processes

    def forward(self, x: Tensor) -> Tensor:
        """Normalise rows."""
        if not self.training:
            return super().forward(x)
        own = torch.zeros(3, x.size(1), dtype=torch.float64, device=x.device)
        if x.size(0):
            variance, mean = torch.var_mean(x.detach(), 0, correction=0)
            own = torch.stack([torch.full_like(mean, x.size(0)), mean, variance]).double()
        count, means, variances = gathered(own).unbind(1)
        rows = count.sum(0)
        mean = (count * means).sum(0) / rows
        variance = (count * (variances + (means - mean).square())).sum(0) / rows
        keep_statistics(self, mean, variance * rows / (rows - 1))
        inverse = (variance + self.eps).rsqrt()
        out: Tensor = _Normalise.apply(x, mean.to(x.dtype), inverse.to(x.dtype), self.weight, self.bias, rows)
        return out


class _Normalise(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, mean: Tensor, inverse: Tensor, weight: Tensor, bias: Tensor, rows: Tensor
    ) -> Tensor:
        scale = inverse * weight
        ctx.save_for_backward(x, mean, inverse, weight, rows)
        return torch.addcmul(bias - mean * scale, x, scale)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, mean, inverse, weight, rows = ctx.saved_tensors
        normal = (x - mean) * inverse
        by_weight, by_bias = (grad * normal).sum(0), grad.sum(0)
        all_weight, all_bias = (total(torch.stack([by_weight, by_bias])) / rows.to(x.dtype)).unbind()
        by_x = (grad - all_bias - normal * all_weight) * (inverse * weight)
        return by_x, None, None, by_weight, by_bias, None


def share_norms(model: DegreeNetwork) -> None:
    """Let every batch normalisation of a model see the rows of all processes; parameters and state stay.

    The bias of a convolution before a normalisation changes nothing: the mean is subtracted again, and its derivative
    is zero. What is computed of it is rounding, of which Adam makes steps of full length, others for each number of
    processes. So it is set to zero.
    """
    for layer in model.hidden_layers():
        norm = None if layer.after is None else layer.after[0]
        if layer.after is None or type(norm) is not nn.BatchNorm1d:
            continue
        shared = BatchNorm(norm.num_features, norm.eps, norm.momentum)
        shared.__dict__.update(norm.__dict__)
        layer.after[0] = shared
        if layer.conv.bias is not None:
            layer.conv.bias.register_hook(torch.zeros_like)
