r"""The matrices of Eq. 10, :math:`W[\xi_1^d] \odot \xi_2^d + W[\xi_1^g] \odot \xi_2^g`, picked from W row by row.

Written as lists, every row of a degree's matrix is a signed sum of two rows of W, and the derivative by a row of W is a
signed sum over the rows that picked it: both are sums over neighbours, which a CPU has in one call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from demonet.degree.lists import neighbour_lists
from demonet.ops import cpu


class Picks(NamedTuple):
    """Which rows are picked, with which sign; and, going back, by which.

    Attributes:
        pointer, chosen, sign: The rows of W that each row of the matrices adds up.
        back_pointer, back_chosen, back_sign: The rows of the matrices that each row of W is part of.
    """

    pointer: Tensor
    chosen: Tensor
    sign: Tensor
    back_pointer: Tensor
    back_chosen: Tensor
    back_sign: Tensor

    @classmethod
    def of(cls, own: tuple[Tensor, Tensor], shared: tuple[Tensor, Tensor], like: Tensor) -> Picks:
        r"""From :math:`\xi_1, \xi_2` of every degree, each ``[degrees, F]``, and of all, each ``[F]``; like W."""
        place, sign = (
            torch.stack([one, other.expand_as(one)]).flatten() for one, other in zip(own, shared, strict=True)
        )
        rows, size, sign = own[0].numel(), like.size(0), sign.to(like.dtype)
        row = torch.arange(rows).repeat(2)
        pointer, chosen, arc = neighbour_lists(place, row, size, rows)
        back_pointer, back_chosen, back_arc = neighbour_lists(row, place, rows, size)
        return cls(pointer, chosen, sign[arc], back_pointer, back_chosen, sign[back_arc])


class Picked(torch.autograd.Function):
    """``[rows, width]`` the picked rows of ``weight [size, width]``."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, picks: Picks) -> Tensor:
        """The sums."""
        ctx.picks = picks
        return cpu.aggregate(weight, picks.pointer, picks.chosen, picks.sign, "sum")

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """Their derivative."""
        picks = ctx.picks
        return cpu.aggregate(grad, picks.back_pointer, picks.back_chosen, picks.back_sign, "sum"), None
