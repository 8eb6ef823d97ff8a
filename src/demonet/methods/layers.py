"""Layers shared by several networks: sparse products, convolutions that multiply first, a network of two convolutions.

A linear map commutes with the sum over neighbours. PyTorch Geometric's layers sum first, which needs memory for edges
times input width: 23 GB for the 479,476 edges and 12,047 attributes of Flickr. The layers here apply the map first. The
result is the same, and input rows may be sparse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import ChebConv, GCNConv, SAGEConv, global_mean_pool
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from demonet.methods.network import Classifier


class Product(NamedTuple):
    """A constant sparse matrix; ``product @ dense`` is differentiable in ``dense``.

    The structure of the transpose is stored. Otherwise torch sorts the entries again in every backward pass, which
    takes most of the time of an epoch.

    Attributes:
        matrix: ``[n, m]`` in CSR.
        pointer: ``[m + 1]``; column j has the entries ``pointer[j]`` to ``pointer[j + 1]`` of ``rows`` and ``entry``.
        rows: The row of each entry, by column.
        entry: The index of each entry in ``matrix.values()``, by column.

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
        """From a CSR matrix."""
        columns = matrix.col_indices()
        indices = torch.arange(matrix.size(0), device=matrix.device)
        rows = torch.repeat_interleave(indices, matrix.crow_indices().diff())
        entry = columns.argsort(stable=True)
        pointer = F.pad(torch.bincount(columns, minlength=matrix.size(1)).cumsum(0), (1, 0))
        return cls(matrix, pointer, rows[entry], entry)

    def dropped(self, p: float) -> Self:
        """The same matrix after dropout of its entries."""
        return self._replace(matrix=_drop_entries(self.matrix, p))

    def __matmul__(self, dense: Tensor) -> Tensor:
        found: Tensor = _Multiply.apply(dense, self)
        return found


def _drop_entries(matrix: Tensor, p: float) -> Tensor:
    """Dropout of the stored entries of a CSR matrix."""
    return _csr(matrix.crow_indices(), matrix.col_indices(), F.dropout(matrix.values(), p), matrix.shape)


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


def dropout(x: Tensor | Product, p: float, training: bool) -> Tensor | Product:
    """Dropout of a dense matrix, or of the stored entries of a sparse one."""
    if isinstance(x, Product):
        return x.dropped(p) if training else x
    if x.layout == torch.sparse_csr:
        return _drop_entries(x, p) if training else x
    return F.dropout(x, p, training)


class ProductGCN(GCNConv):
    """``Â X W + b``: PyTorch Geometric's ``GCNConv`` with Â computed once for all epochs by :func:`gcn_product`."""

    def forward(self, x: Tensor | Product, adjacency: Product) -> Tensor:
        """``[nodes, out]``."""
        h = x @ self.lin.weight.T if isinstance(x, Product) else self.lin(x)
        return adjacency @ h + self.bias


def gcn_product(edge_index: Tensor, num_nodes: int, dtype: torch.dtype = torch.float32) -> Product:
    """``Â = D^-1/2 (A + I) D^-1/2``, from PyTorch Geometric's ``gcn_norm``."""
    (source, target), weight = gcn_norm(edge_index, None, num_nodes, dtype=dtype)
    matrix = torch.sparse_coo_tensor(
        torch.stack([target, source]), weight, (num_nodes, num_nodes), check_invariants=False
    )
    return Product.of(matrix.coalesce().to_sparse_csr())


class LinearFirstSAGE(SAGEConv):
    """``W_self h_v + mean_u W h_u + b``: PyTorch Geometric's ``SAGEConv`` with the mean computed last."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """``[nodes, out]``."""
        neighbours = self.propagate(edge_index, x=self.lin_l(x))
        return self.lin_r(x) + neighbours + self.bias


class LinearFirstCheb(ChebConv):
    """``Σ_k T_k(L̂) X W_k``: PyTorch Geometric's ``ChebConv``, summed by Clenshaw's recurrence.

    With ``Y_k = X W_k``: ``B_k = Y_k + 2 L̂ B_{k+1} - B_{k+2}`` down to 1, then ``Y_0 + L̂ B_1 - B_2``.
    """

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """``[nodes, out]``."""
        edges, norm = self.__norm__(edge_index, x.size(0), None, self.normalization, dtype=self.lins[0].weight.dtype)
        first, *rest = [lin(x) for lin in self.lins]
        later = last = torch.zeros_like(first)
        for part in reversed(rest):
            later, last = last, part + 2 * self.propagate(edges, x=last, norm=norm) - later
        return first + self.propagate(edges, x=last, norm=norm) - later + (0 if self.bias is None else self.bias)


class TwoLayers(Classifier):
    """Two convolutions with dropout before each; graphs are read out by the mean of their nodes and a linear layer.

    Args:
        first: The first convolution.
        second: Makes the second convolution, given its output width. It returns the scores where nodes are classified.
        width: The output width of the first convolution.
        num_classes: Number of classes.
        dropout: Dropout probability.
        activation: After each convolution that does not return scores.
        graphs: Whether graphs are classified, by a linear layer on their means.
    """

    def __init__(
        self,
        first: nn.Module,
        second: Callable[[int], nn.Module],
        width: int,
        num_classes: int,
        dropout: float,
        activation: nn.Module,
        *,
        graphs: bool,
    ) -> None:
        super().__init__()
        self.first, self.second = first, second(width if graphs else num_classes)
        self.head = nn.Linear(width, num_classes) if graphs else None
        self.dropout, self.activation = dropout, activation

    def embed(self, x: Any, edges: Any, batch: Tensor | None = None, num_graphs: int | None = None) -> Tensor:
        """Nodes after the first convolution, or graphs: the mean of nodes after the second."""
        h: Tensor = self.activation(self.first(dropout(x, self.dropout, self.training), edges))
        if self.head is None:
            return h
        h = self.activation(self.second(dropout(h, self.dropout, self.training), edges))
        return global_mean_pool(h, batch, num_graphs)

    def forward(self, x: Any, edges: Any, batch: Tensor | None = None, num_graphs: int | None = None) -> Tensor:
        """Scores of nodes or graphs."""
        h = self.embed(x, edges, batch, num_graphs)
        if self.head is not None:
            return self.head(h)
        scores: Tensor = self.second(dropout(h, self.dropout, self.training), edges)
        return scores
