"""Scheme ``scale``: the degree scales the columns of one shared matrix."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from demonet.degree.keep import Memo
from demonet.degree.tasks import DegreeTasks
from demonet.nn.weights.base import glorot_, register
from demonet.nn.weights.smooth import SplineWeights
from demonet.ops import backend
from demonet.ops.scale import Splines


@register("scale")
class ScaledWeights(SplineWeights):
    r""":math:`W \, \mathrm{diag}(1 + \gamma(d))`, and a bias :math:`\beta(d)`.

    :math:`\gamma` and :math:`\beta` are splines of the log-degree with a value for every output column, zero at the
    start (:class:`~demonet.nn.weights.smooth.SplineWeights`). It is the strongest sharing: a degree has
    :math:`2 \cdot 5` numbers a column. The product with W comes before the sum over neighbours where that is cheaper,
    and each row is multiplied once more: the cost of a layer without degrees.

    The parameters are the coefficients divided by their rates. Adam's steps have one length for all parameters, so
    :math:`\gamma` and :math:`\beta` move that much slower than W, and overfit less where labels are few. The rate of
    :math:`\beta` is in units of W's entries, as it is added to their products, which are small for wide rows.
    Weight decay on these parameters holds the degree term back by 1 / rate² as much as it would hold its values: give
    :meth:`degree_parameters` a group of their own in the optimiser where the degree should count for more.

    Attributes:
        rate: How fast :math:`\gamma` moves beside W.
        shift_rate: How fast :math:`\beta` moves, in standard deviations of the entries that Glorot draws for W.
        shared: ``[in_channels, width]``, :math:`W`.
        gamma: ``[splines, width]``, the coefficients of :math:`\gamma`, divided by their rate.
        shift: ``[splines, width]``, the coefficients of :math:`\beta`, divided by theirs.
    """

    rate = 0.03
    shift_rate = 0.2
    terms = ("degree",)
    stack_size = 1
    gamma: Tensor
    shift: Tensor

    def __init__(
        self, in_channels: int, width: int, tasks: DegreeTasks, *, basis_size: int = 5, init: str = "glorot"
    ) -> None:
        super().__init__(in_channels, width, tasks, basis_size)
        self.init = init
        self._known: Memo[Tensor] = Memo()
        self._declare(shared=())
        self.gamma = nn.Parameter(torch.zeros(self.num_splines, width))
        self.shift = nn.Parameter(torch.zeros(self.num_splines, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The matrix as PyG's layers draw theirs, see :class:`~demonet.DEMOConv`; the splines are zero."""
        if not self.is_open and self.init == "glorot":
            glorot_(self.shared)
        elif not self.is_open:
            nn.init.uniform_(self.shared, -(self.in_channels**-0.5), self.in_channels**-0.5)
        nn.init.zeros_(self.gamma)
        nn.init.zeros_(self.shift)

    def _own_names(self) -> list[str]:
        return ["gamma", "shift"]

    def scale(self, degree: Tensor) -> Tensor:
        r"""``[len(degree), width]``: :math:`\gamma(d)`."""
        return self.rate * self.basis(degree) @ self.gamma

    def offset(self, degree: Tensor) -> Tensor:
        r"""``[len(degree), width]``: :math:`\beta(d)`."""
        return self.rate * self.basis(degree) @ (self.shift * self.faster(self.in_channels))

    def matrices(self, degree: Tensor) -> Tensor:
        r""":math:`W \, \mathrm{diag}(1 + \gamma(d))`; the bias is :meth:`offset`."""
        return self.shared * (1 + self.scale(degree))[:, None]

    def by_row(self, a: Tensor, degree: Tensor) -> Tensor:
        """The product with the matrix, scaled and moved."""
        return self.finish(a @ self.shared, degree)

    def stack(self) -> Tensor:
        """The matrix."""
        return self.shared[None]

    def reads(self, degree: Tensor) -> tuple[Tensor, Tensor]:
        """All of the matrix."""
        zeros = torch.zeros(degree.size(0), 1, dtype=torch.long, device=degree.device)
        return zeros, torch.ones(zeros.shape, dtype=self.shared.dtype, device=degree.device)

    def splines(self, degree: Tensor) -> Splines:
        r"""Those of :math:`(1 + \gamma(d)) \odot y + \beta(d)`. The basis is kept while the degrees are the same."""
        basis: Tensor | None
        if backend.tracing():
            basis = self._rated_basis(degree)
        else:
            facts = self.shared.dtype, self.tasks.max_degree
            basis = self._known.get([degree], lambda: self._rated_basis(degree), facts=facts)
        assert basis is not None
        return Splines(basis, self.gamma, self.shift * self.faster(self.in_channels))

    def _rated_basis(self, degree: Tensor) -> Tensor:
        return self.rate * self.basis(degree)

    def faster(self, in_channels: int) -> float:
        r"""How much faster :math:`\beta` moves than :math:`\gamma`."""
        return self.shift_rate * (2 / (in_channels + self.width)) ** 0.5 / self.rate
