"""The interface of a method, its settings, and the registry of methods."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Self, TypeAlias, TypeVar

import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from demonet.data.splits import Split, check_split
from demonet.errors import DemonetError
from demonet.methods.cost import Cost
from demonet.train.loop import History
from demonet.train.metrics import METRICS, Metric, Task
from demonet.train.objective import OBJECTIVES, value_of
from demonet.train.presets import Family
from demonet.train.problem import labels

__all__ = ["Conditions", "Items", "Kind", "Method", "Predicted", "Settings", "at_least", "labels", "register"]

Kind: TypeAlias = Literal["nodes", "graphs"]
Items: TypeAlias = Data | Sequence[Data]
Predicted: TypeAlias = tuple[Tensor, Tensor | None]
"""``[items]`` classes, and ``[items, classes]`` probabilities or None; twice ``[items, columns]`` of other tasks."""


def at_least(minimum: int, default: Any = MISSING) -> Any:
    """A field of :class:`Settings` for integers of at least ``minimum``: one, or a tuple of candidates.

    With the default None, the value may be None.
    """
    return field(default=default, metadata={"minimum": minimum})


@dataclass(frozen=True)
class Settings:
    """The hyper-parameters of a method. Subclasses add fields; ``__post_init__`` may check more than a minimum.

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


@dataclass(frozen=True)
class Conditions:
    """What a comparison asks of every method; each reads what concerns it.

    Attributes:
        family: The kind of problem.
        epochs: The limit of epochs of every network.
        effort: The effort of the ensemble.
        standardise: Whether networks read standardised attributes, not the attributes as they are.
        seed: Of what is computed once for all splits.
    """

    family: Family
    epochs: int
    effort: str = "quick"
    standardise: bool = False
    seed: int = 0


