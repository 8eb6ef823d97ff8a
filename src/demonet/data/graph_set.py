"""Sets of graphs: `GraphSet`, a sequence of Data with labels and names, and `Collection`, which readers return."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet.checks import check_edge_index, check_features, check_labels
from demonet.data.edges import simple_edges
from demonet.data.ids import LabelTable, as_attribute, encode_classes
from demonet.errors import DemonetError
from demonet.options import Merge, SelfLoops

MAX_NODE_LABELS = 1000


@dataclass
class GraphSet(Sequence[Data]):
    """Graphs in order. ``graphs[i]`` is a Data; ``graphs[index]`` with a slice, list or tensor is a smaller set.

    Args:
        graphs: Each with ``edge_index``, ``y`` (its class, ``[1]``) and, if nodes have labels, their one-hot ``x``; if
            they only have attributes, these.
        class_names: The name of each class, in order.
        node_label_names: The node label of each column of ``x``.
        name: A name for the set.
        graph_ids: The id of each graph in its source; 0, 1, 2, ... by default.
    """

    graphs: list[Data]
    class_names: list[Any] = field(default_factory=list)
    node_label_names: list[Any] = field(default_factory=list)
    name: str = "graphs"
    graph_ids: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.graphs:
            raise DemonetError(f"{self.name} has no graph")
        self.graph_ids = self.graph_ids or list(range(len(self.graphs)))
        if len(self.graph_ids) != len(self.graphs):
            raise DemonetError(f"{self.name}: {len(self.graph_ids)} graph ids for {len(self.graphs)} graphs")
        for i, data in enumerate(self.graphs):
            try:
                check_edge_index(data.edge_index, data.num_nodes)
                if data.x is not None:
                    check_features(data.x, data.num_nodes)
                if data.y is not None:
                    check_labels(data.y, 1, len(self.class_names) or None)
            except DemonetError as error:
                raise DemonetError(f"graph {i} of {self.name}: {error}") from None

    @property
    def y(self) -> Tensor:
        """The class of each graph, -1 for unlabelled."""
        none = torch.tensor([-1])
        return torch.cat([none if data.y is None else data.y for data in self.graphs])

    def __len__(self) -> int:
        return len(self.graphs)

    @overload
    def __getitem__(self, index: int) -> Data: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | Tensor) -> GraphSet: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            places = list(range(len(self))[index])
        elif isinstance(index, Sequence) or (isinstance(index, Tensor) and index.dim()):
            places = [int(i) for i in index]
        else:
            return self.graphs[int(index)]
        chosen, ids = [self.graphs[i] for i in places], [self.graph_ids[i] for i in places]
        return GraphSet(chosen, self.class_names, self.node_label_names, self.name, ids)

    def __iter__(self) -> Iterator[Data]:
        return iter(self.graphs)

    def __repr__(self) -> str:
        return f"GraphSet({self.name!r}, {len(self)} graphs, {len(self.class_names)} classes)"


@dataclass
class Collection:
    """Many graphs as one list of nodes and one of edges.

    Args:
        source: The index of each edge's source, counted over all graphs.
        target: The index of each edge's target.
        graph: The graph of each node: 0, 1, 2, ..., ascending.
        y: The class of each graph, -1 for unlabelled.
        class_names: The name of each class, in order.
        weight: One number per edge.
        node_labels: One label per node.
        attributes: One row of numbers per node.
        node_ids: The id of each node in its source.
        file: The file that was read.
        graph_ids: The id of each graph, if the file has ids.
        label_table: The columns of labels of the graphs, if there are several.
        label_name: The name of the first of them, if it has one.
        unused: What the source has besides, which is not read.
        with_attributes: Whether attributes stand beside node labels in ``x``. Without node labels, they always are
            ``x``.
    """

    source: np.ndarray
    target: np.ndarray
    graph: np.ndarray
    y: np.ndarray
    class_names: list[Any]
    weight: np.ndarray | None = None
    node_labels: list[Any] | None = None
    attributes: np.ndarray | None = None
    node_ids: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    file: Path | None = None
    graph_ids: list[Any] = field(default_factory=list)
    label_table: LabelTable | None = None
    label_name: str | None = None
    unused: list[str] = field(default_factory=list)
    with_attributes: bool = False

    @property
    def column_names(self) -> list[str] | None:
        """The name of each column of ``x``; None without attributes and node labels."""
        labels = [] if self.node_labels is None else encode_classes(self.node_labels)[1]
        count = 0 if self.attributes is None or (labels and not self.with_attributes) else self.attributes.shape[1]
        return [*map(str, labels), *(f"attribute {number}" for number in range(1, count + 1))] or None

    def graphs(self, name: str, self_loops: SelfLoops, merge: Merge | None = None) -> GraphSet:
        """Make the edges of all graphs simple at once, then split into graphs."""
        if not len(self.y):
            raise DemonetError("the file has no graph", file=self.file)
        across = np.flatnonzero(self.graph[self.source] != self.graph[self.target])
        if across.size:
            u, v = (int(end[across[0]]) for end in (self.source, self.target))
            ends = " and ".join(f"node {self._id(i)} of graph {self._graph_id(int(self.graph[i]))}" for i in (u, v))
            raise DemonetError(f"an edge connects {ends}", file=self.file)
        edge_index, weight = simple_edges(
            self.source,
            self.target,
            self.graph.size,
            weight=self.weight,
            self_loops=self_loops,
            merge=merge,
            file=self.file,
        )
        sizes = np.bincount(self.graph, minlength=len(self.y))
        if (sizes == 0).any():
            raise DemonetError(f"graph {self._graph_id(int(np.argmin(sizes)))} has no nodes", file=self.file)
        x, label_names = self._one_hot()
        starts = np.concatenate([[0], np.cumsum(sizes)])
        bounds = np.searchsorted(edge_index[0].numpy(), starts)  # sorted by source, so each graph is one slice
        attributes = None if self.attributes is None else torch.from_numpy(self.attributes.astype(np.float32))
        if attributes is not None and (x is None or self.with_attributes):
            x = attributes if x is None else torch.cat([x, attributes], 1)
        graphs = []
        for i, (start, end) in enumerate(pairwise(starts)):
            data = Data(edge_index=edge_index[:, bounds[i] : bounds[i + 1]] - int(start), num_nodes=int(end - start))
            data.node_ids = as_attribute(self.node_ids[start:end])
            data.y = torch.tensor([self.y[i]])
            for key, rows in (("x", x), ("attributes", attributes)):
                if rows is not None:
                    data[key] = rows[start:end]
            if weight is not None:
                data.edge_weight = weight[bounds[i] : bounds[i + 1]]
            graphs.append(data)
        return GraphSet(graphs, self.class_names, label_names, name, self.graph_ids)

    def _id(self, node: int) -> Any:
        return self.node_ids[node] if len(self.node_ids) else node

    def _graph_id(self, graph: int) -> Any:
        return self.graph_ids[graph] if self.graph_ids else graph

    def _one_hot(self) -> tuple[torch.Tensor | None, list[Any]]:
        """A column for each node label that occurs."""
        if self.node_labels is None:
            return None, []
        codes, names = encode_classes(self.node_labels)
        if (codes < 0).any():
            node = int(np.argmin(codes))
            raise DemonetError(f"node {self._id(node)} has no label, but other nodes have", file=self.file)
        if len(names) > MAX_NODE_LABELS:
            problem = f"{len(names)} different node labels, more than {MAX_NODE_LABELS}"
            raise DemonetError(problem, file=self.file, hint="store measurements as node attributes")
        return torch.nn.functional.one_hot(torch.from_numpy(codes), len(names)).float(), names
