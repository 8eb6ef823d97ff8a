"""Batch norm, ReLU, a second map, ReLU and dropout on a CPU, a few thousand rows at a time (:mod:`demonet.ops.refine`).

Backward, the slope of a ReLU with dropout after it follows from the output alone: what is zero has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from demonet.ops import backend
from demonet.ops.noise import Noise

if TYPE_CHECKING:
    from demonet.ops.refine import Refine

_threshold = torch.ops.aten.threshold_backward.grad_input  # of a ReLU, by its output


def refine(y: Tensor, given: Refine, noise: Noise | None) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`demonet.ops.refine.definition`."""
    mean, variance = _moments(y)
    scale = torch.rsqrt(variance + given.eps).mul_(given.gamma)
    shift = torch.addcmul(given.beta, mean, scale, value=-1)
    out = y.new_empty(y.size(0), y.size(1) if given.weight is None else given.weight.size(0))
    factors = None if noise is None else noise.halves(y.size(0), out.size(1), 0, y.dtype)[0]
    for rows in _pieces(y):
        h = torch.addcmul(shift, y[rows], scale, out=out[rows] if given.weight is None else None).relu_()
        if given.weight is not None and given.bias is not None:
            h = torch.addmm(given.bias, h, given.weight.t(), out=out[rows]).relu_()
        if factors is not None:
            h.mul_(factors[rows])
    return out, mean, variance


def refine_backward(
    grad: Tensor, out: Tensor, y: Tensor, given: Refine, mean: Tensor, variance: Tensor, factor: float
) -> list[Tensor | None]:
    """The derivatives by y, gamma, beta, the second map and its bias.

    Args:
        grad: The derivative by the output.
        out, y, given, mean, variance: Output and input of :func:`refine`.
        factor: What dropout multiplied the kept entries by.
    """
    weight, n = given.weight, y.size(0)
    inverse = torch.rsqrt(variance + given.eps)
    scale = given.gamma * inverse
    shift = torch.addcmul(given.beta, mean, scale, value=-1)
    by_gamma, by_beta = torch.zeros_like(mean), torch.zeros_like(mean)
    by_weight, by_bias = None, None
    if weight is not None:
        by_weight, by_bias = torch.zeros_like(weight), weight.new_zeros(weight.size(0))
    by_y = torch.empty_like(y)
    for rows in _pieces(y):
        part, behind = y[rows], by_y[rows]
        if weight is None or by_weight is None or by_bias is None:
            _threshold(grad[rows], out[rows], 0, grad_input=behind)
        else:
            before = torch.ops.aten.threshold_backward(grad[rows], out[rows], 0)
            h = torch.addcmul(shift, part, scale).relu_()
            by_bias.add_(before.sum(0))
            by_weight.addmm_(before.t(), h)
            _threshold(torch.mm(before, weight, out=behind), h, 0, grad_input=behind)
        by_beta.add_(behind.sum(0))
        by_gamma.add_((part - mean).mul_(behind).sum(0))
    for by in (by_gamma.mul_(inverse), by_beta, by_weight, by_bias):
        if by is not None and factor != 1:
            by.mul_(factor)
    slope = scale * inverse * by_gamma / -n
    constant = torch.addcmul(scale * by_beta / -n, slope, mean, value=-1)
    scale.mul_(factor)
    for rows in _pieces(y):
        torch.addcmul(torch.addcmul(constant, y[rows], slope), by_y[rows], scale, out=by_y[rows])
    return [by_y, by_gamma, by_beta, by_weight, by_bias]


def _moments(y: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of every column, piece by piece: a part's deviations from its own mean, then that of means."""
    mean, squares, seen = y.new_zeros(y.size(1)), y.new_zeros(y.size(1)), 0
    for rows in _pieces(y):
        part = y[rows]
        count = part.size(0)
        own, variance = torch.batch_norm_update_stats(part, None, None, 0.0)  # faster than torch.var_mean
        squares.add_(variance, alpha=count)
        if seen == 0:
            mean, seen = own, count
            continue
        apart = own.sub_(mean)
        mean.add_(apart, alpha=count / (seen + count))
        squares.addcmul_(apart, apart, value=seen * count / (seen + count))
        seen += count
    return mean, squares.div_(seen)


def _pieces(y: Tensor) -> Iterator[slice]:
    step = backend.PIECE_ROWS
    return (slice(start, start + step) for start in range(0, y.size(0), step))
