r"""Ridge regression on a kernel, its noise by leave-one-out, for the kernel machine and for members of the ensemble.

With :math:`G = (K + \sigma I)^{-1}` and :math:`\alpha = G Y` the residual of an item that is left out is
:math:`\alpha_i / G_{ii}`, so one eigendecomposition of K gives all of them for every noise :math:`\sigma`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Solution(NamedTuple):
    """A ridge regression at its best noise: dual coefficients, outputs for unseen items and their squared error."""

    noise: float
    alpha: Tensor
    unseen: Tensor
    error: float


def solve(gram: Tensor, targets: Tensor, noises: Sequence[float], cross: Tensor | None = None) -> Solution:
    """The noise of least squared error, over items that are left out and validation items; the smallest of equals.

    Args:
        gram: ``[n, n]``, symmetric and positive semidefinite.
        targets: ``[n + m, C]``, of training items, then of validation items.
        noises: What to choose from, ascending.
        cross: ``[m, n]`` the kernel between validation and training items.
    """
    known = targets[: len(gram)]
    tried = torch.as_tensor(noises, dtype=torch.float64).clamp(min=least_noise(gram))
    values, vectors = torch.linalg.eigh(gram)
    shrink = 1 / (values.clamp(min=0) + tried.to(values)[:, None])  # [noises, n]
    turned = vectors.T @ known
    shrunk = (shrink.T[:, :, None] * turned[:, None]).flatten(1)  # all noises side by side: one product for them all

    def apart(columns: Tensor) -> Tensor:
        return columns.unflatten(1, (len(tried), -1)).transpose(0, 1)

    alpha = vectors @ shrunk
    unseen = known - apart(alpha) / (shrink @ vectors.square().T)[..., None]
    if cross is not None:
        unseen = torch.cat([unseen, apart(cross @ alpha)], 1)
    errors = (unseen - targets).square().mean((1, 2))
    best = int((errors <= errors.min() + 1e-12).nonzero()[0])
    return Solution(float(tried[best]), apart(alpha)[best], unseen[best], float(errors[best]))


def least_noise(gram: Tensor) -> float:
    """The noise under which rounding would decide: the largest eigenvalue can be n times the mean of the diagonal."""
    return 8 * torch.finfo(gram.dtype).eps * len(gram) * float(gram.diagonal().mean())


def ridge(gram: Tensor, targets: Tensor, noise: float) -> tuple[Tensor, Tensor]:
    """Dual coefficients and leave-one-out predictions, each ``[n, C]``."""
    identity = torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(gram + max(noise, least_noise(gram)) * identity))
    alpha = inverse @ targets
    return alpha, targets - alpha / inverse.diagonal()[:, None]
