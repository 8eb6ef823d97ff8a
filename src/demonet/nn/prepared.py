"""Input of a model: a graph is checked and sorted by degree once, not in every layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.utils import is_torch_sparse_tensor, to_edge_index

from demonet.checks import check_edge_index, check_features
from demonet.degree.layout import DegreeLayout
from demonet.degree.union import LayoutUnion, merged
from demonet.errors import DemonetError
from demonet.nn.conv import DEMOConv
from demonet.nn.edges import check_degrees, check_length
from demonet.ops import backend
from demonet.ops.backend import is_sparse
from demonet.ops.sparse import sparse_rows

AHEAD = 32  # batches of small graphs that are assembled at a time


@dataclass(frozen=True, eq=False)
class GraphInput:
    """A checked and sorted graph, with everything that stays constant while a model trains on it.

    Attributes:
        x: ``[n, F]`` features, rows in degree order.
        layout: The graph, which also maps rows back to the caller's order.
        neighbourhood: :meth:`~demonet.DEMOConv.neighbourhood` of the first layer, which involves no parameter; None for
            a model whose first layer does not read ``x`` itself.
        edge_weight: ``[m]`` or None.
        batch: ``[n]`` the graph of each row, or None for one graph.
        num_graphs: Number of graphs.
        fill: Of a part of a graph: appends the rows of other processes, which the lists of the layout read after its
            own. See :mod:`demonet.distributed`.
    """

    x: Tensor
    layout: DegreeLayout
    neighbourhood: Tensor | None = field(compare=False)  # it follows from the rest
    edge_weight: Tensor | None = None
    batch: Tensor | None = None
    num_graphs: int = 1
    fill: Callable[[Tensor], Tensor] | None = field(default=None, compare=False)

    @cached_property
    def sorted_layout(self) -> DegreeLayout:
        """The layout of the rows as they are here."""
        return self.layout.sorted()


class GraphUnion:
    """Many graphs, prepared once; batches are assembled from them without sorting edges again.

    Args:
        whole: The disjoint union of all graphs, prepared; its nodes and edges are graph after graph.
        num_nodes: Nodes of each graph.
        num_edges: Edges of each graph.
    """

    def __init__(self, whole: GraphInput, num_nodes: list[int], num_edges: list[int]) -> None:
        device = whole.layout.key.device
        self.whole = whole
        sizes = (torch.tensor(count, device=device) for count in (num_nodes, num_edges))
        self._layout = LayoutUnion(whole.layout, *sizes)

    def take(self, batches: Sequence[Tensor]) -> Iterator[GraphInput]:
        """Each batch of the graphs with those numbers: the same values as if it had been prepared alone.

        No graph is in two batches.
        """
        whole = self.whole
        device = whole.layout.key.device
        for start in range(0, len(batches), AHEAD):
            some = [graphs.to(device) for graphs in batches[start : start + AHEAD]]
            for graphs, (layout, rows, batch, edges) in zip(some, self._layout.take(some), strict=True):
                weight = None if whole.edge_weight is None else whole.edge_weight[edges]
                sums = None if whole.neighbourhood is None else take_rows(whole.neighbourhood, rows)
                yield GraphInput(take_rows(whole.x, rows), layout, sums, weight, batch, graphs.numel())


def take_rows(x: Tensor, rows: Tensor) -> Tensor:
    """Some rows, dense or sparse."""
    return sparse_rows(x, rows) if is_sparse(x) else x.index_select(0, rows)


class LayerInput(NamedTuple):
    """What the layers of a model take, however the graph was given.

    Attributes:
        x: Features; rows in degree order if ``graph`` is a layout.
        graph: A layout of these rows, or an ``edge_index``, or the block of every convolution.
        edge_weight, batch, num_graphs: As given, or None.
        neighbourhood: Of a prepared graph, :attr:`GraphInput.neighbourhood`.
        layout: The layout that maps rows back to the caller's order, or None.
        degree: The degrees that choose the tasks, where they are not those of the edges, in the order of ``x``.
        fill: Of a part of a graph, :attr:`GraphInput.fill`.
    """

    x: Tensor
    graph: Any
    edge_weight: Tensor | None
    neighbourhood: Tensor | None
    layout: DegreeLayout | None
    batch: Tensor | None
    num_graphs: int | None
    degree: Tensor | None = None
    fill: Callable[[Tensor], Tensor] | None = None

    def leave(self, h: Tensor) -> Tensor:
        """Rows in the caller's order."""
        if self.layout is None:
            return h
        return sparse_rows(h, self.layout.rank) if is_sparse(h) else self.layout.leave(h)

    def graphs(self) -> tuple[Tensor, int]:
        """The graph of each row, and the number of graphs."""
        if self.batch is None:
            return torch.zeros(self.x.size(0), dtype=torch.long, device=self.x.device), self.num_graphs or 1
        if self.num_graphs is None:
            return self.batch, int(self.batch.max()) + 1 if self.batch.numel() else 0
        return self.batch, self.num_graphs


