"""Matrices of a graph, and sums over the neighbours of its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from demonet.degree.count import count_degree
from demonet.features.union import GraphUnion

Float = NDArray[np.float64]


def degree(data: Data) -> Tensor:
    """The number of edges that point at each node, on the CPU."""
    return count_degree(data.edge_index.cpu(), int(data.num_nodes or 0))


def adjacency(data: Data, weighted: bool = True, dtype: type = np.float32) -> sparse.csr_array:
    """Row v has the edges that point at v, with their weights if the graph has weights."""
    source, target = data.edge_index.cpu().numpy()
    weight = data.get("edge_weight") if weighted else None
    values = np.ones(source.size, dtype) if weight is None else weight.cpu().numpy().astype(dtype)
    n = int(data.num_nodes or 0)
    return sparse.csr_array((values, (target, source)), shape=(n, n))


def simple_adjacency(data: Data | Sequence[Data] | GraphUnion) -> sparse.csr_array:
    """Symmetric 0/1 adjacency matrix of a graph, or of the disjoint union of graphs, without loops and directions."""
    union = data if isinstance(data, GraphUnion) else GraphUnion.of([data] if isinstance(data, Data) else data)
    kept, n = union.source != union.target, union.num_nodes
    matrix = sparse.csr_array((np.ones(kept.sum()), (union.target[kept], union.source[kept])), shape=(n, n))
    matrix = sparse.csr_array(matrix + matrix.T)
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix


def neighbour_mean(adjacency: sparse.csr_array, value: Any) -> Any:
    """The mean of a value, or of rows, over the neighbours of each node; 0 where there are none."""
    share = sparse.diags_array(1 / np.maximum(np.diff(adjacency.indptr), 1))
    return share @ (adjacency @ value)


def over_neighbours(reduce: np.ufunc, adjacency: sparse.csr_array, value: Float) -> Float:
    """The reduction of a value over each node's neighbours; 0 where there are none."""
    result = np.zeros(len(value))
    some = np.flatnonzero(np.diff(adjacency.indptr))
    if some.size:
        result[some] = reduce.reduceat(value[adjacency.indices], adjacency.indptr[some])
    return result
