"""What a file of many graphs says, before it becomes a `GraphSet`: one long list of nodes, parted by graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from demonet.data.edges import SelfLoops, simple_edges
from demonet.data.graph_set import GraphSet
from demonet.data.ids import as_attribute
from demonet.data.node_labels import encode_classes
from demonet.errors import DemonetError

MAX_NODE_LABELS = 1000


@dataclass
class Collection:
    """Many graphs as one.

    Args:
        source: Node numbers, over all graphs.
        target: As many again.
        graph: The graph of each node: 0, 1, 2, ..., in order.
        labels: One label a graph, None for no label.
        weight: One number an edge.
        node_labels: One label a node.
        attributes: One row of numbers a node.
        node_ids: The id of each node, as it came.
        file: Where it comes from.
        graph_ids: The id of each graph, where the file has ids.
    """

    source: np.ndarray
    target: np.ndarray
    graph: np.ndarray
    labels: list[Any]
    weight: np.ndarray | None = None
    node_labels: list[Any] | None = None
    attributes: np.ndarray | None = None
    node_ids: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    file: Path | None = None
    graph_ids: list[Any] = field(default_factory=list)

    def graphs(self, name: str, self_loops: SelfLoops) -> GraphSet:
        """Make edges simple, all at once, and cut the whole into graphs."""
        if not self.labels:
            raise DemonetError("no graph at all", file=self.file)
        across = np.flatnonzero(self.graph[self.source] != self.graph[self.target])
        if across.size:
            u, v = self.source[across[0]], self.target[across[0]]
            problem = f"edge {int(across[0])} joins graphs number {self.graph[u]} and {self.graph[v]}"
            raise DemonetError(problem, file=self.file)
        edge_index, weight = simple_edges(
            self.source, self.target, self.graph.size, weight=self.weight, self_loops=self_loops, file=self.file
        )
        sizes = np.bincount(self.graph, minlength=len(self.labels))
        if (sizes == 0).any():
            raise DemonetError(f"graph number {int(np.argmin(sizes))} has no nodes", file=self.file)
        x, label_names = self._one_hot()
        y, class_names = encode_classes(self.labels)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        arcs = np.searchsorted(edge_index[0].numpy(), starts)  # sorted by source, so each graph is one slice
        attributes = None if self.attributes is None else torch.from_numpy(self.attributes.astype(np.float32))
        graphs = []
        for i, (start, end) in enumerate(pairwise(starts)):
            data = Data(edge_index=edge_index[:, arcs[i] : arcs[i + 1]] - int(start), num_nodes=int(end - start))
            data.node_ids = as_attribute(self.node_ids[start:end])
            data.y = torch.tensor([y[i]])
            for key, rows in (("x", x), ("attributes", attributes)):
                if rows is not None:
                    data[key] = rows[start:end]
            if weight is not None:
                data.edge_weight = weight[arcs[i] : arcs[i + 1]]
            graphs.append(data)
        return GraphSet(graphs, class_names, label_names, name, self.graph_ids)

    def _one_hot(self) -> tuple[torch.Tensor | None, list[Any]]:
        """A column for each node label that occurs."""
        if self.node_labels is None:
            return None, []
        codes, names = encode_classes(self.node_labels)
        if (codes < 0).any():
            node = int(np.argmin(codes))
            raise DemonetError(f"node {self.node_ids[node]} has no label where others have", file=self.file)
        if len(names) > MAX_NODE_LABELS:
            problem = f"{len(names)} different node labels, more than {MAX_NODE_LABELS}"
            raise DemonetError(problem, file=self.file, hint="numbers that measure something are attributes")
        return torch.nn.functional.one_hot(torch.from_numpy(codes), len(names)).float(), names
