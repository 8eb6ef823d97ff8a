"""Scheme ``hash`` (Eq. 8-10): one matrix for all degrees, read through hash functions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from demonet.degree.layout import DegreeLayout
from demonet.degree.tasks import DegreeTasks
from demonet.nn.hashing import SHARED_KEY, hash_functions, hash_map
from demonet.nn.picks import Picked, Picks
from demonet.nn.weights.base import IN_CACHE, DegreeWeights, exporting, glorot_, pays

ROWS_PER_HASH = 4  # from so many rows a degree on, a matrix for each of them is cheaper than hashing every row
LARGEST_MAP = 2**25  # entries of the hash functions written out as one map
COLUMNS = 256  # how many input columns are hashed at a time


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
        self._picks: tuple[Tensor, Picks] | None = None
        self.weight = nn.Parameter(torch.empty(hash_size, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot; the hash functions stay."""
        glorot_(self.weight)

    def _functions(self, key: Tensor, start: int = 0, end: int | None = None) -> tuple[Tensor, Tensor]:
        column = torch.arange(start, self.in_channels if end is None else end, device=key.device)
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
        # On a GPU the derivative of index_select is added up in another order every time.
        rows = self.weight[xi1.flatten()] if self.weight.is_cuda else self.weight.index_select(0, xi1.flatten())
        chosen = rows.view(*xi1.shape, self.width)
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

    def _hash(self, a: Tensor, degree: Tensor) -> Tensor:
        r""":math:`\phi_g(a) + \phi_d(a)`, a block of columns at a time: all functions at once outgrow ``a`` itself."""
        out = a.new_zeros(a.size(0), self.hash_size)
        key, (place, sign) = self.tasks.key(degree), self.shared_hash
        for start in range(0, self.in_channels, COLUMNS):
            block = a[:, start : start + COLUMNS]
            end = start + block.size(1)
            own = self._functions(key, start, end)
            out = out + hash_map(block, place[start:end], sign[start:end], self.hash_size)
            out = out + hash_map(block, *own, self.hash_size)
        return out

    def fold(self, a: Tensor, layout: DegreeLayout) -> Tensor:
        r""":math:`\phi_g(a) + \phi_d(a)` where that is shorter than ``a``."""
        return self._hash(a, layout.key) if self.folds else a

    def for_groups(self, layout: DegreeLayout) -> Tensor | None:
        """The matrices, where the aggregate is not hashed and degrees have enough rows, or a GPU has a small map."""
        # A GPU multiplies by a small map sooner than it sorts what is hashed row by row.
        here = self.weight.is_cuda and not exporting()
        mapped = here and layout.degrees.size(0) * self.in_channels * self.hash_size <= LARGEST_MAP
        if self.folds or not (mapped or pays(ROWS_PER_HASH, layout)):
            return None
        if not mapped:
            return self.matrices(layout.degrees)
        signs = self._constant(layout.degrees, self.signs).to(self.weight.dtype)
        return (signs @ self.weight).view(-1, self.in_channels, self.width)

    def terms(self, layout: DegreeLayout) -> tuple[Tensor | None, Tensor] | None:
        """The matrices, each row of them picked from W with the hash functions written down once."""
        if self.folds or layout.degrees.size(0) * self.in_channels * self.width > IN_CACHE:
            return super().terms(layout)
        if self._picks is None or self._picks[0] is not layout.degrees:
            self._picks = (layout.degrees, Picks.of(self.hashes(layout.degrees), self.shared_hash, self.weight))
        rows: Tensor = Picked.apply(self.weight, self._picks[1])
        return None, rows.view(-1, self.in_channels, self.width)

    def signs(self, degree: Tensor) -> Tensor:
        r"""``[len(degree) * in_channels, hash_size]``: both hash functions as one map, so that every matrix is ``S W``.

        Each row has :math:`\xi_2^d` in column :math:`\xi_1^d` and :math:`\xi_2^g` in column :math:`\xi_1^g`.
        """
        columns = torch.arange(self.hash_size, device=degree.device)
        out = torch.zeros((), device=degree.device)
        for xi1, xi2 in (self.hashes(degree), self.shared_hash):
            out = out + (xi1[..., None] == columns) * xi2[..., None].to(out.dtype)
        return out.flatten(0, 1)

    def by_group(self, a: Tensor, layout: DegreeLayout) -> Tensor:
        """The hashed aggregate times W."""
        return a @ self.weight if self.folds else self.by_row(a, layout.key)

    def by_row(self, a: Tensor, degree: Tensor) -> Tensor:
        r""":math:`W(\phi_g(a) + \phi_d(a))`, literally."""
        return self._hash(a, degree) @ self.weight

    def extra_repr(self) -> str:
        """What print shows."""
        return f"{super().extra_repr()}, hash_size={self.hash_size}, seed={self.seed}"
