"""Layers shared by several networks: sparse products, convolutions that multiply first, a network of two convolutions.

A linear map commutes with the sum over neighbours. PyTorch Geometric's layers sum first, which needs memory for edges
times input width: 23 GB for the 479,476 edges and 12,047 attributes of Flickr. The layers here apply the map first. The
result is the same, and input rows may be sparse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import ChebConv, GCNConv, SAGEConv, global_mean_pool
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from demonet.degree.keep import Memo
from demonet.methods.network import Classifier, read_out
from demonet.ops.sparse import csr, sparse_linear


class Product(NamedTuple):
    """A constant sparse matrix; ``product @ dense`` is differentiable in ``dense``.

    Attributes:
        matrix: ``[n, m]`` in CSR.
        columns: Keeps its entries by column, along which gradients flow: torch sorts them again in every backward pass.
        drop: Applied to the entries, as dropout is.

    >>> product = Product(torch.tensor([[0.0, 2.0], [3.0, 0.0], [0.0, 4.0]]).to_sparse_csr(), Memo())
    >>> (product @ torch.tensor([[1.0], [10.0]])).tolist()
    [[20.0], [3.0], [40.0]]
    """

    matrix: Tensor
    columns: Memo[Sequence[Tensor]]
    drop: Callable[[Tensor], Tensor] | None = None

    def __matmul__(self, dense: Tensor) -> Tensor:
        return sparse_linear(self.matrix, dense, self.columns, self.drop)


def dropout(x: Tensor | Product, p: float, training: bool) -> Tensor | Product:
    """Dropout of a dense matrix, or of the stored entries of a sparse one."""
    if isinstance(x, Product):
        return x._replace(drop=partial(F.dropout, p=p)) if training else x
    if x.layout == torch.sparse_csr:
        return csr(x.crow_indices(), x.col_indices(), F.dropout(x.values(), p), x.shape) if training else x
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
    return Product(matrix.coalesce().to_sparse_csr(), Memo())


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

    def embed(self, x: Any, edges: Any, *graphs: Any) -> Tensor:
        """Nodes after the first convolution, or graphs: the mean of nodes after the second."""
        h: Tensor = self.activation(self.first(dropout(x, self.dropout, self.training), edges))
        if self.head is None:
            return h
        h = self.activation(self.second(dropout(h, self.dropout, self.training), edges))
        return read_out(global_mean_pool, h, *graphs)

    def forward(self, x: Any, edges: Any, *graphs: Any) -> Tensor:
        """Scores of nodes or graphs."""
        if self.head is not None:
            return super().forward(x, edges, *graphs)
        scores: Tensor = self.second(dropout(self.embed(x, edges), self.dropout, self.training), edges)
        return scores
