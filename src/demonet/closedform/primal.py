r"""The node kernel in the primal: a linear model on explicit features, where a Gram matrix would not fit.

The features of the linear kernel are :math:`[\sqrt{s_0}\, x, \sqrt{s_g}\, a, \sqrt{s_d}\, L_1(d) a, \dots,
\sqrt{s_d}\, L_r(d) a, \sqrt{s_b}\, L(d), \phi, \sqrt{s_c}]` with :math:`\kappa = L L'` over the distinct
degrees (a Gaussian of log-degree has a numerical rank of about ten), and :math:`\phi` Nyström features of the
structural term. Ridge regression on them equals the dual solution.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from demonet.closedform.nodes import Array, NodeRows, NodeSetting, structural
from demonet.data.rows import is_sparse, to_torch
from demonet.errors import DemonetError

LANDMARKS = 300  # of the structural term
COLUMNS = 3000  # up to which the normal equations are solved as they are; beyond, by conjugate gradients
MANY = 20_000  # nodes from which on what depends on the degree alone is computed once for each degree
RANK = 1e-7  # eigenvalues of kappa below this share of the largest are dropped


class PrimalRidge:
    """Ridge regression on the explicit features of a linear node setting.

    Args:
        setting: A setting with ``height=0``.
        noise: The ridge.
        dtype, device: Of features and coefficients.
        tolerance: Relative residual at which the conjugate gradients stop, after at most ``steps``.
    """

    def __init__(
        self,
        setting: NodeSetting,
        noise: float,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
        *,
        tolerance: float = 1e-4,
        steps: int = 300,
    ) -> None:
        if setting.height:
            raise DemonetError(f"height={setting.height} in the primal", hint="only linear kernels have these features")
        self.setting, self.noise, self.dtype, self.device = setting, noise, dtype, device
        self.tolerance, self.steps = tolerance, steps
        self.arrays: dict[str, Tensor] = {}

    def fit(self, view: NodeRows, targets: Tensor, weight: Tensor | None = None) -> Self:
        """Solve ``(Phi' V Phi + noise I) W = Phi' V Y``, V the weights of the items, 1 if there are none."""
        degrees = torch.from_numpy(np.unique(view.task))
        s = self.setting
        values, vectors = torch.linalg.eigh(s.kappa(degrees, degrees, torch.float64))
        kept = values > RANK * values[-1]
        self.arrays = {"degrees": degrees, "root": vectors[:, kept] / values[kept].sqrt()}
        if s.structure or s.additive:
            pick = np.linspace(0, len(view) - 1, min(LANDMARKS, len(view))).round().astype(int)
            landmarks = torch.from_numpy(np.unique(view.structure[pick], axis=0))
            values, vectors = torch.linalg.eigh(structural(landmarks, landmarks, s))
            kept = values > RANK * values[-1]
            self.arrays |= {"landmarks": landmarks, "map": vectors[:, kept] / values[kept].sqrt()}
        targets = targets.to(self.device, self.dtype)
        share = 1.0 if weight is None else weight.to(targets)[:, None]
        few = _Features(self, view.take(np.arange(1)))
        if few.size <= COLUMNS:
            self.arrays["weight"] = self._normal_equations(view, targets, few.size, share)
        else:
            features = _Features(self, view)
            self.arrays["weight"] = conjugate_gradients(
                lambda w: features.transposed(share * features.times(w)) + self.noise * w,
                features.transposed(share * targets),
                self.tolerance,
                self.steps,
            )
        return self

    def _normal_equations(self, view: NodeRows, targets: Tensor, size: int, share: Tensor | float) -> Tensor:
        """The same by a Cholesky factor, the products added up over blocks of rows in float64."""
        left = self.noise * torch.eye(size, dtype=torch.float64, device=self.device)
        right = torch.zeros(size, targets.size(1), dtype=torch.float64, device=self.device)
        step = max(1, 2**25 // size)
        for start in range(0, len(view), step):
            rows = np.arange(start, min(start + step, len(view)))
            phi = _Features(self, view.take(rows)).dense()
            turned = (phi if isinstance(share, float) else share[start : start + step] * phi).T
            left += (turned @ phi).double()
            right += (turned @ targets[start : start + step]).double()
        return torch.cholesky_solve(right, torch.linalg.cholesky(left)).to(self.dtype).contiguous()

    def predict(self, view: NodeRows) -> Tensor:
        """``[n, C]``."""
        return _Features(self, view).times(self.arrays["weight"])

    def shares(self, view: NodeRows) -> dict[str, Tensor]:
        """The prediction term by term; they add up to it."""
        features, weight = _Features(self, view), self.arrays["weight"]
        total = {}
        for name, part in features.parts.items():
            alone = torch.zeros_like(weight)
            alone[part] = weight[part]
            total[name] = features.times(alone)
        return total

    def factor(self, degree: Array) -> Tensor:
        """L(d) ``[n, r]``: the columns of the degree, at any degree; of many nodes, once for each degree."""
        if len(degree) >= MANY:
            distinct, place = np.unique(degree, return_inverse=True)
            if len(distinct) < MANY:
                return self.factor(distinct)[torch.from_numpy(place)]
        table = self.setting.kappa(torch.from_numpy(degree), self.arrays["degrees"], torch.float64)
        return table @ self.arrays["root"]

    def nystroem(self, structure: Array) -> Tensor:
        """Features of the structural term ``[n, m]``."""
        return structural(torch.from_numpy(structure), self.arrays["landmarks"], self.setting) @ self.arrays["map"]

    def state(self) -> dict[str, Tensor]:
        """Coefficients and the degrees' columns as plain arrays."""
        return {name: array.cpu() for name, array in self.arrays.items()}

    def load(self, arrays: Mapping[str, Tensor]) -> Self:
        """Take the arrays that `state` gave."""
        self.arrays = {**arrays, "weight": arrays["weight"].to(self.device, self.dtype)}
        return self


class _Features:
    """The matrix Phi of a view as an operator: products with it and with its transpose, never written out."""

    def __init__(self, model: PrimalRidge, view: NodeRows) -> None:
        s, self.model = model.setting, model
        self.blocks: list[tuple[Any, Any, Tensor | None]] = []  # rows, their transpose, columns that multiply them
        self.parts: dict[str, Any] = {}
        self.size = 0
        factor = model.factor(view.task) if s.degree else None
        self._add("seed", s.seed, view.own)
        for hop, near in enumerate(view.near[: 2 if s.hop else 1]):
            share = s.hop if hop else 1.0
            self._add("shared", share * s.shared, near)
            self._add("degree", share * s.degree, near, factor)
        if s.bias:
            self._add("bias", s.bias, model.factor(view.degree))
        if s.structure or s.additive:
            self._add("structure", 1.0, model.nystroem(view.structure))
        self._add("constant", s.constant, np.ones((len(view), 1)))

    def _add(self, name: str, variance: float, rows: Any, factor: Tensor | None = None) -> None:
        if not variance:
            return
        dtype, device = self.model.dtype, self.model.device
        width = rows.shape[1]
        if is_sparse(rows):
            scaled = rows * variance**0.5
            block = to_torch(scaled, dtype).to(device), to_torch(scaled.T, dtype).to(device)
        else:
            dense = torch.as_tensor(rows).to(device, dtype) * variance**0.5
            block = dense, dense.T
        if factor is not None:
            factor = factor.to(device, dtype)
            width *= factor.size(1)
        place = torch.arange(self.size, self.size + width, device=self.model.device)
        self.parts[name] = torch.cat([self.parts[name], place]) if name in self.parts else place
        self.blocks.append((*block, factor))
        self.size += width

    def dense(self) -> Tensor:
        """``Phi`` itself."""
        out = []
        for rows, _, factor in self.blocks:
            rows = rows.to_dense() if rows.layout == torch.sparse_csr else rows
            out.append(rows if factor is None else torch.einsum("nf,nr->nfr", rows, factor).flatten(1))
        return torch.cat(out, 1)

    def times(self, weight: Tensor) -> Tensor:
        """``Phi W``."""
        out, start = torch.zeros((), dtype=weight.dtype, device=weight.device), 0
        for rows, _, factor in self.blocks:
            width = rows.shape[1] * (1 if factor is None else factor.size(1))
            part = weight[start : start + width]
            start += width
            if factor is None:
                out = out + rows @ part
            else:  # [n, r, C] = rows @ [F, r * C]; then each node weighs its r columns
                product = rows @ part.view(rows.shape[1], -1)
                out = out + torch.einsum("nrc,nr->nc", product.view(len(factor), factor.size(1), -1), factor)
        return out

    def transposed(self, residual: Tensor) -> Tensor:
        """``Phi' R``."""
        out = []
        for _, columns, factor in self.blocks:
            if factor is None:
                out.append(columns @ residual)
            else:
                spread = torch.einsum("nr,nc->nrc", factor, residual).flatten(1)
                out.append((columns @ spread).view(-1, residual.size(1)))
        return torch.cat(out)


def conjugate_gradients(times: Any, right: Tensor, tolerance: float, steps: int) -> Tensor:
    """Solve ``A W = right`` for each column, A symmetric and positive definite."""
    solution, residual = torch.zeros_like(right), right.clone()
    direction, power = residual.clone(), residual.square().sum(0)
    limit = tolerance**2 * power
    for _ in range(steps):
        if bool((power <= limit).all()):
            break
        image = times(direction)
        length = power / (direction * image).sum(0).clamp(min=torch.finfo(right.dtype).tiny)
        solution += length * direction
        residual -= length * image
        before, power = power, residual.square().sum(0)
        direction = residual + power / before.clamp(min=torch.finfo(right.dtype).tiny) * direction
    return solution
