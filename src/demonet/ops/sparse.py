"""Sparse input rows: a linear map of them, and their sum over neighbours, without ever making them dense."""

from __future__ import annotations

import torch
from torch import Tensor

from demonet.degree.layout import DegreeLayout
from demonet.errors import DemonetError
from demonet.ops.dispatch import ops
from demonet.ops.reference import aggregate_scale


def is_sparse(x: Tensor) -> bool:
    """Whether x is a ``torch.sparse`` tensor; rows are then read as CSR."""
    return x.layout in (torch.sparse_csr, torch.sparse_coo, torch.sparse_csc)


def sparse_linear(x: Tensor, matrix: Tensor) -> Tensor:
    """``x @ matrix`` for sparse x: row by row a weighted sum of rows of the matrix, which is ``aggregate`` again."""
    x = x if x.layout == torch.sparse_csr else x.to_sparse_csr()
    values = x.values().to(matrix.dtype)
    return ops.aggregate(
        matrix.contiguous(), x.crow_indices(), x.col_indices(), values, "sum", None, None, None, [], []
    )


def sparse_rows(x: Tensor, index: Tensor | None) -> Tensor:
    """The rows ``index`` of a CSR tensor (all of them for None)."""
    x = x if x.layout == torch.sparse_csr else x.to_sparse_csr()
    if index is None:
        return x
    start = x.crow_indices()[index]
    count = x.crow_indices().diff()[index]
    pointer = torch.nn.functional.pad(count.cumsum(0), (1, 0))
    entry = torch.arange(int(pointer[-1]), device=index.device)
    entry = entry + torch.repeat_interleave(start - pointer[:-1], count)
    return _csr(pointer, x.col_indices()[entry], x.values()[entry], (index.numel(), x.size(1)))


def _csr(pointer: Tensor, column: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    # Unchecked on purpose: lists with parallel arcs name a column twice, which a sum over them is glad to read.
    return torch.sparse_csr_tensor(pointer, column, values, shape, check_invariants=False)


def sparse_aggregate(
    x: Tensor, lists: DegreeLayout | tuple[Tensor, Tensor], weight: Tensor | None, *, aggr: str
) -> Tensor:
    """The sum of sparse rows over neighbours, as a dense matrix: the union of many sparse rows is not sparse.

    It is a constant of the graph: no gradient flows to sparse features or, through them, to edge weights.
    """
    if x.requires_grad or (weight is not None and weight.requires_grad):
        raise DemonetError("sparse features are constants: nothing to differentiate", hint="use dense features")
    x = x if x.layout == torch.sparse_csr else x.to_sparse_csr()
    pointer, neighbours = (lists.pointer, lists.neighbours) if isinstance(lists, DegreeLayout) else lists
    values = torch.ones(neighbours.numel(), dtype=x.dtype, device=x.device) if weight is None else weight.to(x.dtype)
    shape = (pointer.numel() - 1, x.size(0))
    with torch.autocast(x.device.type, enabled=False):  # torch has no sparse product in 16 bits
        out = (_csr(pointer.long(), neighbours.long(), values, shape) @ x).to_dense()
    scale = aggregate_scale(pointer, aggr, x.dtype)
    return out if scale is None else out * scale[:, None]
