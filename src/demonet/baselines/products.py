"""A constant sparse matrix that is multiplied with many dense ones while a network is trained."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor


class Product(NamedTuple):
    """A sparse matrix with the order of its transpose's entries, ``product @ dense`` is differentiable in ``dense``.

    Without that order torch sorts the entries in every backward pass, which takes most of an epoch's time.

    Attributes:
        matrix: ``[n, m]`` in CSR.
        pointer, rows, entry: Column j of the matrix has its entries ``entry[pointer[j] : pointer[j + 1]]``, in these
            ``rows``.

    >>> product = Product.of(torch.tensor([[0.0, 2.0], [3.0, 0.0], [0.0, 4.0]]).to_sparse_csr())
    >>> (product @ torch.tensor([[1.0], [10.0]])).tolist()
    [[20.0], [3.0], [40.0]]
    """

    matrix: Tensor
    pointer: Tensor
    rows: Tensor
    entry: Tensor

    @classmethod
    def of(cls, matrix: Tensor) -> Self:
        """The product with a CSR matrix."""
        columns = matrix.col_indices()
        numbers = torch.arange(matrix.size(0), device=matrix.device)
        rows = torch.repeat_interleave(numbers, matrix.crow_indices().diff())
        entry = columns.argsort(stable=True)
        pointer = F.pad(torch.bincount(columns, minlength=matrix.size(1)).cumsum(0), (1, 0))
        return cls(matrix, pointer, rows[entry], entry)

    def dropped(self, share: float) -> Self:
        """With dropout of its entries."""
        return self._replace(matrix=drop_entries(self.matrix, share))

    def __matmul__(self, dense: Tensor) -> Tensor:
        found: Tensor = _Multiply.apply(dense, self)
        return found


def drop_entries(matrix: Tensor, share: float) -> Tensor:
    """Dropout of the entries of a CSR matrix: the others are zero already."""
    return _csr(matrix.crow_indices(), matrix.col_indices(), F.dropout(matrix.values(), share), matrix.shape)


class _Multiply(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, product: Product) -> Tensor:
        ctx.product = product
        return product.matrix @ dense

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        matrix, pointer, rows, entry = ctx.product
        return _csr(pointer, rows, matrix.values()[entry], matrix.shape[::-1]) @ grad, None


def _csr(pointer: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    return torch.sparse_csr_tensor(pointer, columns, values, tuple(shape), check_invariants=False)
