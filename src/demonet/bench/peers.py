"""The networks ours are compared with: two convolutions of one width with ReLU, and a linear head.

Where PyTorch Geometric has a faster input form than ``edge_index`` for a layer, both are here: CSR is the transposed
adjacency as ``torch.sparse_csr`` with 32-bit indices (for GCN with the normalisation already in its values), sorted
arcs are an ``EdgeIndex`` sorted by target that holds both directions. GAT comes with one head, the cheapest GAT of that
width, and with eight, as published; PNA has the aggregators and scalers of its paper; GIN's inner network has one
hidden layer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric import EdgeIndex
from torch_geometric.nn import GATConv, GCNConv, GINConv, GraphConv, MFConv, PNAConv, SAGEConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_torch_csr_tensor

from demonet.bench.graphs import WIDTH, Graph
from demonet.errors import DemonetError

HEADS = 8
Form = Callable[[Graph, torch.dtype], tuple[Any, ...]]
Layer = Callable[[int, Graph], nn.Module]


class Stack(nn.Module):
    """Convolutions with ReLU, and a linear head: ``model(x, *arcs)``."""

    def __init__(self, convolutions: list[nn.Module], num_classes: int) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(convolutions)
        self.head = nn.Linear(WIDTH, num_classes)

    def forward(self, x: Tensor, *arcs: Any) -> Tensor:
        """``[n, num_classes]`` scores."""
        for convolution in self.convolutions:
            x = convolution(x, *arcs).relu()
        return self.head(x)


class OfDGL(nn.Module):
    """A layer of DGL, which takes the graph before the features."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, graph: Any) -> Tensor:
        """One convolution."""
        return self.layer(graph, x)


def stack(layer: Layer, graph: Graph) -> Stack:
    """Two of these layers and a head, for that graph."""
    return Stack([layer(width, graph) for width in (graph.x.size(1), WIDTH)], graph.num_classes)


# ------------------------------------------------------------------------------------------------------ input forms


def none(graph: Graph, dtype: torch.dtype) -> tuple[Any, ...]:
    """No arcs at all."""
    return ()


def edge_index(graph: Graph, dtype: torch.dtype) -> tuple[Any, ...]:
    """PyTorch Geometric's usual form."""
    return (graph.edge_index.clone(),)


def csr(graph: Graph, dtype: torch.dtype) -> tuple[Any, ...]:
    """The transposed adjacency, row after row."""
    return (_csr(graph.edge_index, torch.ones(graph.num_arcs, dtype=dtype, device=graph.x.device), graph.num_nodes),)


def normalised_csr(graph: Graph, dtype: torch.dtype) -> tuple[Any, ...]:
    """The same with loops added and GCN's symmetric normalisation in its values."""
    arcs, weight = gcn_norm(graph.edge_index, None, graph.num_nodes, dtype=torch.float32)
    return (_csr(arcs, weight.to(dtype), graph.num_nodes),)


def sorted_arcs(graph: Graph, dtype: torch.dtype) -> tuple[Any, ...]:
    """An ``EdgeIndex`` that knows it is sorted by target and undirected, with both pointers cached."""
    size = (graph.num_nodes, graph.num_nodes)
    arcs = EdgeIndex(graph.edge_index.clone(), sparse_size=size, is_undirected=True).sort_by("col").values
    return (arcs.fill_cache_(),)


def dgl_graph(graph: Graph, dtype: torch.dtype) -> tuple[Any, ...]:
    """DGL's own graph, loops added, in every format that its kernels ask for."""
    dgl = _dgl()
    made = dgl.add_self_loop(dgl.graph(tuple(graph.edge_index), num_nodes=graph.num_nodes))
    made.create_formats_()
    return (made,)


def _csr(arcs: Tensor, weight: Tensor, n: int) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch says that such tensors are new, and that it trusts us
        wide = to_torch_csr_tensor(arcs.flip(0), weight, size=(n, n))
        if max(n, arcs.size(1)) >= 2**31:
            return wide
        # CPU libraries and cuSPARSE both want 32-bit indices; wider ones are converted in every product, or cost bytes.
        return torch.sparse_csr_tensor(wide.crow_indices().int(), wide.col_indices().int(), wide.values(), (n, n))


def _dgl() -> Any:
    try:
        return import_module("dgl")
    except Exception as error:  # a build for another torch fails in ways of its own
        raise DemonetError(f"DGL does not load: {type(error).__name__}: {error}", hint="pip install dgl") from error


# ----------------------------------------------------------------------------------------------------------- layers


def gcn(width: int, graph: Graph) -> nn.Module:
    """GCN as it comes: the normalisation is computed in every call."""
    return GCNConv(width, WIDTH)


def gcn_normalised(width: int, graph: Graph) -> nn.Module:
    """GCN whose input has the normalisation in it."""
    return GCNConv(width, WIDTH, normalize=False)


def sage(width: int, graph: Graph) -> nn.Module:
    """GraphSAGE with means."""
    return SAGEConv(width, WIDTH)


def graph_conv(width: int, graph: Graph) -> nn.Module:
    """The nearest peer: a map of the node and one of the sum of its neighbours, without degrees."""
    return GraphConv(width, WIDTH)


def gin(width: int, graph: Graph) -> nn.Module:
    """GIN."""
    return GINConv(nn.Sequential(nn.Linear(width, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)))


def gat(width: int, graph: Graph) -> nn.Module:
    """GAT with one head, the cheapest of this width."""
    return GATConv(width, WIDTH)


def gat_heads(width: int, graph: Graph) -> nn.Module:
    """GAT as published: eight heads side by side, an eighth of the width each."""
    return GATConv(width, WIDTH // HEADS, heads=HEADS)


def pna(width: int, graph: Graph) -> nn.Module:
    """PNA."""
    histogram = torch.bincount(graph.degree).cpu()
    aggregators, scalers = ["mean", "min", "max", "std"], ["identity", "amplification", "attenuation"]
    return PNAConv(width, WIDTH, aggregators, scalers, deg=histogram)


def mf(width: int, graph: Graph) -> nn.Module:
    """MFConv: a matrix for each degree up to 10, PyTorch Geometric's own degree-specific layer."""
    return MFConv(width, WIDTH)


def dgl_conv(width: int, graph: Graph) -> nn.Module:
    """DGL's GCN."""
    _dgl()
    return OfDGL(import_module("dgl.nn").GraphConv(width, WIDTH))


def dense(width: int, graph: Graph) -> nn.Module:
    """A layer of an MLP: no messages."""
    return nn.Linear(width, WIDTH)
