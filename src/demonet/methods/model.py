"""Methods that keep what they learned: they predict for any graph, are stored without pickle, and join the ensemble."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from demonet.data.splits import Split
from demonet.errors import DemonetError
from demonet.features.views import LARGE, Float, Int, State, View, view_of
from demonet.methods.base import REGISTRY, Items, Method, Predicted, Settings
from demonet.methods.selection import item_losses
from demonet.options import Effort
from demonet.schema import check_alike
from demonet.train.metrics import Task
from demonet.train.objective import OBJECTIVES, Objective, Regress
from demonet.train.problem import fitted_objective

MOST_SECONDS: dict[Effort, float] = {"quick": 10.0, "standard": 60.0, "best": float("inf")}
"""What one fit of a candidate may take, by its own estimate."""
TASKS: tuple[Task, ...] = ("classify", "multilabel", "regress")
ORDERED = 0.2  # share of the variance of log-degree between classes from which on they are taken as ordered


class OutOfTimeError(DemonetError):
    """A fit that cannot be used has reached its deadline."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """The labelled part of a problem.

    Attributes:
        y: ``[items]`` classes; or ``[items, outputs]`` of 0 and 1, or of standardised numbers, NaN for unknown. Only
            those of ``train`` and ``val`` are read.
        outputs: Number of classes, labels or numbers.
        train: Items to fit on.
        val: Items to choose by; there may be none.
        seed: Of everything random.
        device: Where kernels, random walks and networks are computed.
        task: What the targets are.
        metric: What choices are made by, where a model can; None for the loss.
        deadline: By :func:`time.monotonic`: a model that improves step by step stops there.
        weight: ``[items]`` how much an item counts, in the fit as if it were there so often, and in every mean over
            items that something is chosen by; above 0. None if all are 1.
    """

    y: NDArray[Any]
    outputs: int
    train: Int
    val: Int
    seed: int = 0
    device: str = "cpu"
    task: Task = "classify"
    metric: str | None = None
    deadline: float = math.inf
    weight: Float | None = None

    @classmethod
    def of(
        cls,
        y: Tensor,
        objective: Objective,
        split: Split,
        seed: int = 0,
        device: str = "cpu",
        weight: Float | None = None,
    ) -> Labelled:
        """The training and validation items of a split; the targets of all others are hidden.

        Args:
            y: The checked targets of all items, in the units of the user.
            objective: Fitted: numbers are standardised by its ``mean`` and ``scale``.
            split: The parts.
            seed, device, weight: As above.
        """
        whole, (train, val) = y.cpu(), (part.cpu().numpy() for part in (split.train, split.val))
        known = whole.new_full(whole.shape, torch.nan if whole.is_floating_point() else -1)
        for part in (train, val):
            known[part] = whole[part]
        targets = known.numpy()
        if isinstance(objective, Regress):
            targets = (targets - np.array(objective.mean)) / np.array(objective.scale)
        elif objective.task == "multilabel":
            targets = targets.astype(np.float64)
        return cls(targets, objective.outputs, train, val, seed, device, objective.task, weight=weight)

    def joined(self) -> Labelled:
        """Training and validation items together to fit on, none to choose by."""
        return replace(self, train=np.sort(np.concatenate([self.train, self.val])), val=self.val[:0])

    def weights(self, items: Int) -> Float | None:
        """Those of some items."""
        return None if self.weight is None else self.weight[items]

    def total(self, items: Int) -> float:
        """The number of items, or the sum of their weights."""
        return len(items) if self.weight is None else float(self.weight[items].sum())

    def prior(self) -> Float:
        """``[outputs]`` shares of classes or labels in the training part, each value counted once more; or means."""
        y, weight = self.y[self.train], self.weights(self.train)
        if self.task == "classify":
            count = np.bincount(y, weight, minlength=self.outputs) + 1.0
            return count / count.sum()
        each = 1.0 if weight is None else weight[:, None]
        more = 1.0 if self.task == "multilabel" else 0.0
        total = (each * ~np.isnan(y)).sum(0) + 2 * more
        return (np.nansum(each * y, 0) + more) / np.where(total > 0, total, 1)

    def table(self, items: Int) -> Float:
        """``[items, outputs]`` one-hot classes; or the table of targets, with :meth:`prior` for unknown entries."""
        if self.task == "classify":
            return np.eye(self.outputs)[self.y[items]]
        return np.where(np.isnan(self.y[items]), self.prior(), self.y[items])

    def judges(self, train: Int | None = None) -> Int:
        """The validation items; of classes, those whose class ``train`` (by default the training items) has, too."""
        if self.task != "classify":
            return self.val
        return self.val[np.isin(self.y[self.val], self.y[self.train if train is None else train])]

    def loss(self, outputs: Float, items: Int) -> float:
        """The mean loss of ``[items, outputs]`` probabilities or values, see :func:`item_losses`."""
        return float(item_losses(self.task, outputs, self.y[items], self.weights(items)).mean())

    def seed_of(self, name: str) -> int:
        """A seed of a method's own, from the seed of the problem and its name."""
        return int(np.random.SeedSequence([self.seed, *name.encode()]).generate_state(1)[0])

    def some(self, name: str, items: int, most: int) -> Int:
        """The training items; of a large problem at most so many, drawn at random."""
        if items < LARGE or len(self.train) <= most:
            return self.train
        return np.sort(np.random.default_rng(self.seed_of(name)).choice(self.train, most, replace=False))