class Method(ABC):
    """A method on a split: trained on the training part, tuned on the validation part, applied to all items.

    A subclass sets ``name`` and ``defaults``, and implements :meth:`_fit`.

    Args:
        changes: Settings that differ from ``defaults``, by name.

    Attributes:
        name: The name in the registry, the results and the tables.
        in_tables: Whether comparisons list it.
        kinds: Whether it is for the nodes of a graph, for graphs, or both.
        tasks: What it predicts: classes, several labels, numbers.
        group: Its group in a leaderboard.
        cost: The estimated processor seconds of a fit, ``cost(size)``.
        at_any_size: Whether a comparison includes it whatever it costs.
        beside_fit: Whether ``demonet fit`` measures it beside its model.
        needs_attributes: Whether nodes must have attributes.
        on_device: Whether it computes on the device that holds the data; others need data on the CPU.
        defaults: The settings that its paper suggests; ``defaults.source`` is the citation.
        settings: The settings of this object.
        metric: What settings are chosen by, in methods that read it; None for their own rule.
        chosen: What the validation part decided in :meth:`fit`, which :meth:`refit` keeps: a classifier with its
            settings, a number of epochs. None where nothing is to be decided.
        history: The learning curves of a network; None for other methods.
    """

    name: str
    in_tables: ClassVar[bool] = True
    kinds: ClassVar[tuple[Kind, ...]] = ("nodes", "graphs")
    tasks: ClassVar[tuple[Task, ...]] = ("classify",)
    group: ClassVar[str] = "simple baseline"
    cost: ClassVar[Cost] = Cost()
    at_any_size: ClassVar[bool] = False
    beside_fit: ClassVar[bool] = False
    needs_attributes: ClassVar[bool] = False
    on_device: ClassVar[bool] = False
    defaults: ClassVar[Settings]
    settings: Settings
    task: Task = "classify"
    metric: Metric | None = None
    chosen: Any = None
    history: History | None = None

    def __init__(self, **changes: Any) -> None:
        known = [field.name for field in fields(self.defaults) if field.name != "source"]
        for name in changes:
            if name not in known:
                hint = f"available settings: {', '.join(known)}" if known else f"{self.name} has no settings"
                raise DemonetError(f"{self.name} has no setting {name!r}", hint=hint)
        self.settings = replace(self.defaults, **changes)

    @classmethod
    def under(cls, conditions: Conditions) -> Self:
        """The method as a comparison fits it."""
        return cls()

    @classmethod
    def applies(cls, family: Family, *, attributes: bool = True, task: Task = "classify") -> bool:
        """Whether the method applies to a family of problems and a task, with or without attributes."""
        kind: Kind = "graphs" if family == "graphs" else "nodes"
        return (
            kind in cls.kinds and task in cls.tasks and (not cls.needs_attributes or (attributes and family != "nodes"))
        )

    def fit(
        self, data: Items, split: Split, seed: int = 0, *, task: Task = "classify", metric: Metric | None = None
    ) -> Self:
        """Train on ``split.train`` and tune on ``split.val``; ``split.test`` is never used.

        Args:
            data: A graph whose nodes have targets, or a sequence of graphs that have.
            split: Indices of the nodes or graphs of each part.
            seed: Seed of everything random.
            task: What the targets are, one of ``tasks``.
            metric: What settings are chosen by, for methods that read it; by default their own rule.
        """
        kind: Kind = "nodes" if isinstance(data, Data) else "graphs"
        if kind not in self.kinds:
            raise DemonetError(f"{self.name} classifies {' and '.join(self.kinds)}, not {kind}")
        if task not in self.tasks:
            raise DemonetError(f"{self.name} is for the task {' or '.join(self.tasks)}, not {task}")
        objective = OBJECTIVES[task]()
        y = labels(data, objective)
        check_split(split, y)
        self.task, self.metric, self.chosen = task, metric, None
        self._classes = int(y.max()) + 1 if task == "classify" else 0
        self._predicted = self._fit(data, y, split, seed)
        return self

    def _judge(self, y: Any, outputs: Any) -> float:
        """How good ``[items, columns]`` probabilities or values are by the metric; larger is better."""
        metric = self.metric or METRICS[OBJECTIVES[self.task].default_metric]
        value = value_of(metric, self.task, y, outputs)
        return -math.inf if value is None else value if metric.larger_is_better else -value

    def decision(self, metric: Metric, y: Tensor, split: Split) -> tuple[float, ...]:
        """What is best for the metric on validation items, see :meth:`Metric.choose_decision`."""
        items = split.val.numpy()
        return metric.choose_decision(self.predict_proba().cpu().numpy()[items], y.cpu().numpy()[items])

    def refit(self, data: Items, split: Split, seed: int = 0) -> Self:
        """A copy that is fitted on the training and validation part together, with what this one has ``chosen``.

        The arguments are those of :meth:`fit`, which must have been called.
        """
        again = copy.copy(self)
        again._predicted = again._fit(data, labels(data, OBJECTIVES[self.task]()), split.joined(), seed)
        return again

    @abstractmethod
    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> Predicted:
        """Train, and return the predicted class of every item with its probabilities, or None if it has none.

        Where ``chosen`` is None, choose by the validation part and store the choice there; otherwise keep to it.

        Args:
            data: As given to :meth:`fit`.
            y: ``[items]`` the class of each item, -1 where it is unknown; of other tasks ``[items, columns]``, NaN
                where unknown.
            split: Indices of the items of each part.
            seed: Seed of everything random.
        """

    def predict(self) -> Tensor:
        """``[items]`` the predicted class of every item that :meth:`fit` was given."""
        return self._predicted[0]

    def predict_proba(self) -> Tensor:
        """``[items, classes]`` probabilities of every item that :meth:`fit` was given.

        A method without probabilities, such as a support vector machine, gives 1 to the class that it predicts.
        """
        classes, probability = self._predicted
        return F.one_hot(classes, self._classes).double() if probability is None else probability

    def embeddings(self) -> Tensor:
        """``[items, width]`` the representation of every item, for methods that compute one."""
        raise DemonetError(f"{self.name} has no embeddings")

    def first_embeddings(self, data: Data, seed: int = 0) -> Tensor:
        """``[nodes, width]`` the representation of every node before any label is seen, for methods that have one."""
        raise DemonetError(f"{self.name} has no embeddings")

    def score(self, items: Tensor, y: Tensor) -> float:
        """Accuracy on the items with these indices."""
        return float((self.predict()[items] == y[items]).double().mean())


REGISTRY: dict[str, type[Method]] = {}
M = TypeVar("M", bound=Method)


def register(method: type[M]) -> type[M]:
    """Class decorator that makes a method available by its name."""
    known = REGISTRY.setdefault(method.name, method)
    if known is not method:
        raise DemonetError(
            f"method name {method.name!r} is taken by {known.__module__}.{known.__qualname__}",
            hint="choose another name",
        )
    return method
