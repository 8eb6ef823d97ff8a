"""The shape that three networks share, and three of PyTorch Geometric's layers that multiply before they sum.

The linear map commutes with the sum over neighbours. Summing first costs arcs times input width: 23 GB for Flickr's
479,476 arcs and 12,047 attributes. The result is the same, and input rows may then be sparse.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import ChebConv, GCNConv, SAGEConv, global_mean_pool
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from demonet.baselines.network import Classifier
from demonet.baselines.products import Product, drop_entries


def drop(x: Tensor | Product, share: float, training: bool) -> Tensor | Product:
    """Dropout, of the entries where a matrix is sparse."""
    if isinstance(x, Product):
        return x.dropped(share) if training else x
    if x.layout == torch.sparse_csr:
        return drop_entries(x, share) if training else x
    return F.dropout(x, share, training)


class ProductGCN(GCNConv):
    """``Â X W + b``: PyTorch Geometric's ``GCNConv`` with Â made once for all epochs, see :func:`gcn_product`."""

    def forward(self, x: Tensor | Product, arcs: Product) -> Tensor:
        """``[nodes, out]``."""
        h = x @ self.lin.weight.T if isinstance(x, Product) else self.lin(x)
        return arcs @ h + self.bias


def gcn_product(edge_index: Tensor, num_nodes: int, dtype: torch.dtype = torch.float32) -> Product:
    """``Â = D^-1/2 (A + I) D^-1/2``, by PyTorch Geometric's own rule."""
    (source, target), weight = gcn_norm(edge_index, None, num_nodes, dtype=dtype)
    matrix = torch.sparse_coo_tensor(
        torch.stack([target, source]), weight, (num_nodes, num_nodes), check_invariants=False
    )
    return Product.of(matrix.coalesce().to_sparse_csr())


class LinearFirstSAGE(SAGEConv):
    """``W_self h_v + mean_u W h_u + b``: PyTorch Geometric's ``SAGEConv`` with the mean taken last."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """``[nodes, out]``."""
        neighbours = self.propagate(edge_index, x=self.lin_l(x))
        return self.lin_r(x) + neighbours + self.bias


class LinearFirstCheb(ChebConv):
    r"""``Σ_k T_k(L̂) X W_k``: PyTorch Geometric's ``ChebConv``, summed by Clenshaw's recurrence.

    With ``Y_k = X W_k``: ``B_k = Y_k + 2 L̂ B_{k+1} - B_{k+2}`` down to 1, then ``Y_0 + L̂ B_1 - B_2``.
    """

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """``[nodes, out]``."""
        arcs, norm = self.__norm__(edge_index, x.size(0), None, self.normalization, dtype=self.lins[0].weight.dtype)
        first, *rest = [lin(x) for lin in self.lins]
        later = last = torch.zeros_like(first)
        for part in reversed(rest):
            later, last = last, part + 2 * self.propagate(arcs, x=last, norm=norm) - later
        return first + self.propagate(arcs, x=last, norm=norm) - later + (0 if self.bias is None else self.bias)


class TwoLayers(Classifier):
    """Two convolutions, dropout before each; a graph is the mean of its nodes, then a linear layer.

    Args:
        first, second: The convolutions; the second one gives the scores of nodes.
        dropout: Share of their inputs that is forgotten.
        activation: After each that is not the last.
        head: From graphs to scores, or None for nodes.
    """

    def __init__(
        self, first: nn.Module, second: nn.Module, dropout: float, activation: nn.Module, head: nn.Linear | None
    ) -> None:
        super().__init__()
        self.first, self.second, self.head = first, second, head
        self.dropout, self.activation = dropout, activation

    def embed(self, x: Any, edges: Any, batch: Tensor | None = None, num_graphs: int | None = None) -> Tensor:
        """The first layer's nodes, or the mean of the second's."""
        h: Tensor = self.activation(self.first(drop(x, self.dropout, self.training), edges))
        if self.head is None:
            return h
        h = self.activation(self.second(drop(h, self.dropout, self.training), edges))
        return global_mean_pool(h, batch, num_graphs)

    def forward(self, x: Any, edges: Any, batch: Tensor | None = None, num_graphs: int | None = None) -> Tensor:
        """Scores of nodes or graphs."""
        h = self.embed(x, edges, batch, num_graphs)
        if self.head is not None:
            return self.head(h)
        scores: Tensor = self.second(drop(h, self.dropout, self.training), edges)
        return scores
