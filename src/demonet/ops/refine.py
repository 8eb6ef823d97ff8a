r"""What follows a convolution in a deep layer: batch norm, ReLU, a second map, ReLU and dropout, as one function.

.. math:: h_v = \epsilon_v \, \mathrm{relu}(W \, \mathrm{relu}(\gamma \hat y_v + \beta) + b), \qquad
          \hat y_v = (y_v - \mu) / \sqrt{\sigma^2 + \varepsilon}

Mean and variance are those of all rows. The map and its ReLU may be left out. One by one, these five operators write
and read every row ten times; here only the input, the output and one derivative are stored.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from demonet.ops import backend, cpu_refine, reference
from demonet.ops.noise import Noise, apart, joined
from demonet.ops.schedule.gpu import WIDEST_HALF


class Refine(NamedTuple):
    """Parameters.

    Attributes:
        gamma, beta: ``[F]``, scale and shift of the norm.
        weight, bias: ``[F', F]`` and ``[F']`` of the second map, or None.
        eps: :math:`\varepsilon`.
    """

    gamma: Tensor
    beta: Tensor
    weight: Tensor | None
    bias: Tensor | None
    eps: float


def definition(y: Tensor, given: Refine, noise: Noise | None) -> tuple[Tensor, Tensor, Tensor]:
    """The output, the mean and the variance, in plain PyTorch."""
    mean, variance = y.mean(0), y.var(0, correction=0)
    h = torch.relu((y - mean) * torch.rsqrt(variance + given.eps) * given.gamma + given.beta)
    if given.weight is not None:
        h = torch.relu(F.linear(h, given.weight, given.bias))
    h = h if noise is None else h * noise.halves(h.size(0), h.size(1), 0, h.dtype)[0]
    return h, mean, variance


def applies(y: Tensor, given: Refine) -> bool:
    """Whether :func:`refine` has a kernel for the rows."""
    if y.size(0) < 2 or y.size(1) == 0 or torch.is_autocast_enabled(y.device.type) or not backend.eager(y):
        return False
    if backend.family(y) == "cpu":
        return y.dtype in (torch.float32, torch.float64)
    widest = max(y.size(1), 0 if given.weight is None else given.weight.size(0))
    return widest <= WIDEST_HALF


def refine(y: Tensor, given: Refine, noise: Noise | None) -> tuple[Tensor, Tensor, Tensor]:
    r""":func:`definition`; mean and variance have no derivative here.

    Args:
        y: ``[n, F]``.
        given: The parameters.
        noise: :math:`\epsilon`, or None.
    """
    found: tuple[Tensor, Tensor, Tensor] = _Refine.apply(y, *given[:4], given.eps, noise)
    return found


class _Refine(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        y: Tensor,
        gamma: Tensor,
        beta: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        eps: float,
        noise: Noise | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        out, mean, variance = _kernels(y).refine(y, Refine(gamma, beta, weight, bias, eps), noise)
        ctx.mark_non_differentiable(mean, variance)
        ctx.eps, (values, ctx.noise) = eps, apart(noise)
        ctx.save_for_backward(y, gamma, beta, weight, bias, out, mean, variance, values)
        return out, mean, variance

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _by_mean: None, _by_variance: None) -> tuple[Any, ...]:
        y, *saved = ctx.saved_tensors
        parameters, (out, mean, variance, values) = saved[:4], saved[4:]
        noise = joined(values, ctx.noise)
        given = Refine(parameters[0], parameters[1], parameters[2], parameters[3], ctx.eps)
        if torch.is_grad_enabled():  # a derivative of the derivative is asked for
            by = reference.derivatives([definition(y, given, noise)[0]], [y, *parameters], [grad])
        else:
            scale = 1.0 if noise is None else noise.scale
            by = _kernels(y).refine_backward(grad.contiguous(), out, y, given, mean, variance, scale)
        return *by, None, None


def _kernels(y: Tensor) -> Any:
    if backend.family(y) == "cpu":
        return cpu_refine
    from demonet.ops.triton import refine as on_gpu

    return on_gpu
