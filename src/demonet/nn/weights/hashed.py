"""Scheme ``hash`` (Eq. 8-10): one matrix for all degrees, read through hash functions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from demonet.degree.layout import DegreeLayout
from demonet.degree.tasks import DegreeTasks
from demonet.nn.hashing import SHARED_KEY, hash_functions, hash_map
from demonet.nn.weights.base import ROWS_PER_TASK, DegreeWeights, glorot_
from demonet.ops import degree_linear


class HashedWeights(DegreeWeights):
    r"""Eq. 10: :math:`W(\phi_g(\cdot) + \phi_d(\cdot))`, one matrix of H rows however many degrees there are.

    As a matrix for degree d it is :math:`W[\xi_1^d] \odot \xi_2^d + W[\xi_1^g] \odot \xi_2^g`: a row for every input
    column, chosen and signed by the hash functions. A degree never seen draws its own, from the same seed.

    Attributes:
        weight: ``[hash_size, width]``.
        hash_size: ``H``.
        seed: Where the hash functions come from.
    """

    def __init__(
        self, in_channels: int, width: int, tasks: DegreeTasks, *, hash_size: int = 256, seed: int = 0
    ) -> None:
        super().__init__(in_channels, width, tasks)
        self.hash_size, self.seed = hash_size, seed
        self.weight = nn.Parameter(torch.empty(hash_size, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot; the hash functions stay."""
        glorot_(self.weight)

    def _functions(self, key: Tensor) -> tuple[Tensor, Tensor]:
        column = torch.arange(self.in_channels, device=key.device)
        return hash_functions(key[:, None], column, seed=self.seed, size=self.hash_size)

    def hashes(self, degree: Tensor) -> tuple[Tensor, Tensor]:
        r""":math:`\xi_1, \xi_2` of each degree, each ``[len(degree), in_channels]``."""
        return self._functions(self.tasks.key(degree))

    @property
    def shared_hash(self) -> tuple[Tensor, Tensor]:
        r""":math:`\xi_1, \xi_2` of :math:`\phi_g`, each ``[in_channels]``."""
        xi1, xi2 = self._functions(torch.full((1,), SHARED_KEY, device=self.weight.device))
        return xi1[0], xi2[0]

    def _rows(self, xi1: Tensor, xi2: Tensor) -> Tensor:
        chosen = self.weight.index_select(0, xi1.flatten()).view(*xi1.shape, self.width)
        return chosen * xi2.to(self.weight.dtype)[..., None]

    @property
    def shared(self) -> Tensor:  # type: ignore[override]
        """``[in_channels, width]``: the part of every matrix that all degrees have in common."""
        return self._rows(*self.shared_hash)

    def matrices(self, degree: Tensor) -> Tensor:
        r""":math:`W[\xi_1^d] \odot \xi_2^d + W[\xi_1^g] \odot \xi_2^g`."""
        return self.shared + self._rows(*self.hashes(degree))

    @property
    def folds(self) -> bool:
        """Whether the aggregate is hashed at once, because its hash is shorter than itself."""
        return self.in_channels > self.hash_size

    def _hash(self, a: Tensor, xi1: Tensor, xi2: Tensor) -> Tensor:
        return hash_map(a, *self.shared_hash, self.hash_size) + hash_map(a, xi1, xi2, self.hash_size)

    def fold(self, a: Tensor, layout: DegreeLayout) -> Tensor:
        r""":math:`\phi_g(a) + \phi_d(a)` where that is shorter than ``a``, a slice of rows at a time."""
        if not self.folds:
            return a
        out = a.new_empty(a.size(0), self.hash_size)
        step = max(1, 2**24 // self.in_channels)  # bounds the 64-bit row numbers that hashing needs
        for start in range(0, a.size(0), step):
            rows = slice(start, start + step)
            out[rows] = self._hash(a[rows], *self.hashes(layout.key[rows]))
        return out

    def by_group(self, a: Tensor, layout: DegreeLayout) -> Tensor:
        """A grouped product with the matrices, or the hashed aggregate times W, by cost."""
        if self.folds:
            return a @ self.weight
        if layout.degrees.size(0) * ROWS_PER_TASK <= a.size(0):
            group = torch.arange(layout.degrees.size(0), device=a.device)
            return degree_linear(a, self.matrices(layout.degrees), layout.offsets, group)
        return self.by_row(a, layout.key)

    def by_row(self, a: Tensor, degree: Tensor) -> Tensor:
        r""":math:`W(\phi_g(a) + \phi_d(a))`, literally."""
        return self._hash(a, *self.hashes(degree)) @ self.weight

    def extra_repr(self) -> str:
        """What print shows."""
        return f"{super().extra_repr()}, hash_size={self.hash_size}, seed={self.seed}"
