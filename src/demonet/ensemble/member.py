"""The interface of a member: one model among those that an ensemble chooses from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from demonet.errors import DemonetError
from demonet.features.views import LARGE, Float, Int, State, View


@dataclass(frozen=True, eq=False)
class Labelled:
    """The labelled part of a problem.

    Attributes:
        y: ``[items]`` classes; only those of ``train`` and ``val`` are looked at.
        classes: Number of classes.
        train: Items to fit on.
        val: Items to choose by; a member may also do without.
        seed: Of everything random.
        device: Where kernel machines and networks are fitted.
    """

    y: Int
    classes: int
    train: Int
    val: Int
    seed: int = 0
    device: str = "cpu"

    def joined(self) -> Labelled:
        """Training and validation items together to fit on, none to choose by."""
        return replace(self, train=np.sort(np.concatenate([self.train, self.val])), val=self.val[:0])

    def prior(self) -> Float:
        """``[classes]`` shares in the training part, each class counted once more."""
        count = np.bincount(self.y[self.train], minlength=self.classes) + 1.0
        return count / count.sum()

    def one_hot(self) -> Float:
        """``[train, classes]``."""
        return np.eye(self.classes)[self.y[self.train]]


class Member(ABC):
    """A model that is fitted on labelled items of a view and gives probabilities for all items of any view.

    ``options`` make it, ``facts`` (JSON) and ``arrays`` are all that it has learned; ``facts["chosen"]`` is what the
    validation part decided, which :meth:`refit` reuses.

    Args:
        name: Unique in an ensemble.
        **options: Plain values.
    """

    kind: ClassVar[str]

    def __init__(self, name: str, **options: Any) -> None:
        self.name, self.options = name, options
        self.facts: dict[str, Any] = {}
        self.arrays: dict[str, NDArray[Any]] = {}

    def fit(self, view: View, labelled: Labelled) -> Self:
        """Fit on ``labelled.train``, choose by ``labelled.val``."""
        self.facts, self.arrays = {"classes": labelled.classes}, {}
        self._fit(view, labelled, None)
        return self

    def refit(self, view: View, labelled: Labelled) -> Self:
        """A copy that is fitted on training and validation items, with what this one chose."""
        fresh = self.fresh()
        fresh.facts = {"classes": labelled.classes}
        fresh._fit(view, labelled.joined(), self.facts.get("chosen", {}))
        return fresh

    def pool_choices(self, chosen: list[dict[str, Any]]) -> dict[str, Any]:
        """One choice from those of several folds: the lower median of every number in it."""
        return _median(chosen)

    def fresh(self) -> Self:
        """An unfitted copy."""
        return type(self)(self.name, **self.options)

    @abstractmethod
    def _fit(self, view: View, labelled: Labelled, chosen: dict[str, Any] | None) -> None:
        """Fill ``facts`` and ``arrays``; choose by validation where ``chosen`` is None."""

    @abstractmethod
    def predict_proba(self, view: View) -> Float:
        """``[items, classes]``, rows that sum to one."""

    @abstractmethod
    def cost(self, view: View, num_train: int) -> float:
        """Roughly how many seconds a fit takes on one core."""

    def memory(self, view: View, num_train: int) -> float:
        """Roughly how many bytes a fit and the prediction of all items take, besides what members share."""
        return 40.0 * view.num_items * self.facts.get("classes", 4)

    def applies(self, view: View) -> bool:
        """Whether the member can say something about a view; one that knows the nodes of one graph cannot always."""
        return True

    def state(self) -> State:
        """All that is needed to make this member again: JSON facts, and arrays."""
        described = {"type": type(self).__name__, "name": self.name, "options": self.options, "facts": self.facts}
        return described, self.arrays

    @staticmethod
    def from_state(facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Member:
        """The member that gave this state."""
        known = member_types()
        if facts["type"] not in known:
            raise DemonetError(f"a member of type {facts['type']!r}", hint=f"known are {', '.join(sorted(known))}")
        made = known[facts["type"]](facts["name"], **facts["options"])
        made.facts, made.arrays = dict(facts["facts"]), dict(arrays)
        return made


def member_types() -> dict[str, type[Member]]:
    """Every subclass of :class:`Member`, by name."""
    found: dict[str, type[Member]] = {}
    todo = Member.__subclasses__()
    while todo:
        kind = todo.pop()
        todo += kind.__subclasses__()
        found[kind.__name__] = kind
    return found


def _median(values: list[Any]) -> Any:
    if isinstance(values[0], dict):
        return {key: _median([value[key] for value in values]) for key in values[0]}
    if isinstance(values[0], list):
        return [_median(list(entry)) for entry in zip(*values, strict=True)]
    return sorted(values)[(len(values) - 1) // 2]


def some_of(labelled: Labelled, name: str, items: int, most: int) -> Int:
    """The training items; of a large problem at most so many, drawn at random."""
    if items < LARGE or len(labelled.train) <= most:
        return labelled.train
    drawn = np.random.default_rng(seed_of(labelled, name)).choice(labelled.train, most, replace=False)
    return np.sort(drawn)


def seed_of(labelled: Labelled, name: str) -> int:
    """A seed of a member's own, from the problem's seed and its name."""
    return int(np.random.SeedSequence([labelled.seed, *name.encode()]).generate_state(1)[0])
