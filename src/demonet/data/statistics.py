"""What a graph or a set of graphs holds, counted."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet.data.catalog import Statistics
from demonet.data.encodings import degree
from demonet.data.graph_set import GraphSet


def degrees(data: Data | Sequence[Data]) -> Tensor:
    """The degree of every node, graph after graph."""
    return torch.cat([degree(graph) for graph in _graphs(data)])


def measure(data: Data | GraphSet) -> Statistics:
    """Count nodes, edges (a kept loop is one), classes, attributes and degrees."""
    graphs = _graphs(data)
    loops = sum(int((graph.edge_index[0] == graph.edge_index[1]).sum()) for graph in graphs)
    every = degrees(graphs)
    y = data.y
    return Statistics(
        nodes=every.numel(),
        edges=(sum(graph.edge_index.size(1) for graph in graphs) + loops) // 2,
        class_counts=() if y is None else tuple(torch.bincount(y[y >= 0]).tolist()),
        attributes=0 if graphs[0].x is None else graphs[0].x.size(1),
        distinct_degrees=every.unique().numel(),
        max_degree=int(every.max()) if every.numel() else 0,
        isolated=int((every == 0).sum()),
        graphs=len(graphs),
    )


def _graphs(data: Data | Sequence[Data]) -> list[Data]:
    return [data] if isinstance(data, Data) else list(data)
