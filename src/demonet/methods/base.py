"""The interface of a baseline, its settings, and the registry of baselines."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Self, TypeAlias, TypeVar

from torch import Tensor
from torch_geometric.data import Data

from demonet.checks import check_split
from demonet.data.splits import Split
from demonet.errors import DemonetError
from demonet.train.problem import labels

__all__ = ["Items", "Kind", "Method", "Settings", "at_least", "labels", "register"]

Kind: TypeAlias = Literal["nodes", "graphs"]
Items: TypeAlias = Data | Sequence[Data]


def at_least(minimum: int, default: Any = MISSING) -> Any:
    """A field of :class:`Settings` for integers of at least ``minimum``: one, or a tuple of candidates.

    With the default None, the value may be None.
    """
    return field(default=default, metadata={"minimum": minimum})


@dataclass(frozen=True)
class Settings:
    """The hyper-parameters of a baseline. Subclasses add fields; ``__post_init__`` may check more than a minimum.

    Attributes:
        source: The publication or program that the values come from.
    """

    source: str

    def __post_init__(self) -> None:
        for each in fields(self):
            name, value, minimum = each.name.replace("_", " "), getattr(self, each.name), each.metadata.get("minimum")
            if value == ():
                raise DemonetError(f"{name} is empty", hint="give at least one value to select from")
            if minimum is None or (value is None and each.default is None):
                continue
            for number in value if isinstance(value, tuple) else (value,):
                if not isinstance(number, int) or number < minimum:
                    raise DemonetError(f"{name} must be an integer of at least {minimum}, got {number!r}")


class Method(ABC):
    """A method to compare with: trained on the training part, tuned on the validation part, applied to all items.

    A subclass sets ``name`` and ``defaults``, and implements :meth:`_fit`.

    Args:
        changes: Settings that differ from ``defaults``, by name.

    Attributes:
        name: The name in the registry, the results and the tables.
        kinds: Whether it classifies the nodes of a graph, graphs, or both.
        defaults: The settings that its paper suggests; ``defaults.source`` is the citation.
        settings: The settings of this object.
        chosen: What the validation part decided in :meth:`fit`, which :meth:`refit` keeps: a classifier with its
            settings, a number of epochs. None where nothing is to be decided.
    """

    name: ClassVar[str]
    kinds: ClassVar[tuple[Kind, ...]] = ("nodes", "graphs")
    defaults: ClassVar[Settings]
    settings: Settings
    chosen: Any = None

    def __init__(self, **changes: Any) -> None:
        known = [field.name for field in fields(self.defaults) if field.name != "source"]
        for name in changes:
            if name not in known:
                hint = f"available settings: {', '.join(known)}" if known else f"{self.name} has no settings"
                raise DemonetError(f"{self.name} has no setting {name!r}", hint=hint)
        self.settings = replace(self.defaults, **changes)

    def fit(self, data: Items, split: Split, seed: int = 0) -> Self:
        """Train on ``split.train`` and tune on ``split.val``; ``split.test`` is never used.

        Args:
            data: A graph whose nodes are classified, or a sequence of graphs that are classified.
            split: Indices of the nodes or graphs of each part.
            seed: Seed of everything random.
        """
        kind: Kind = "nodes" if isinstance(data, Data) else "graphs"
        if kind not in self.kinds:
            raise DemonetError(f"{self.name} classifies {' and '.join(self.kinds)}, not {kind}")
        y = labels(data)
        check_split(split, y)
        self.chosen = None
        self._prediction = self._fit(data, y, split, seed)
        return self

    def refit(self, data: Items, split: Split, seed: int = 0) -> Self:
        """A copy that is fitted on the training and validation part together, with what this one has ``chosen``.

        The arguments are those of :meth:`fit`, which must have been called.
        """
        again = copy.copy(self)
        again._prediction = again._fit(data, labels(data), split.joined(), seed)
        return again

    @abstractmethod
    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> Tensor:
        """Train, and return the predicted class of every item.

        Where ``chosen`` is None, choose by the validation part and store the choice there; otherwise keep to it.

        Args:
            data: As given to :meth:`fit`.
            y: ``[items]`` the class of each item, -1 where it is unknown.
            split: Indices of the items of each part.
            seed: Seed of everything random.
        """

    def predict(self) -> Tensor:
        """``[items]`` the predicted class of every item that :meth:`fit` was given."""
        return self._prediction

    def embeddings(self) -> Tensor:
        """``[items, width]`` the representation of every item, for baselines that compute one."""
        raise DemonetError(f"{self.name} has no embeddings")

    def score(self, items: Tensor, y: Tensor) -> float:
        """Accuracy on the items with these indices."""
        return float((self.predict()[items] == y[items]).double().mean())


REGISTRY: dict[str, type[Method]] = {}
B = TypeVar("B", bound=Method)


def register(baseline: type[B]) -> type[B]:
    """Class decorator that makes a baseline available by its name."""
    known = REGISTRY.setdefault(baseline.name, baseline)
    if known is not baseline:
        raise DemonetError(
            f"baseline name {baseline.name!r} is taken by {known.__module__}.{known.__qualname__}",
            hint="choose another name",
        )
    return baseline
