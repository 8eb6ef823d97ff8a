r"""The head of a graph model as one function on a CPU: batch norm, a map, ReLU, dropout and a second map.

.. math:: s = V \big(\epsilon \, \mathrm{relu}(W (\gamma \hat r + \beta) + b)\big) + c

There is one row for each graph of a batch, so that calls would take longer than the arithmetic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from demonet.ops import reference
from demonet.ops.noise import Noise


class Head(NamedTuple):
    """Parameters.

    Attributes:
        gamma, beta: ``[F]``, scale and shift of the norm.
        weight, bias: ``[F', F]`` and ``[F']`` of the first map.
        weight2, bias2: ``[classes, F']`` and ``[classes]`` of the second.
    """

    gamma: Tensor
    beta: Tensor
    weight: Tensor
    bias: Tensor
    weight2: Tensor
    bias2: Tensor


class Fixed(NamedTuple):
    """What has no derivative.

    Attributes:
        running: Running mean and variance of the norm, which are moved, and the momentum by which they are.
        eps: Of the norm.
        noise: The factors of dropout, or None.
    """

    running: tuple[Tensor, Tensor, float]
    eps: float
    noise: Noise | None


def definition(r: Tensor, head: Head, fixed: Fixed) -> Tensor:
    """The scores in plain PyTorch; no running statistic is moved."""
    variance, mean = torch.var_mean(r, 0, correction=0)
    z = (r - mean) * torch.rsqrt(variance + fixed.eps) * head.gamma + head.beta
    h = torch.relu(F.linear(z, head.weight, head.bias))
    h = h if fixed.noise is None else h * fixed.noise.values.view(h.shape)
    return F.linear(h, head.weight2, head.bias2)


def scores(r: Tensor, head: Head, fixed: Fixed) -> Tensor:
    """``[rows, classes]``: :func:`definition`.

    Args:
        r: ``[rows, F]``, at least two rows.
        head: The parameters.
        fixed: What has no derivative.
    """
    out: Tensor = _Scores.apply(fixed, r, *head)
    return out


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, fixed: Fixed, r: Tensor, *parameters: Tensor) -> Tensor:
        gamma, beta, weight, bias, weight2, bias2 = parameters
        running_mean, running_variance, momentum = fixed.running
        z, *ctx.moments = torch.native_batch_norm(
            r, gamma, beta, running_mean, running_variance, True, momentum, fixed.eps
        )
        h = torch.addmm(bias, z, weight.t()).relu_()
        if fixed.noise is not None:
            h.mul_(fixed.noise.values.view(h.shape))
        ctx.fixed, ctx.z, ctx.h = fixed, z, h
        ctx.save_for_backward(r, *parameters)
        return torch.addmm(bias2, h, weight2.t())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        r, *parameters = ctx.saved_tensors
        needs, found = ctx.needs_input_grad[1:], list[Tensor | None]()
        if torch.is_grad_enabled():
            out = definition(r, Head(*parameters), ctx.fixed)
            found = reference.derivatives([out], [r, *parameters], [grad])
        else:
            gamma, _, weight, _, weight2, _ = parameters
            behind = torch.ops.aten.threshold_backward(grad @ weight2, ctx.h, 0)  # what was dropped is zero
            if ctx.fixed.noise is not None:
                behind.mul_(ctx.fixed.noise.scale)
            by_r = torch.ops.aten.native_batch_norm_backward(
                behind @ weight, r, gamma, None, None, *ctx.moments, True, ctx.fixed.eps, [True, True, True]
            )
            found = [*by_r, behind.t() @ ctx.z, behind.sum(0), grad.t() @ ctx.h, grad.sum(0)]
        return None, *(by if need else None for by, need in zip(found, needs, strict=True))
