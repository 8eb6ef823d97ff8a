"""The door of a model: a graph is checked and brought into degree order here, once, not in every layer."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.utils import is_torch_sparse_tensor, to_edge_index

from demonet.checks import check_edge_index, check_features
from demonet.degree.layout import DegreeLayout
from demonet.degree.tiers import Tiers, cut_tiers
from demonet.errors import DemonetError
from demonet.nn.conv import DEMOConv
from demonet.ops.sparse import is_sparse, sparse_rows


@dataclass(frozen=True, eq=False)
class GraphInput:
    """A graph, checked and sorted, with everything that stays constant while a model trains on it.

    Attributes:
        x: ``[n, F]`` features, rows in degree order.
        layout: The graph, with the way back to the caller's order.
        folded: The first layer's :meth:`~demonet.DEMOConv.neighbourhood`, in which no parameter takes part.
        edge_weight: ``[m]`` or None.
        batch: ``[n]`` the graph of each row, or None for one graph.
        num_graphs: Number of graphs.
    """

    x: Tensor
    layout: DegreeLayout
    folded: Tensor = field(compare=False)  # it follows from the rest
    edge_weight: Tensor | None = None
    batch: Tensor | None = None
    num_graphs: int = 1

    @cached_property
    def rows(self) -> DegreeLayout:
        """The layout of the rows as they stand here."""
        return self.layout.sorted()

    @cached_property
    def tiers(self) -> tuple[Tiers, Tensor, Tensor]:
        """The rows standing apart in tiers, for a small graph in main memory: the graph, ``x`` and ``folded``."""
        lists, back = (self.rows.pointer, self.rows.neighbours), (self.rows.back_pointer, self.rows.back_neighbours)
        tiers = cut_tiers(self.rows.offsets, lists, back)
        return tiers, tiers.pad(self.x), tiers.pad(self.folded)

    @cached_property
    def places(self) -> tuple[Tensor, Tensor]:
        """The node at each place of the tiers, numbered as the caller does; and 1, or 0 where in truth none stands."""
        tiers, x, _ = self.tiers
        nodes = self.layout.enter(torch.arange(self.layout.num_nodes))
        return nodes[tiers.source], x.new_zeros(len(x)).index_fill_(0, tiers.place, 1)


class Inside(NamedTuple):
    """What the layers of a model work on, however the graph was given."""

    x: Tensor
    graph: Tensor | DegreeLayout
    edge_weight: Tensor | None
    folded: Tensor | None
    outer: DegreeLayout | None
    batch: Tensor | None
    num_graphs: int | None

    def leave(self, h: Tensor) -> Tensor:
        """Rows back in the caller's order."""
        if self.outer is None:
            return h
        return sparse_rows(h, self.outer.rank) if is_sparse(h) else self.outer.leave(h)

    def graphs(self) -> tuple[Tensor, int]:
        """The graph of each row, and how many there are."""
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
) -> GraphInput:
    """Check and sort a graph, and do the constant part of its first convolution."""
    edge_index, edge_weight = _arcs(edge_index, edge_weight)
    if edge_weight is not None and not bool(torch.isfinite(edge_weight).all()):
        arc = int((~torch.isfinite(edge_weight)).nonzero()[0, 0])
        raise DemonetError(f"edge weight {float(edge_weight[arc])} at arc {arc}", hint="weights must be finite")
    if isinstance(edge_index, DegreeLayout):
        layout = edge_index
        check_features(x, layout.num_nodes)
    else:
        check_features(x, x.size(0))
        check_edge_index(edge_index, x.size(0))
        layout = DegreeLayout.from_edge_index(edge_index, x.size(0), by=conv.tasks.by)
    if batch is not None:
        _check_batch(batch, x.size(0), num_graphs)
    inside = enter(x, layout, edge_weight, batch, num_graphs)
    folded = conv.neighbourhood(inside.x, layout.sorted(), edge_weight)
    return GraphInput(inside.x, layout, folded, edge_weight, inside.batch, inside.graphs()[1])


def enter(
    x: Tensor | GraphInput,
    edge_index: Tensor | DegreeLayout | None = None,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    num_graphs: int | None = None,
) -> Inside:
    """Whatever was given, as the layers want it."""
    if isinstance(x, GraphInput):
        if any(given is not None for given in (edge_index, edge_weight, batch, num_graphs)):
            raise DemonetError("a prepared graph and parts of one", hint="prepare() takes all of them; pass it alone")
        layout = x.layout.sorted() if torch.compiler.is_compiling() else x.rows  # a traced program keeps nothing
        return Inside(x.x, layout, x.edge_weight, x.folded, x.layout, x.batch, x.num_graphs)
    if edge_index is None:
        raise DemonetError("features alone are not a graph", hint="pass edge_index, or what prepare() returned")
    edge_index, edge_weight = _arcs(edge_index, edge_weight)
    if not torch.compiler.is_compiling():  # a traced program cannot look at values
        check_features(x, x.size(0))
        if batch is not None:
            _check_batch(batch, x.size(0), num_graphs)
    if not isinstance(edge_index, DegreeLayout):
        return Inside(x, edge_index, edge_weight, None, None, batch, num_graphs)
    for name, values in (("rows of features", x), ("batch entries", batch)):
        if values is not None and values.size(0) != edge_index.num_nodes:
            raise DemonetError(f"{values.size(0)} {name} for a layout of {edge_index.num_nodes} nodes")
    rows = sparse_rows(x, edge_index.order) if is_sparse(x) else edge_index.enter(x)
    batch = None if batch is None else edge_index.enter(batch)
    return Inside(rows, edge_index.sorted(), edge_weight, None, edge_index, batch, num_graphs)


def _arcs(edge_index: Tensor | DegreeLayout, edge_weight: Tensor | None) -> tuple[Tensor | DegreeLayout, Tensor | None]:
    """A ``torch.sparse`` adjacency (rows are targets) as arcs and weights; anything else as it is."""
    if isinstance(edge_index, DegreeLayout) or not is_torch_sparse_tensor(edge_index):
        return edge_index, edge_weight
    if edge_weight is not None:
        raise DemonetError("adj_t with edge_weight", hint="its values are the weights")
    target_source, values = to_edge_index(edge_index)
    return target_source.flip(0), values


def _check_batch(batch: Tensor, num_nodes: int, num_graphs: int | None) -> None:
    """Refuse anything but the number of a graph for each node."""
    if batch.dim() != 1 or batch.is_floating_point():
        raise DemonetError(f"batch is {list(batch.shape)} of {batch.dtype}, not an integer for each node")
    if batch.numel() != num_nodes:
        raise DemonetError(f"{batch.numel()} batch entries for {num_nodes} nodes", hint="one for each node")
    outside = batch < 0 if num_graphs is None else (batch < 0) | (batch >= num_graphs)
    if bool(outside.any()):
        node = int(outside.nonzero()[0])
        allowed = "graphs are counted from 0" if num_graphs is None else f"num_graphs={num_graphs}, counted from 0"
        raise DemonetError(f"node {node} is in graph {int(batch[node])}", hint=allowed)
