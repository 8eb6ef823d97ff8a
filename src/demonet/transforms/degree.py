"""AddDegree: the degrees of the whole graph, for batches of sampled neighbourhoods."""

from __future__ import annotations

from torch_geometric.data import Data
from torch_geometric.data.datapipes import functional_transform
from torch_geometric.transforms import BaseTransform

from demonet.degree.count import By, check_by, count_degree


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

    >>> import torch
    >>> AddDegree()(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=3)).degree
    tensor([1, 1, 0])
    """

    def __init__(self, by: By = "in") -> None:
        check_by(by)
        self.by: By = by

    def forward(self, data: Data) -> Data:
        """Attach the degrees."""
        data.degree = count_degree(data.edge_index, int(data.num_nodes or 0), self.by)
        return data
