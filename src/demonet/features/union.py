"""A list of graphs as one disjoint union, so that sums over nodes and edges work on whole arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch_geometric.data import Data

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
        sizes = [_num_nodes(data, position) for position, data in enumerate(graphs)]
        edges = [_edges(data, position, size) for position, (data, size) in enumerate(zip(graphs, sizes, strict=True))]
        first = np.repeat(np.cumsum(sizes) - sizes, [ends.shape[1] for ends in edges])
        source, target = np.concatenate(edges, axis=1) + first
        return cls(graphs, sizes, np.repeat(np.arange(len(graphs)), sizes), source, target)

    @property
    def num_nodes(self) -> int:
        """The number of nodes of all graphs."""
        return len(self.graph)

    @property
    def degree(self) -> Int:
        """The degree of each node, as in the layers of this package."""
        edge_index = torch.from_numpy(np.stack([self.source, self.target]))
        return count_degree(edge_index, self.num_nodes).numpy()

    @property
    def with_x(self) -> bool:
        """Whether the graphs have attributes."""
        return any(data.x is not None for data in self.graphs)

    @property
    def whole(self) -> Data:
        """All graphs as one."""
        for position, data in enumerate(self.graphs):
            if self.with_x and data.x is None:
                raise _missing_x(position)
        x = torch.cat([data.x.cpu() for data in self.graphs]) if self.with_x else None
        edge_index = torch.from_numpy(np.stack([self.source, self.target]))
        return Data(x=x, edge_index=edge_index, num_nodes=self.num_nodes)

    def attributes(self, width: int | None = None) -> Float:
        """``[nodes, width]`` the rows ``x`` of all nodes; one column of ones where no graph has ``x``.

        Args:
            width: The required number of columns of ``x``; by default that of the first graph.
        """
        if not self.with_x:
            return np.ones((self.num_nodes, 1))
        numbered = enumerate(zip(self.graphs, self.sizes, strict=True))
        attributes = [_attributes(data, position, size) for position, (data, size) in numbered]
        expected = attributes[0].shape[1] if width is None else width
        for position, x in enumerate(attributes):
            if x.shape[1] != expected:
                raise DemonetError(
                    f"graph {position}: x has {x.shape[1]} columns, expected {expected}",
                    hint="all graphs need the same node attributes",
                )
        return np.concatenate(attributes)


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
            f"expected a list of torch_geometric Data, got {_kind(graphs)}",
            hint="pass [data], or batch.to_data_list()",
        )
    graphs = list(graphs)
    if not graphs:
        raise DemonetError("the list of graphs is empty")
    for position, data in enumerate(graphs):
        if not isinstance(data, Data):
            raise DemonetError(f"graph {position} must be a torch_geometric Data, got {_kind(data)}")
    return graphs


def _num_nodes(data: Data, position: int) -> int:
    if data.num_nodes is None:
        raise DemonetError(f"graph {position}: the number of nodes is unknown", hint="set x or num_nodes")
    return int(data.num_nodes)


def _edges(data: Data, position: int, num_nodes: int) -> Int:
    edges = data.edge_index
    if not isinstance(edges, torch.Tensor) or edges.dim() != 2 or edges.shape[0] != 2 or edges.is_floating_point():
        raise DemonetError(
            f"graph {position}: edge_index must be an integer tensor of shape [2, edges]",
            hint="for a graph without edges: torch.empty(2, 0, dtype=torch.long)",
        )
    ends: Int = edges.cpu().to(torch.int64).numpy()
    if ends.size and not (ends.min() >= 0 and ends.max() < num_nodes):
        node = int(ends[(ends < 0) | (ends >= num_nodes)][0])
        raise DemonetError(f"graph {position}: edge_index has node {node}, the graph has {num_nodes} nodes")
    return ends


def _attributes(data: Data, position: int, num_nodes: int) -> Float:
    if data.x is None:
        raise _missing_x(position)
    return numeric(data.x, f"graph {position}: x", num_nodes)


def _missing_x(position: int) -> DemonetError:
    return DemonetError(f"graph {position} has no x, but others do", hint="give x to all graphs or to none")


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
