"""What the structural embeddings have in common: a vector a node from the graph alone, then logistic regression."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch_geometric.data import Data

from demonet.baselines.base import Baseline, Items
from demonet.baselines.linear import logistic
from demonet.baselines.settings import Settings, changed
from demonet.data.splits import Split

Float = NDArray[np.float64]


class Embedding(Baseline):
    """A method that sees neither labels nor attributes: one embedding serves every split of a graph.

    Loops, directions and parallel arcs are not looked at either.

    Args:
        changes: Any of the method's settings, where its paper's are not wanted.
    """

    kinds = ("nodes",)
    settings: Settings
    defaults: ClassVar[Settings]

    def __init__(self, **changes: Any) -> None:
        self.settings = changed(self.defaults, self.name, changes)
        self._given: Float | None = None

    def given(self, z: Float) -> Self:
        """Fit what comes after ``z``, which :meth:`embed` has made before, instead of making it again."""
        self._given = z
        return self

    @abstractmethod
    def embed(self, data: Data, seed: int = 0) -> Float:
        """``[nodes, width]``, the same for the same graph and seed."""

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> None:
        z = self.embed(cast(Data, data), seed) if self._given is None else self._given
        self._embeddings = torch.from_numpy(z)
        self._prediction = classify(z, y, split)

    def predict(self) -> Tensor:
        """The class of the highest of the one-vs-rest regressions."""
        return self._prediction

    def embeddings(self) -> Tensor:
        """The vector of every node."""
        return self._embeddings


def classify(z: Float, y: Tensor, split: Split) -> Tensor:
    """One-vs-rest logistic regression with L2 on embeddings, C chosen on validation: the class of every node.

    Columns are brought to mean zero and variance one over all nodes, which asks for no label.
    """
    x = StandardScaler().fit_transform(z)
    return logistic(x, y, split, one_vs_rest=True).predict(x)
