"""KeptGraphs: many graphs, checked, sorted and aggregated once; batches of them are put together from the pieces."""

from __future__ import annotations

import torch
from torch import Tensor

from demonet.degree.kept import KeptLayout
from demonet.nn.door import GraphInput
from demonet.ops.sparse import is_sparse, sparse_rows


class KeptGraphs:
    """What :meth:`~demonet.GraphDEMONet.prepare` made of many graphs, and where each of them stands in it.

    Args:
        whole: The disjoint union of all graphs, prepared; nodes and arcs stood in it graph after graph.
        num_nodes: Nodes of each graph.
        num_arcs: Arcs of each graph.
    """

    def __init__(self, whole: GraphInput, num_nodes: list[int], num_arcs: list[int]) -> None:
        device = whole.layout.key.device
        self.whole = whole
        self._layout = KeptLayout(
            whole.layout, torch.tensor(num_nodes, device=device), torch.tensor(num_arcs, device=device)
        )

    def take(self, graphs: Tensor) -> GraphInput:
        """The graphs with those numbers as one batch: the same numbers as if it had been prepared by itself."""
        whole = self.whole
        layout, rows, batch, arcs = self._layout.take(graphs.to(whole.layout.key.device))
        x = sparse_rows(whole.x, rows) if is_sparse(whole.x) else whole.x[rows]
        edge_weight = None if whole.edge_weight is None else whole.edge_weight[arcs]
        return GraphInput(x, layout, whole.folded[rows], edge_weight, batch, graphs.numel())
