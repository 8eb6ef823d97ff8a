"""Graphs as matrices, sums over the neighbours of nodes, and many graphs as one disjoint union."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from demonet.checks import check_edge_index
from demonet.degree.count import count_degree
from demonet.errors import DemonetError

Int = NDArray[np.int64]
Float = NDArray[np.float64]


@dataclass(frozen=True)
class GraphUnion:
    """The disjoint union of a list of graphs; nodes are numbered in the order of the list.

    The edges are used as given: :math:`N(v)` is the multiset of sources of the edges that end in :math:`v`, and
    :math:`deg(v)` is its size.

    Attributes:
        graphs: The graphs.
        sizes: The number of nodes of each graph.
        graph: The graph of each node, an index into ``graphs``.
        source: The source node of each edge.
        target: The target node of each edge.
    """

    graphs: list[Data]
    sizes: list[int]
    graph: Int
    source: Int
    target: Int

    @classmethod
    def of(cls, graphs: Iterable[Data]) -> GraphUnion:
        """Check the nodes and edges of every graph, and join them."""
        graphs = _graph_list(graphs)
        for position, data in enumerate(graphs):
            if data.num_nodes is None:
                raise DemonetError(f"graph {position}: the number of nodes is unknown", hint="set x or num_nodes")
            try:
                check_edge_index(data.edge_index, int(data.num_nodes))
            except DemonetError as error:
                raise DemonetError(f"graph {position}: {error.message}", hint=error.hint) from None
        sizes = [int(data.num_nodes) for data in graphs]
        first = np.repeat(np.cumsum(sizes) - sizes, [data.edge_index.size(1) for data in graphs])
        edges = torch.cat([data.edge_index.cpu().long() for data in graphs], 1).numpy()
        source, target = edges + first
        return cls(graphs, sizes, np.repeat(np.arange(len(graphs)), sizes), source, target)

    @property
    def num_nodes(self) -> int:
        """The number of nodes of all graphs."""
        return len(self.graph)

    @property
    def edge_index(self) -> Tensor:
        """``[2, edges]`` sources and targets."""
        return torch.from_numpy(np.stack([self.source, self.target]))

    @property
    def degree(self) -> Int:
        """The degree of each node, as in the layers of this package."""
        return count_degree(self.edge_index, self.num_nodes).numpy()

    @property
    def with_x(self) -> bool:
        """Whether the graphs have attributes; all have, or none has."""
        has_x = [data.x is not None for data in self.graphs]
        if any(has_x) and not all(has_x):
            problem = f"graph {has_x.index(False)} has no x, but others do"
            raise DemonetError(problem, hint="give x to all graphs or to none")
        return has_x[0]

    @property
    def whole(self) -> Data:
        """All graphs as one."""
        x = torch.cat([data.x.cpu() for data in self.graphs]) if self.with_x else None
        return Data(x=x, edge_index=self.edge_index, num_nodes=self.num_nodes)

    def attributes(self, width: int | None = None) -> Float:
        """``[nodes, width]`` the rows ``x`` of all nodes; one column of ones where no graph has ``x``.

        Args:
            width: The required number of columns of ``x``; by default that of the first graph.
        """
        if not self.with_x:
            return np.ones((self.num_nodes, 1))
        numbered = enumerate(zip(self.graphs, self.sizes, strict=True))
        attributes = [numeric(data.x, f"graph {position}: x", size) for position, (data, size) in numbered]
        expected = attributes[0].shape[1] if width is None else width
        for position, x in enumerate(attributes):
            if x.shape[1] != expected:
                raise DemonetError(
                    f"graph {position}: x has {x.shape[1]} columns, expected {expected}",
                    hint="all graphs need the same node attributes",
                )
        return np.concatenate(attributes)


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


def numeric(tensor: torch.Tensor, name: str, num_nodes: int) -> Float:
    """The checked float64 values of a tensor ``[num_nodes, width]``."""
    if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided or tensor.is_complex():
        raise DemonetError(f"{name} must be a dense tensor of real numbers, got {_kind(tensor)}")
    if tensor.dim() != 2 or tensor.shape[0] != num_nodes or tensor.shape[1] == 0:
        raise DemonetError(
            f"{name} has shape {list(tensor.shape)}, expected [{num_nodes}, width]",
            hint="one row per node, at least one column",
        )
    real = tensor.detach().to("cpu", torch.float64)
    if not tensor.is_floating_point() and not torch.equal(real.to(tensor.dtype), tensor.cpu()):
        raise DemonetError(f"{name} has integers that float64 cannot represent exactly", hint="renumber the labels")
    values: Float = real.numpy()
    if not np.isfinite(values).all():
        node = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
        raise DemonetError(f"{name} contains NaN or infinity, first at node {node}")
    return values


def sum_rows(rows: Float, group: Int, num_groups: int) -> Float:
    """``[num_groups, width]`` the sum of the rows of each group."""
    members = sparse.csr_array((np.ones(len(group)), (group, np.arange(len(group)))), shape=(num_groups, len(group)))
    sums: Float = np.asarray(members @ rows)
    return sums


def _graph_list(graphs: Iterable[Data]) -> list[Data]:
    if isinstance(graphs, Data) or not isinstance(graphs, Iterable):
        raise DemonetError(
            f"expected a list of torch_geometric Data, got {_kind(graphs)}", hint="pass [data], or batch.to_data_list()"
        )
    graphs = list(graphs)
    if not graphs:
        raise DemonetError("the list of graphs is empty")
    for position, data in enumerate(graphs):
        if not isinstance(data, Data):
            raise DemonetError(f"graph {position} must be a torch_geometric Data, got {_kind(data)}")
    return graphs


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