@dataclass(frozen=True)
class CoarseSettings(Settings):
    """With ``coarse``, a method compares fewer of its settings, on fewer items."""

    coarse: bool = False


class Model(Method):
    """A method that is fitted on the labelled items of a view and gives outputs for all items of any view.

    ``settings`` make it. ``facts`` (JSON), ``arrays`` and ``chosen`` (JSON) are all that it has learned.
    A subclass implements :meth:`_learn`, :meth:`outputs` and :meth:`estimate`; :meth:`candidates`, where an ensemble
    has several of it or none.

    Args:
        name: Unique in an ensemble; by default the name in the registry.
        **changes: Settings that differ from ``defaults``; plain values.

    Attributes:
        kind: Its kind, in the table of candidates.
        stops_early: Whether a fit ends at the deadline, with what it has reached by then.
        knows_nodes: Whether it knows the nodes of the fitted graph by their ids, and says nothing about another graph.
        after: The name of a similar, cheaper model, if this one is only worth a try where that one was worth something.
        device: Where it was fitted, and predicts; a loaded model is on the CPU.
        judged: After a fit that made choices for each column of a table: ``[val, outputs]`` of the validation items,
            each by what is best without it, see :class:`~demonet.methods.selection.Choice`. Otherwise None.
    """

    in_tables = False
    after: str = ""
    device: str = "cpu"
    judged: Float | None = None
    kind: ClassVar[str]
    knows_nodes: ClassVar[bool] = False
    stops_early: ClassVar[bool] = False

    def __init__(self, name: str = "", **changes: Any) -> None:
        super().__init__(**changes)
        self.name = name or type(self).name
        self.facts: dict[str, Any] = {}
        self.arrays: dict[str, NDArray[Any]] = {}

    @classmethod
    def candidates(cls, view: View, labelled: Labelled, effort: Effort) -> list[Self]:
        """The models of this class that an ensemble chooses from; only asked for items of its ``kinds``.

        By default one, which compares fewer settings with the effort ``"quick"`` if it can.
        """
        coarse: dict[str, Any] = {"coarse": effort == "quick"} if isinstance(cls.defaults, CoarseSettings) else {}
        return [cls(**coarse)]

    @abstractmethod
    def _learn(self, view: View, labelled: Labelled) -> None:
        """Fill ``facts`` and ``arrays``.

        Where ``chosen`` is None, choose by the validation items and store the choice there; otherwise keep to it.
        """

    @abstractmethod
    def outputs(self, view: View) -> Float:
        """``[items, outputs]``: probabilities of classes, rows that sum to one; of labels; or standardised numbers."""

    def some_outputs(self, view: View, rows: Int) -> Float:
        """``[rows, outputs]`` of some of the items, up to rounding; without the others where that is cheaper."""
        return self.outputs(view)[rows]

    @abstractmethod
    def estimate(self, view: View, num_train: int) -> float:
        """Roughly how many seconds a fit takes on one core."""

    def memory(self, view: View, num_train: int) -> float:
        """Roughly how many bytes a fit and the prediction of all items take, besides what candidates share."""
        return 40.0 * view.num_items * self.facts.get("outputs", 4)

    def for_problem(self, labelled: Labelled) -> Self:
        """This model; what it has not been fitted on tells :meth:`estimate` and :meth:`memory` about its outputs."""
        self.facts = {"outputs": labelled.outputs, "task": labelled.task} | self.facts
        return self

    def known_targets(self, view: View) -> NDArray[Any] | None:
        """The targets that a prediction starts from, in the order of the view; None if it reads none.

        They are those of the fitted items, by their ids, unless the data of the view has ``known_targets``.
        """
        return None

    def embed(self, view: View) -> Float | None:
        """``[items, width]`` how the fitted model describes items; None if it does not."""
        return None

    def applies_to(self, view: View) -> bool:
        """Whether the fitted model can say something about a view."""
        return not self.knows_nodes or view.known is not None

    def fit_on(self, view: View, labelled: Labelled) -> Self:
        """A copy that is fitted on ``labelled.train``, and whose choices are made on ``labelled.val``."""
        return self._copy(None, view, labelled)

    def refit_on(self, view: View, labelled: Labelled) -> Self:
        """A copy that is fitted on training and validation items, with what this one has ``chosen``."""
        return self.keep_on(view, labelled.joined())

    def keep_on(self, view: View, labelled: Labelled) -> Self:
        """A copy that is fitted on ``labelled.train`` with what this one has ``chosen``."""
        return self._copy(self.chosen, view, labelled)

    def _copy(self, chosen: Any, view: View, labelled: Labelled) -> Self:
        again = copy.copy(self)
        again.chosen = copy.deepcopy(chosen)
        again.device, again.judged = labelled.device, None
        again.facts, again.arrays = {"outputs": labelled.outputs, "task": labelled.task}, {}
        again._learn(view, labelled)
        return again

    def check_chosen(self, chosen: Any) -> None:
        """Refuse a choice from a file that a refit of this fitted model could not keep to."""
        check_alike(chosen, self.chosen)

    def in_folds(self) -> Self:
        """The model that stands for this one in each fold of cross-validation; a cheaper one where that is as good."""
        return self

    def pool_choices(self, chosen: list[Any]) -> Any:
        """One choice from those of several folds: the lower median of every number in it."""
        return _median(chosen)

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> Predicted:
        objective = fitted_objective(OBJECTIVES[self.task](), y, split)
        labelled = Labelled.of(y, objective, split, seed, getattr(self.settings, "device", "cpu"))
        self.device = labelled.device
        view, self.facts, self.arrays = view_of(data), {"outputs": labelled.outputs, "task": labelled.task}, {}
        self._learn(view, labelled)
        outputs = objective.decode(torch.from_numpy(self.outputs(view)))
        return (outputs.argmax(1) if self.task == "classify" else outputs), outputs

    @property
    def options(self) -> dict[str, Any]:
        """The settings as plain values."""
        names = [each.name for each in fields(self.settings) if each.name != "source"]
        return {name: getattr(self.settings, name) for name in names}

    def state(self) -> State:
        """All that is needed to make this model again: JSON facts, and arrays."""
        known = {"method": type(self).name, "name": self.name, "options": self.options}
        return known | {"chosen": self.chosen, "facts": self.facts}, self.arrays

    @staticmethod
    def from_state(state: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Model:
        """The model that gave this state."""
        method = REGISTRY.get(state["method"])
        if method is None or not issubclass(method, Model):
            known = [name for name, each in REGISTRY.items() if issubclass(each, Model)]
            raise DemonetError(f"a model of the method {state['method']!r}", hint=f"known are {', '.join(known)}")
        made = method(state["name"], **state["options"])
        made.chosen, made.facts, made.arrays = state["chosen"], dict(state["facts"]), dict(arrays)
        return made


def _median(values: list[Any]) -> Any:
    if isinstance(values[0], dict):
        return {key: _median([value[key] for value in values]) for key in values[0]}
    if isinstance(values[0], list):
        return [_median(list(entry)) for entry in zip(*values, strict=True)]
    return sorted(values)[(len(values) - 1) // 2]


def ranks_by_degree(view: View, labelled: Labelled) -> tuple[Int, float]:
    """The rank of each class by its mean log-degree in training, and the share of variance that classes explain."""
    value, y, weight = view.raw_log_degree[labelled.train], labelled.y[labelled.train], labelled.weights(labelled.train)
    count = np.bincount(y, weight, minlength=labelled.outputs)
    total = np.bincount(y, value if weight is None else weight * value, minlength=labelled.outputs)
    mean = np.where(count > 0, total / np.where(count > 0, count, 1), value.mean())
    explained = float(mean[y].var() / max(value.var(), 1e-12))
    return np.argsort(np.argsort(mean, kind="stable")), explained


def ordered(view: View, labelled: Labelled) -> bool:
    """Whether the classes of nodes are taken as ordered by degree."""
    return labelled.task == "classify" and labelled.outputs > 2 and ranks_by_degree(view, labelled)[1] >= ORDERED
