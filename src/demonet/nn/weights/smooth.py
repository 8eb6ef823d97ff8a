"""Scheme ``smooth``: similar degrees have similar matrices."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from demonet.degree.layout import DegreeLayout
from demonet.degree.tasks import DegreeTasks
from demonet.nn.weights.base import DegreeWeights, enough_rows, glorot_, register
from demonet.ops import backend
from demonet.ops.sparse import csr


@register("smooth")
class SmoothWeights(DegreeWeights):
    r""":math:`W_s + \sum_b B_b(\log(1 + d)) V_b`: matrices that change smoothly with the degree.

    :math:`B_b` are linear B-splines (hats) on knots evenly spaced in log-degree between 0 and the largest degree of the
    tasks. Inside that range they sum to one, so this is :math:`\sum_b B_b W_b` with :math:`W_b = W_s + V_b`, written so
    that the shared and the degree-specific part can be decayed separately. Above the range they fade to zero over one
    knot's distance: a degree far beyond the largest has the shared matrix alone. For pairs of degrees the in- and the
    out-degree have splines of their own, and their terms add.

    Attributes:
        shared: ``[in_channels, width]``, :math:`W_s`.
        own: ``[basis (twice for pairs), in_channels, width]``, :math:`V_b`.
    """

    own: Tensor

    def __init__(
        self, in_channels: int, width: int, tasks: DegreeTasks, *, basis_size: int = 5, degree_scale: float = 1.0
    ) -> None:
        super().__init__(in_channels, width, tasks)
        self.basis_size, self.degree_scale = basis_size, degree_scale
        self._declare(shared=(), own=(basis_size * (2 if tasks.by == "pair" else 1),))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot for each matrix; the splines' are scaled by ``degree_scale``."""
        if not self.is_open:
            glorot_(self.shared)
            glorot_(self.own, self.degree_scale)

    def basis(self, degree: Tensor) -> Tensor:
        r"""``[len(degree), basis]``: :math:`B_b(\log(1 + d))`."""
        place = self._place(degree)
        knots = torch.arange(self.basis_size, dtype=place.dtype, device=place.device)
        return (1 - (place[..., None] - knots).abs()).clamp(min=0).flatten(1).to(self.shared.dtype)

    def _place(self, degree: Tensor) -> Tensor:
        """The log-degree, in distances of knots."""
        spacing = max(math.log1p(self.tasks.max_degree), 1.0) / (self.basis_size - 1)
        wide = torch.promote_types(self.shared.dtype, torch.float32)  # 16-bit floats cannot represent large degrees
        return torch.log1p(degree.to(wide)) / spacing

    def matrices(self, degree: Tensor) -> Tensor:
        r""":math:`W_s + \sum_b B_b V_b`."""
        return self._mixed(self.basis(degree))

    def _mixed(self, basis: Tensor) -> Tensor:
        mixed = torch.addmm(self.shared.view(1, -1), basis, self.own.flatten(1))
        return mixed.view(-1, self.in_channels, self.width)

    def for_groups(self, layout: DegreeLayout) -> Tensor | None:
        """The mixed matrices, where degrees have enough rows, or the matrices fit into the cache."""
        limits, entries = backend.current(), layout.degrees.size(0) * self.in_channels * self.width
        small = self.own.device.type == "cpu" and entries <= limits.mixed_entries and not backend.exporting()
        if not small and not enough_rows(limits.rows_per_mix, layout):
            return None
        return self._mixed(self._constant(layout.degrees, self.basis).to(self.own.dtype))

    def by_row(self, a: Tensor, degree: Tensor) -> Tensor:
        """One product with all :math:`V_b` side by side, mixed row by row."""
        basis = self.basis(degree)
        each = (a @ self.own.transpose(0, 1).flatten(1)).view(a.size(0), basis.size(1), self.width)
        return a @ self.shared + (each * basis.to(each.dtype)[..., None]).sum(1)

    def by_sparse(self, a: Tensor, degree: Tensor) -> Tensor:
        r"""One sparse product with the matrices of all knots stacked, :math:`W_s + V_b`, and :math:`W_s` beyond them.

        Between two knots, a matrix is a mean of those of both: each row reads two.
        """
        stacked = [self.shared + self.own[: self.basis_size], self.shared[None]]
        if self.tasks.by == "pair":  # the terms of the out-degree, without the shared matrix
            stacked += [self.own[self.basis_size :], torch.zeros_like(self.shared)[None]]
        return self._spread_product(a, degree, torch.cat(stacked).flatten(0, 1), self._spread)

    def _spread(self, a: Tensor, degree: Tensor) -> Tensor:
        """Every entry of a row in the columns of the knots below and above its degree, times their hats."""
        place = self._place(degree).clamp(max=self.basis_size)  # the shared matrix alone is one more knot
        below = place.floor().clamp(max=self.basis_size - 1)
        above = (place - below).view(a.size(0), -1)
        sides = torch.arange(above.size(1), device=above.device)
        first = below.long().view(a.size(0), -1) + sides * (self.basis_size + 1)
        knots, hats = torch.cat([first, first + 1], 1), torch.cat([1 - above, above], 1).to(a.dtype)
        row = torch.repeat_interleave(a.crow_indices().diff(), output_size=a.values().numel())
        columns = a.col_indices()[:, None] + knots[row] * self.in_channels
        values = a.values()[:, None] * hats[row]
        shape = a.size(0), above.size(1) * (self.basis_size + 1) * self.in_channels
        return csr(a.crow_indices() * knots.size(1), columns.flatten(), values.flatten(), shape)
