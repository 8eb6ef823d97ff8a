"""Sparse input rows: a linear map of them, and their sum over neighbours, without making them dense."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from demonet.degree.keep import Memo
from demonet.degree.layout import DegreeLayout
from demonet.degree.lists import ranges
from demonet.errors import DemonetError
from demonet.ops import backend, library
from demonet.ops.library import reversed_lists
from demonet.ops.reference import aggregate_scale

SPARSE_ROWS = 20_000  # targets from which on sums over neighbours may stay sparse
DENSE_ENTRIES = 2**24  # entries up to which they become dense nevertheless


def sparse_linear(
    x: Tensor,
    matrix: Tensor,
    columns: Memo[Sequence[Tensor]] | None = None,
    drop: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """``x @ matrix`` for sparse x: row by row a weighted sum of rows of the matrix, which is ``aggregate`` again.

    Args:
        x: ``[n, F]`` sparse rows.
        matrix: ``[F, width]``.
        columns: Keeps the entries sorted by column, along which gradients flow, for the next call with the same rows.
        drop: Applied to the entries of x, as dropout is.
    """
    csr = x if x.layout == torch.sparse_csr else x.to_sparse_csr()
    values = csr.values().to(matrix.dtype)
    values = values if drop is None else drop(values)
    back: Sequence[Tensor] | None = None
    if columns is not None and csr is x and matrix.requires_grad and not backend.tracing():
        back = columns.get([x], lambda: reversed_lists(x.crow_indices(), x.col_indices(), x.size(0), x.size(1)))
    lists = csr.crow_indices(), csr.col_indices()
    return library.aggregate(matrix.contiguous(), *lists, values, "sum", [*(back or [])], [])


def sparse_rows(x: Tensor, index: Tensor | None) -> Tensor:
    """The rows ``index`` of a CSR tensor (all of them for None)."""
    x = x if x.layout == torch.sparse_csr else x.to_sparse_csr()
    if index is None:
        return x
    count = x.crow_indices().diff()[index]
    pointer = torch.nn.functional.pad(count.cumsum(0), (1, 0))
    entry = ranges(x.crow_indices()[index], count)
    return csr(pointer, x.col_indices()[entry], x.values()[entry], (index.numel(), x.size(1)))


def dense_blocks(x: Tensor, entries: int = DENSE_ENTRIES) -> Iterator[tuple[slice, Tensor]]:
    """The rows of a CSR tensor as dense blocks of at most so many entries, with their places."""
    step = max(1, entries // max(1, x.size(1)))
    for start in range(0, x.size(0), step):
        rows = torch.arange(start, min(start + step, x.size(0)), device=x.device)
        yield slice(start, start + rows.numel()), sparse_rows(x, rows).to_dense()


def csr(pointer: Tensor, column: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A CSR tensor of these parts."""
    # Unchecked on purpose: with parallel edges a column occurs twice, which sums allow.
    return torch.sparse_csr_tensor(pointer, column, values, shape, check_invariants=False)


def sparse_aggregate(
    x: Tensor, lists: DegreeLayout | tuple[Tensor, Tensor], weight: Tensor | None, *, aggr: str
) -> Tensor:
    """The sum of sparse rows over neighbours, as a dense matrix: the union of many sparse rows is not sparse.

    Only on a large graph it stays sparse, where that takes a quarter of the entries or less: one-hot degrees become a
    histogram of the neighbours' degrees, which has at most one entry an edge. It is a constant of the graph: no
    gradient flows to sparse features or, through them, to edge weights.
    """
    if x.requires_grad or (weight is not None and weight.requires_grad):
        raise DemonetError("sparse features have no gradient", hint="use dense features")
    x = x if x.layout == torch.sparse_csr else x.to_sparse_csr()
    pointer, neighbours = (lists.pointer, lists.neighbours) if isinstance(lists, DegreeLayout) else lists
    values = torch.ones(neighbours.numel(), dtype=x.dtype, device=x.device) if weight is None else weight.to(x.dtype)
    shape = (pointer.numel() - 1, x.size(0))
    with torch.autocast(x.device.type, enabled=False):  # torch has no sparse product in 16 bits
        out = csr(pointer.long(), neighbours.long(), values, shape) @ x
    scale = aggregate_scale(pointer, aggr, x.dtype)
    rows, columns = out.shape
    if rows < SPARSE_ROWS or rows * columns <= DENSE_ENTRIES or 4 * out.values().numel() > rows * columns:
        out = out.to_dense()
        return out if scale is None else out * scale[:, None]
    if scale is None:
        return out
    spread = scale.repeat_interleave(out.crow_indices().diff(), output_size=out.values().numel())
    return csr(out.crow_indices(), out.col_indices(), out.values() * spread, (rows, columns))
