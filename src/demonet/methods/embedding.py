"""Base class of structural embeddings: a vector per node from the graph alone, then logistic regression."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch_geometric.data import Data

from demonet.data.splits import Split
from demonet.methods.base import Items, Method
from demonet.methods.selection import Selected, logistic

Float = NDArray[np.float64]


class Embedding(Method):
    """A method that uses neither labels nor attributes: one embedding serves every split of a graph.

    Self-loops, directions and parallel edges are ignored.

    Args:
        changes: Settings that differ from ``defaults``, by name.
    """

    kinds = ("nodes",)

    def __init__(self, **changes: Any) -> None:
        super().__init__(**changes)
        self._given: Float | None = None

    def given(self, z: Float) -> Self:
        """Make :meth:`fit` use ``z``, an earlier result of :meth:`embed`, instead of computing it again."""
        self._given = z
        return self

    @abstractmethod
    def embed(self, data: Data, seed: int = 0) -> Float:
        """``[nodes, width]``, the same for the same graph and seed."""

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> Tensor:
        z = self.embed(cast(Data, data), seed) if self._given is None else self._given
        self._embeddings = torch.from_numpy(z)
        selected, x = classifier(z, y, split, self.chosen)
        self.chosen = selected.model
        return selected.predict(x)

    def embeddings(self) -> Tensor:
        """``[nodes, width]`` the embedding that was classified."""
        return self._embeddings


def classify(z: Float, y: Tensor, split: Split) -> Tensor:
    """The class of every node by one-vs-rest logistic regression with L2; C is selected on validation.

    Columns are standardised over all nodes, which needs no labels.
    """
    selected, x = classifier(z, y, split)
    return selected.predict(x)


def classifier(z: Float, y: Tensor, split: Split, kept: Any = None) -> tuple[Selected, Float]:
    """The regression of :func:`classify` and the rows that it reads; ``kept`` as in ``selection.select``."""
    x = StandardScaler().fit_transform(z)
    return logistic(x, y, split, one_vs_rest=True, kept=kept), x
