"""Scheme ``hash`` (Eq. 8-10): one matrix for all degrees, read through hash functions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from demonet.degree.layout import DegreeLayout
from demonet.degree.tasks import DegreeTasks
from demonet.nn.hashing import SHARED_KEY, hash_functions, hash_map
from demonet.nn.weights.base import DegreeWeights, enough_rows, glorot_, register
from demonet.ops import aggregate, backend, neighbour_lists
from demonet.ops.backend import is_sparse
from demonet.ops.library import reversed_lists
from demonet.ops.sparse import dense_blocks

HASH_COLUMNS = 256  # input columns that are hashed at a time
HASH_MAP_ENTRIES = 2**25  # most entries of the hash functions of all degrees as one matrix on a GPU


@register("hash")
class HashedWeights(DegreeWeights):
    r"""Eq. 10: :math:`W(\phi_g(\cdot) + \phi_d(\cdot))`, one matrix of H rows however many degrees there are.

    As a matrix for degree d it is :math:`W[\xi_1^d] \odot \xi_2^d + W[\xi_1^g] \odot \xi_2^g`: a row for every input
    column, chosen and signed by the hash functions. An unseen degree has its own functions, from the same seed.

    Attributes:
        weight: ``[hash_size, width]``.
        hash_size: ``H``.
        hash_seed: Seed of the hash functions.
    """

    terms = ()

    def __init__(
        self, in_channels: int, width: int, tasks: DegreeTasks, *, hash_size: int = 256, hash_seed: int = 0
    ) -> None:
        super().__init__(in_channels, width, tasks)
        self.hash_size, self.hash_seed = hash_size, hash_seed
        self.weight = nn.Parameter(torch.empty(hash_size, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot; the hash functions stay."""
        glorot_(self.weight)

    def _functions(self, key: Tensor, start: int = 0, end: int | None = None) -> tuple[Tensor, Tensor]:
        column = torch.arange(start, self.in_channels if end is None else end, device=key.device)
        return hash_functions(key[:, None], column, seed=self.hash_seed, size=self.hash_size)

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
        r""":math:`\phi_g(a) + \phi_d(a)`, block by block of columns (all functions are larger than ``a``)."""
        out, step = a.new_zeros(a.size(0), self.hash_size), HASH_COLUMNS
        key, (place, sign) = self.tasks.key(degree), self.shared_hash
        for start in range(0, self.in_channels, step):
            block = a[:, start : start + step]
            end = start + block.size(1)
            own = self._functions(key, start, end)
            out = out + hash_map(block, place[start:end], sign[start:end], self.hash_size)
            out = out + hash_map(block, *own, self.hash_size)
        return out

    def fold(self, a: Tensor, degree: Tensor) -> Tensor:
        r""":math:`\phi_g(a) + \phi_d(a)` where that is shorter than ``a``."""
        if self.folds and is_sparse(a):
            return torch.cat([self._hash(block, degree[place]) for place, block in dense_blocks(a)])
        return self._hash(a, degree) if self.folds else a

    def for_groups(self, layout: DegreeLayout) -> Tensor | None:
        """The matrices, where the aggregate is not hashed and degrees have enough rows, or all of them are small."""
        if self.folds:
            return None
        rows = layout.degrees.size(0) * self.in_channels
        if self.weight.device.type == "cpu" and rows * self.width <= backend.CACHED_ENTRIES and not backend.tracing():
            lists, sign = self._constant(layout.degrees, self._selection)
            return aggregate(self.weight, lists, sign).view(-1, self.in_channels, self.width)
        # On a GPU, a product with a small map is faster than sorting what is hashed row by row.
        if self.weight.is_cuda and not backend.exporting() and rows * self.hash_size <= HASH_MAP_ENTRIES:
            signs = self._constant(layout.degrees, self.signs).to(self.weight.dtype)
            return (signs @ self.weight).view(-1, self.in_channels, self.width)
        return self.matrices(layout.degrees) if enough_rows(backend.ROWS_PER_HASH, layout) else None

    def _selection(self, degree: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """The matrices as sums over neighbours: each of their rows is the signed sum of two rows of W.

        Returns:
            The lists of :func:`demonet.ops.aggregate`, and the sign of each entry.
        """
        place, sign = (
            torch.stack([one, other.expand_as(one)]).flatten()
            for one, other in zip(self.hashes(degree), self.shared_hash, strict=True)
        )
        rows = place.numel() // 2
        edges = torch.stack([place, torch.arange(rows).repeat(2)])
        pointer, chosen, edge = neighbour_lists(edges, self.hash_size, rows)
        back = reversed_lists(pointer, chosen, rows, self.hash_size)
        return (pointer, chosen, *back), sign[edge].to(self.weight.dtype)

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
        return self.by_folded(a, layout.key)

    def by_folded(self, a: Tensor, degree: Tensor) -> Tensor:
        """The hashed aggregate times W."""
        return a @ self.weight if self.folds else super().by_folded(a, degree)

    def by_row(self, a: Tensor, degree: Tensor) -> Tensor:
        r""":math:`W(\phi_g(a) + \phi_d(a))`, literally."""
        return self._hash(a, degree) @ self.weight

    def extra_repr(self) -> str:
        """What print shows."""
        return f"{super().extra_repr()}, hash_size={self.hash_size}, hash_seed={self.hash_seed}"
