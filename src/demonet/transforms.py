"""PyTorch Geometric transforms: a graph in degree order; true degrees for batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data
from torch_geometric.data.datapipes import functional_transform
from torch_geometric.transforms import BaseTransform
from torch_geometric.utils import select

from demonet.checks import check_edge_index
from demonet.degree.count import By, check_by, count_degree
from demonet.degree.layout import DegreeLayout
from demonet.errors import DemonetError
from demonet.ops.backend import is_sparse
from demonet.ops.sparse import sparse_rows

__all__ = ["AddDegree", "ToDegreeLayout"]
_OWN = ("edge_index", "layout", "degree_order", "degree_rank", "num_nodes")


@functional_transform("add_degree")
class AddDegree(BaseTransform):
    """Attach ``data.degree``, the degree of every node.

    A batch of PyG's ``NeighborLoader`` has the degrees of its nodes in the whole graph then, not those in the sample::

        data = AddDegree()(data)
        for batch in NeighborLoader(data, [16, 16], batch_size=1024):
            scores = model(batch.x, batch.edge_index, degree=batch.degree)[: batch.batch_size]

    The layer sums over the edges of the batch: with ``aggr="mean"`` the mean of a sample is that of all neighbours on
    average, whereas a sum is smaller than the whole one.

    Args:
        by: Which degree decides the task of a node: ``"in"``, ``"out"`` or ``"pair"``, as in
            :class:`~demonet.DegreeTasks`.

    >>> AddDegree()(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=3)).degree
    tensor([1, 1, 0])
    """

    def __init__(self, by: By = "in") -> None:
        check_by(by)
        self.by: By = by

    def forward(self, data: Data) -> Data:
        """Attach the degrees."""
        num_nodes = int(data.num_nodes or 0)
        check_edge_index(data.edge_index, num_nodes)
        data.degree = count_degree(data.edge_index, num_nodes, self.by)
        return data


class ToDegreeLayout(BaseTransform):
    r"""Put the nodes and edges of a graph into degree order and attach its layout.

    Everything that PyG knows to belong to nodes (``x``, ``y``, masks, further tensors) is sorted by degree; what
    belongs to edges (``edge_weight``, ``edge_attr``) by target, then source. Node ids in attributes that PyG counts as
    such (``edge_index``, others with ``index`` in their name, ``face``) are renumbered. With ``data.layout`` no layer
    has to reorder rows.

    The attributes that it adds:

    - ``layout``: the :class:`~demonet.DegreeLayout`, whose rows are those of ``data``.
    - ``degree_order``: ``[n]`` the original node of each row.
    - ``degree_rank``: ``[n]`` the row of each original node: ``out[data.degree_rank]`` is in the original order.

    Args:
        by: Which degree decides the task, ``"in"``, ``"out"`` or ``"pair"``.

    >>> edge_index = torch.tensor([[0, 0, 1, 2], [1, 2, 0, 0]])
    >>> data = ToDegreeLayout()(Data(x=torch.tensor([[0.0], [1.0], [2.0], [3.0]]), edge_index=edge_index))
    >>> data.x.flatten().tolist(), data.degree_rank.tolist()
    ([3.0, 1.0, 2.0, 0.0], [3, 1, 2, 0])
    >>> data.edge_index.tolist()
    [[3, 3, 1, 2], [1, 2, 3, 3]]
    """

    def __init__(self, by: By = "in") -> None:
        check_by(by)
        self.by: By = by

    def forward(self, data: Data) -> Data:
        """Sort nodes and edges, and attach the layout."""
        if isinstance(data, Batch):
            raise DemonetError("a Batch in degree order cannot be split again", hint="use AddDegreeLayout")
        if not isinstance(data, Data) or data.edge_index is None:
            raise DemonetError(f"a {type(data).__name__} without edge_index", hint="apply this before ToSparseTensor")
        given, num_nodes = data.edge_index, int(data.num_nodes or 0)
        layout = DegreeLayout.from_edge_index(given, num_nodes, by=self.by)
        assert layout.order is not None
        assert layout.rank is not None
        assert layout.edge is not None
        order, rank, edge = layout.order, layout.rank, layout.edge.long()
        before = data.get("degree_order")

        kinds = {key: (data.is_node_attr(key), data.is_edge_attr(key)) for key, _ in data if key not in _OWN}
        for key, (of_nodes, of_edges) in kinds.items():
            value = data[key]
            holds_ids = isinstance(value, Tensor) and value.dtype in (torch.int32, torch.int64)
            if ("index" in key or key == "face") and holds_ids:
                value = rank[value.long()].to(value.dtype)
            if of_nodes or of_edges:
                value = _select(value, order if of_nodes else edge, data.__cat_dim__(key, value))
            data[key] = value
        data.edge_index = _as_given(given, rank[given.as_subclass(Tensor).long()[:, edge]], num_nodes)
        if data.num_nodes != num_nodes:  # it was the largest id, which is another node's now
            data.num_nodes = num_nodes
        data.layout = layout.in_list_order()
        data.degree_order = order if before is None else before[order]
        data.degree_rank = torch.empty_like(order).index_copy_(
            0, data.degree_order, torch.arange(num_nodes, device=order.device)
        )
        return data


def _select(value: Any, index: Tensor, dim: int) -> Any:
    if isinstance(value, Tensor) and is_sparse(value):
        return sparse_rows(value, index)
    return value[index.cpu().numpy()] if isinstance(value, np.ndarray) else select(value, index, dim)


def _as_given(given: Tensor, edges: Tensor, num_nodes: int) -> Tensor:
    """The sorted edges in the type of the given ones."""
    edges = edges.to(given.dtype)
    if not isinstance(given, EdgeIndex):
        return edges
    size = (num_nodes, num_nodes)
    return EdgeIndex(edges, sparse_size=size, sort_order="col", is_undirected=given.is_undirected)
