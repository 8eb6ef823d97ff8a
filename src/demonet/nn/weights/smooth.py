"""Scheme ``smooth``: similar degrees have similar matrices."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from demonet.degree.layout import DegreeLayout
from demonet.degree.tasks import DegreeTasks
from demonet.nn.weights.base import DegreeWeights, enough_rows, glorot_, register
from demonet.ops import backend


class SplineWeights(DegreeWeights):
    r"""What schemes with splines of the degree share.

    :math:`B_b` are linear B-splines (hats) on knots evenly spaced in log-degree between 0 and the largest degree of the
    tasks. Inside that range they sum to one. Above it they fade to zero over one knot's distance: a degree far beyond
    the largest has the shared matrix alone. For pairs of degrees the in- and the out-degree have splines of their own,
    and their terms add.
    """

    uses_tasks = False

    def __init__(self, in_channels: int, width: int, tasks: DegreeTasks, basis_size: int) -> None:
        super().__init__(in_channels, width, tasks)
        self.basis_size, self.num_splines = basis_size, basis_size * (2 if tasks.by == "pair" else 1)

    def basis(self, degree: Tensor) -> Tensor:
        r"""``[len(degree), splines]``: :math:`B_b(\log(1 + d))`."""
        place = self._place(degree)
        knots = torch.arange(self.basis_size, dtype=place.dtype, device=place.device)
        return (1 - (place[..., None] - knots).abs()).clamp(min=0).flatten(1).to(self.shared.dtype)

    def _place(self, degree: Tensor) -> Tensor:
        """The log-degree, in distances of knots."""
        spacing = max(math.log1p(self.tasks.max_degree), 1.0) / (self.basis_size - 1)
        wide = torch.promote_types(self.shared.dtype, torch.float32)  # 16-bit floats cannot represent large degrees
        return torch.log1p(degree.to(wide)) / spacing


@register("smooth")
class SmoothWeights(SplineWeights):
    r""":math:`W_s + \sum_b B_b(\log(1 + d)) V_b`: matrices that change smoothly with the degree.

    The splines are those of :class:`SplineWeights`. Where they sum to one this is :math:`\sum_b B_b W_b` with
    :math:`W_b = W_s + V_b`, written so that the shared and the degree-specific part can be decayed separately.

    Attributes:
        shared: ``[in_channels, width]``, :math:`W_s`.
        own: ``[basis (twice for pairs), in_channels, width]``, :math:`V_b`.
    """

    own: Tensor

    def __init__(
        self, in_channels: int, width: int, tasks: DegreeTasks, *, basis_size: int = 5, degree_scale: float = 1.0
    ) -> None:
        super().__init__(in_channels, width, tasks, basis_size)
        self.degree_scale, self.reads_each = degree_scale, 2 * self.num_splines // basis_size
        self._declare(shared=(), own=(self.num_splines,))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot for each matrix; the splines' are scaled by ``degree_scale``."""
        if not self.is_open:
            glorot_(self.shared)
            glorot_(self.own, self.degree_scale)

    def matrices(self, degree: Tensor) -> Tensor:
        r""":math:`W_s + \sum_b B_b V_b`."""
        return self._mixed(self.basis(degree))

    def _mixed(self, basis: Tensor) -> Tensor:
        mixed = torch.addmm(self.shared.view(1, -1), basis, self.own.flatten(1))
        return mixed.view(-1, self.in_channels, self.width)

    def for_groups(self, layout: DegreeLayout) -> Tensor | None:
        """The mixed matrices, where degrees have enough rows, or the matrices fit into the cache."""
        entries = layout.degrees.size(0) * self.in_channels * self.width
        small = self.own.device.type == "cpu" and entries <= backend.MIXED_ENTRIES and not backend.exporting()
        if not small and not enough_rows(backend.ROWS_PER_MIX, layout):
            return None
        return self._mixed(self._constant(layout.degrees, self.basis).to(self.own.dtype))

    def by_row(self, a: Tensor, degree: Tensor) -> Tensor:
        """One product with all :math:`V_b` side by side, mixed row by row."""
        basis = self.basis(degree)
        each = (a @ self.own.transpose(0, 1).flatten(1)).view(a.size(0), basis.size(1), self.width)
        return a @ self.shared + (each * basis.to(each.dtype)[..., None]).sum(1)

    @property
    def stack_size(self) -> int:  # type: ignore[override]
        """The matrix at every knot, and the shared one beyond them."""
        return self.num_splines + self.num_splines // self.basis_size

    def stack(self) -> Tensor:
        """:math:`W_s + V_b` at every knot, then :math:`W_s`; for pairs the terms of the out-degree follow."""
        stacked = [self.shared + self.own[: self.basis_size], self.shared[None]]
        if self.tasks.by == "pair":
            stacked += [self.own[self.basis_size :], torch.zeros_like(self.shared)[None]]
        return torch.cat(stacked)

    def reads(self, degree: Tensor) -> tuple[Tensor, Tensor]:
        """The knots below and above a degree: between two knots, a matrix is a mean of those of both."""
        place = self._place(degree).clamp(max=self.basis_size)  # the shared matrix alone is one more knot
        below = place.floor().clamp(max=self.basis_size - 1)
        above = (place - below).view(degree.size(0), -1)
        sides = torch.arange(above.size(1), device=above.device) * (self.basis_size + 1)
        first = below.long().view(degree.size(0), -1) + sides
        return torch.cat([first, first + 1], 1), torch.cat([1 - above, above], 1).to(self.shared.dtype)
