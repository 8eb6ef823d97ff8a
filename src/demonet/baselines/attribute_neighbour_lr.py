"""Logistic regression on the attributes of a node and, beside them, the mean of its neighbours'."""

from __future__ import annotations

from typing import cast

from torch import Tensor
from torch_geometric.data import Data

from demonet.baselines.attribute_rows import beside, node_attributes
from demonet.baselines.base import Baseline, Items
from demonet.data.features import adjacency
from demonet.data.splits import Split


class AttributeNeighbourLR(Baseline):
    """``[tf-idf, scale * neighbours' mean tf-idf scaled to length one]``; scale and C are chosen on validation.

    Attributes:
        scale: The scale that was chosen: 0 where the neighbours do not help.
    """

    name = "attribute-neighbour-lr"
    kinds = ("nodes",)

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> None:
        data = cast(Data, data)
        own = node_attributes(data)
        neighbours = adjacency(data, weighted=False) @ own  # scaled to length one, the sum is the mean
        self.scale, choice, rows = beside(own, neighbours, y, split)
        self._prediction = choice.predict(rows)

    def predict(self) -> Tensor:
        """The class that a node's attributes and its neighbours' speak for."""
        return self._prediction