def prepare(
    conv: DEMOConv,
    x: Tensor,
    edge_index: Tensor | DegreeLayout,
    *,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    num_graphs: int | None = None,
    sums: bool = True,
) -> GraphInput:
    """Check and sort a graph, and with ``sums`` compute the constant part of its first convolution."""
    x = sparse_rows(x, None) if is_sparse(x) else x
    edge_index, edge_weight = _as_edges(edge_index, edge_weight)
    if edge_weight is not None and not bool(torch.isfinite(edge_weight).all()):
        edge = int((~torch.isfinite(edge_weight)).nonzero()[0, 0])
        raise DemonetError(f"edge weight {float(edge_weight[edge])} at edge {edge}", hint="weights must be finite")
    if isinstance(edge_index, DegreeLayout):
        layout = edge_index
        check_features(x, layout.num_nodes)
    else:
        check_features(x, x.size(0))
        check_edge_index(edge_index, x.size(0))
        layout = DegreeLayout.from_edge_index(edge_index, x.size(0), by=conv.tasks.by)
    if batch is not None:
        check_batch(batch, x.size(0), num_graphs)
    given = layer_input(x, layout, edge_weight, batch, num_graphs)
    neighbourhood = conv.neighbourhood(given.x, layout.sorted(), edge_weight) if sums else None
    return GraphInput(given.x, layout, neighbourhood, edge_weight, given.batch, given.graphs()[1])


def layer_input(
    x: Tensor | GraphInput,
    edge_index: Tensor | DegreeLayout | None = None,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    num_graphs: int | None = None,
    degree: Tensor | None = None,
) -> LayerInput:
    """Any accepted form of a graph as the layers take it."""
    if isinstance(x, GraphInput):
        if any(given is not None for given in (edge_index, edge_weight, batch, num_graphs, degree)):
            raise DemonetError(
                "a prepared graph together with edges, weights, degrees or a batch", hint="pass those to prepare()"
            )
        layout = x.layout.sorted() if backend.tracing() else x.sorted_layout
        given = (x.x, layout, x.edge_weight, x.neighbourhood, x.layout, x.batch, x.num_graphs)
        return LayerInput(*given, fill=x.fill)
    if edge_index is None:
        raise DemonetError("edge_index is missing", hint="pass edge_index, or what prepare() returned")
    x = sparse_rows(x, None) if is_sparse(x) else x
    if isinstance(edge_index, list):
        edge_index = merged(edge_index)
    edge_index, edge_weight = _as_edges(edge_index, edge_weight)
    if not backend.tracing():
        check_features(x, x.size(0))
        if batch is not None:
            check_batch(batch, x.size(0), num_graphs)
    if not isinstance(edge_index, DegreeLayout):
        return LayerInput(x, edge_index, edge_weight, None, None, batch, num_graphs, degree)
    for name, values in (("rows of features", x), ("batch entries", batch)):
        if values is not None and values.size(0) != edge_index.num_nodes:
            raise DemonetError(f"{values.size(0)} {name} for a layout of {edge_index.num_nodes} nodes")
    if degree is not None:
        check_degrees(degree, edge_index.num_nodes, edge_index.by)
    rows = sparse_rows(x, edge_index.order) if is_sparse(x) else edge_index.enter(x)
    batch = None if batch is None else edge_index.enter(batch)
    degree = None if degree is None else edge_index.enter(degree)
    return LayerInput(rows, edge_index.sorted(), edge_weight, None, edge_index, batch, num_graphs, degree)


def _as_edges(
    edge_index: Tensor | DegreeLayout, edge_weight: Tensor | None
) -> tuple[Tensor | DegreeLayout, Tensor | None]:
    """A ``torch.sparse`` adjacency (rows are targets) as edges and weights; anything else as it is."""
    if isinstance(edge_index, DegreeLayout) or not is_torch_sparse_tensor(edge_index):
        return edge_index, edge_weight
    if edge_weight is not None:
        raise DemonetError("adj_t with edge_weight", hint="its values are the weights")
    target_source, values = to_edge_index(edge_index)
    return target_source.flip(0), values


def check_batch(batch: Tensor, num_nodes: int, num_graphs: int | None) -> None:
    """Raise for anything but a graph number for each node."""
    check_length("batch entries", "node", batch, num_nodes)
    if batch.is_floating_point():
        raise DemonetError(f"batch is of {batch.dtype}, not an integer for each node")
    outside = batch < 0 if num_graphs is None else (batch < 0) | (batch >= num_graphs)
    if bool(outside.any()):
        node = int(outside.nonzero()[0])
        allowed = "graphs are counted from 0" if num_graphs is None else f"num_graphs={num_graphs}, counted from 0"
        raise DemonetError(f"node {node} is in graph {int(batch[node])}", hint=allowed)
