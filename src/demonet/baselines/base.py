"""The one interface that every baseline has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal, Self, TypeAlias

from torch import Tensor
from torch_geometric.data import Data

from demonet.checks import check_split
from demonet.data.splits import Split
from demonet.errors import DemonetError
from demonet.train.problem import labels

__all__ = ["Baseline", "Items", "Kind", "labels"]

Kind: TypeAlias = Literal["nodes", "graphs"]
Items: TypeAlias = Data | Sequence[Data]


class Baseline(ABC):
    """A method to compare with: fitted on the training part, tuned on the validation part, asked for everyone.

    ``fit`` takes a graph whose nodes are classified, or a sequence of graphs that are; ``kinds`` says which of the two
    a method is made for.
    """

    name: ClassVar[str]
    kinds: ClassVar[tuple[Kind, ...]] = ("nodes", "graphs")

    def fit(self, data: Items, split: Split, seed: int = 0) -> Self:
        """Learn from ``split.train``, choose by ``split.val``; ``split.test`` is not looked at."""
        kind: Kind = "nodes" if isinstance(data, Data) else "graphs"
        if kind not in self.kinds:
            raise DemonetError(f"{self.name} classifies {' and '.join(self.kinds)}, not {kind}")
        y = labels(data)
        check_split(split, y)
        self._fit(data, y, split, seed)
        return self

    @abstractmethod
    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> None: ...

    @abstractmethod
    def predict(self) -> Tensor:
        """The predicted class of every item that ``fit`` was given."""

    def embeddings(self) -> Tensor:
        """``[items, width]`` what the method knows of every item before it decides, where it has such a thing."""
        raise DemonetError(f"{self.name} has no embeddings")

    def score(self, rows: Tensor, y: Tensor) -> float:
        """Accuracy on some of the items."""
        return float((self.predict()[rows] == y[rows]).double().mean())
