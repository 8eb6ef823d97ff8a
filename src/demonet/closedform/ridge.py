r"""Ridge regression on a kernel, its noise by leave-one-out, for the kernel machine and for members of the ensemble.

With :math:`G = (K + \sigma I)^{-1}` and :math:`\alpha = G Y` the residual of an item that is left out is
:math:`\alpha_i / G_{ii}`, so one eigendecomposition of K gives all of them for every noise :math:`\sigma`. An item of
weight w has the noise :math:`\sigma / w`, as if it were there w times; it is left out as a whole.
:math:`K + \sigma W^{-1}` is :math:`W^{1/2} K W^{1/2} + \sigma I` between two factors :math:`W^{-1/2}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from demonet.closedform.link import shares


class Solution(NamedTuple):
    """A ridge regression at its best noise: dual coefficients, outputs for unseen items and their squared error."""

    noise: float
    alpha: Tensor
    unseen: Tensor
    error: float


def solve(
    gram: Tensor,
    targets: Tensor,
    noises: Sequence[float],
    cross: Tensor | None = None,
    weight: Tensor | None = None,
) -> Solution:
    """The noise of least squared error, over items that are left out and validation items; the smallest of equals.

    Args:
        gram: ``[n, n]``, symmetric and positive semidefinite.
        targets: ``[n + m, C]``, of training items, then of validation items.
        noises: What to choose from, ascending.
        cross: ``[m, n]`` the kernel between validation and training items.
        weight: ``[n + m]`` of the items; None if all are 1.
    """
    known = targets[: len(gram)]
    gram, root = _weighted(gram, None if weight is None else weight[: len(gram)])
    tried = torch.as_tensor(noises, dtype=torch.float64).clamp(min=least_noise(gram))
    values, vectors = torch.linalg.eigh(gram)
    shrink = 1 / (values.clamp(min=0) + tried.to(values)[:, None])  # [noises, n]
    turned = vectors.T @ (root * known)
    shrunk = (shrink.T[:, :, None] * turned[:, None]).flatten(1)  # all noises side by side: one product for them all

    def apart(columns: Tensor) -> Tensor:
        return columns.unflatten(1, (len(tried), -1)).transpose(0, 1)

    alpha = vectors @ shrunk
    unseen = known - apart(alpha) / (root * (shrink @ vectors.square().T)[..., None])
    alpha = root * alpha
    if cross is not None:
        unseen = torch.cat([unseen, apart(cross @ alpha)], 1)
    share = 1.0 if weight is None else shares(weight)[:, None]
    errors = (share * (unseen - targets).square()).mean((1, 2))
    best = int((errors <= errors.min() + 1e-12).nonzero()[0])
    return Solution(float(tried[best]), apart(alpha)[best], unseen[best], float(errors[best]))


def least_noise(gram: Tensor) -> float:
    """The noise under which rounding would decide: the largest eigenvalue can be n times the mean of the diagonal."""
    return 8 * torch.finfo(gram.dtype).eps * len(gram) * float(gram.diagonal().mean())


def ridge(gram: Tensor, targets: Tensor, noise: float, weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Dual coefficients and leave-one-out predictions, each ``[n, C]``; ``weight`` of the items, None if all are 1."""
    gram, root = _weighted(gram, weight)
    identity = torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(gram + max(noise, least_noise(gram)) * identity))
    alpha = inverse @ (root * targets)
    return root * alpha, targets - alpha / (root * inverse.diagonal()[:, None])


def _weighted(gram: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor | float]:
    """The kernel between square roots of the weights, and these roots as a column."""
    if weight is None:
        return gram, 1.0
    root = weight.to(gram).sqrt()[:, None]
    return root * gram * root.T, root
