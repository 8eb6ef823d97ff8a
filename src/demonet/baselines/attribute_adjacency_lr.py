"""Logistic regression on the attributes of a node and, beside them, its row of the adjacency matrix."""

from __future__ import annotations

from typing import cast

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from demonet.baselines.attribute_rows import beside, node_attributes
from demonet.baselines.base import Baseline, Items
from demonet.data.features import adjacency
from demonet.data.splits import Split


class AttributeAdjacencyLR(Baseline):
    """``[tf-idf, scale * adjacency row scaled to length one]``; scale and C are chosen on validation.

    Attributes:
        scale: The scale that was chosen: 0 where it does not help to know who the neighbours are.
    """

    name = "attribute-adjacency-lr"
    kinds = ("nodes",)

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> None:
        data = cast(Data, data)
        self.scale, choice, rows = beside(node_attributes(data), adjacency(data).astype(np.float64), y, split)
        self._prediction = choice.predict(rows)

    def predict(self) -> Tensor:
        """The class that a node's attributes and the names of its neighbours speak for."""
        return self._prediction
