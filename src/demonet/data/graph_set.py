"""A set of graphs to classify: a sequence of Data, with the labels and the names of what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet.checks import check_edge_index, check_features, check_labels
from demonet.errors import DemonetError


@dataclass
class GraphSet(Sequence[Data]):
    """Graphs in order. ``graphs[i]`` is a Data, ``graphs[index]`` with a slice, list or tensor a smaller set.

    Args:
        graphs: Each with ``edge_index``, ``y`` (its class, ``[1]``) and, where nodes have labels, their one-hot ``x``.
        class_names: The name of each class, in order.
        node_label_names: The node label that each column of ``x`` stands for.
        name: A name for the set.
        graph_ids: The id of each graph, as it came; 0, 1, 2, ... where it has none.
    """

    graphs: list[Data]
    class_names: list[Any] = field(default_factory=list)
    node_label_names: list[Any] = field(default_factory=list)
    name: str = "graphs"
    graph_ids: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.graphs:
            raise DemonetError(f"{self.name}: no graph at all")
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
