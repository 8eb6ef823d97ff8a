"""Logistic regression on the attributes alone: how much of a task the graph is not needed for."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.data import Data

from demonet.baselines.attribute_rows import graph_attributes, node_attributes
from demonet.baselines.base import Baseline, Items
from demonet.baselines.linear import logistic
from demonet.data.splits import Split


class AttributeLR(Baseline):
    """Multinomial logistic regression with L2, C chosen on validation.

    Nodes come with their tf-idf, graphs with the counts of their node labels or their mean attributes: see
    :mod:`~demonet.baselines.attribute_rows`.
    """

    name = "attribute-lr"

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> None:
        x = node_attributes(data) if isinstance(data, Data) else graph_attributes(data)
        self._prediction = logistic(x, y, split).predict(x)

    def predict(self) -> Tensor:
        """The class that the attributes speak for."""
        return self._prediction
