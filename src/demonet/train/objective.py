r"""Objectives: the loss of a task, how scores become predictions, and the metric that chooses the epoch.

==============  =====================================  =========================  ======================
task            targets ``y``                          loss                       metric by default
==============  =====================================  =========================  ======================
``classify``    ``[n]`` int64 classes, -1 unlabelled   cross-entropy              ``accuracy`` [1]_
``multilabel``  ``[n, labels]`` of 0 and 1             binary cross-entropy       ``average-precision``
``regress``     ``[n]`` or ``[n, columns]`` numbers    squared or absolute error  ``rmse``
==============  =====================================  =========================  ======================

.. [1] Estimators and runs have another one for very unequal classes: :func:`demonet.train.metrics.metric_of_classes`.

In a multi-label table NaN or -1 is an unknown entry, and in a regression NaN; a row without a known entry is
unlabelled. The loss is the mean over the known entries,

.. math:: \sum_{ij} k_{ij} w_i \, \ell(s_{ij}, y_{ij}) \Big/ \sum_{ij} k_{ij} w_i

with :math:`k_{ij}` 1 for known and 0 for unknown entries, and :math:`w_i` the weight of item :math:`i`.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from demonet.checks import check_labels
from demonet.errors import DemonetError
from demonet.ops.reference import by_class
from demonet.train.metrics import Array, Metric, Task, find_metric, positive_class

LEAST, MOST = 1e-37, 1e38  # of the largest target without its sign: outputs are float32


@dataclass(frozen=True)
class Objective(ABC):
    """What a network is trained for.

    Attributes:
        metric: The validation metric that chooses the epoch; the task's default if empty.
        outputs: Number of scores an item; 0 before :meth:`fit`.
        decision: What predictions are made by, see :class:`~demonet.train.metrics.Metric`.
    """

    task: ClassVar[Task]
    default_metric: ClassVar[str]

    metric: str = ""
    outputs: int = 0
    decision: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.metric:
            object.__setattr__(self, "metric", self.default_metric)
        find_metric(self.metric, self.task)

    @property
    def larger_is_better(self) -> bool:
        """Whether larger values of the metric are better."""
        return self._metric.larger_is_better

    @property
    def measures_on_device(self) -> bool:
        """Whether :meth:`measure` leaves its result on the device, so that a CUDA graph can hold it."""
        return False

    @abstractmethod
    def check(self, y: Tensor, num_items: int) -> Tensor:
        """The targets in their usual form; refuse those that are not valid for this task."""

    @abstractmethod
    def fit(self, y: Tensor) -> Self:
        """The objective with all that is learned from the checked targets of the training part."""

    def encode(self, y: Tensor) -> Tensor:
        """What the loss compares scores with, from checked targets."""
        return y

    def decode(self, y: Tensor) -> Tensor:
        """The inverse of :meth:`encode`, as the metrics take it."""
        return y

    @abstractmethod
    def loss(self, scores: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
        """The mean loss of encoded targets, by the weights of the items where there are some."""

    @abstractmethod
    def activate(self, scores: Tensor) -> Tensor:
        """Probabilities, or values in the user's units, from scores."""

    @abstractmethod
    def decide(self, activated: Tensor) -> Tensor:
        """Predictions (class numbers, 0/1 labels or values) from what :meth:`activate` gives."""

    def size(self, y: Tensor, weight: Tensor | None = None) -> float:
        """How much a batch counts in the mean over an epoch: the number of items, or the sum of their weights."""
        return y.numel() if weight is None else weight.sum().item()

    def measure(self, scores: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
        """``[2]`` float64: loss and metric of encoded targets; weights count in the loss alone."""
        activated = self.activate(scores.double())
        predicted = activated if self._metric.uses == "probabilities" else self.decide(activated)
        value = self._metric.functions[self.task](self.decode(y).cpu().numpy(), predicted.cpu().numpy(), None)
        return torch.tensor([self.loss(scores, y, weight).item(), value], dtype=torch.float64)

    def state(self) -> dict[str, Any]:
        """Plain values for a file; :func:`objective_from_state` is the inverse."""
        return {"task": self.task, **asdict(self)}

    @property
    def _metric(self) -> Metric:
        return find_metric(self.metric, self.task)


@dataclass(frozen=True)
class Classify(Objective):
    """One of several classes: cross-entropy.

    Attributes:
        positive: The number of the positive class, for metrics of two classes that have one; if None, :meth:`fit`
            takes the rarer.
        unseen: The numbers of classes that the training part does not have, whose probability is 0.
    """

    task: ClassVar[Task] = "classify"
    default_metric: ClassVar[str] = "accuracy"

    positive: int | None = None
    unseen: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.positive not in (None, 0, 1):
            raise DemonetError(f"positive={self.positive!r} is not 0 or 1, the number of one of two classes")
        if not all(0 < factor <= 1 for factor in self.decision):
            raise DemonetError(f"factors {self.decision!r} are not above 0 and up to 1")

    @property
    def measures_on_device(self) -> bool:
        """Accuracy does not need scikit-learn."""
        return self.metric == "accuracy"

    def check(self, y: Tensor, num_items: int) -> Tensor:
        """``[n]`` int64 classes counted from 0, -1 for unlabelled."""
        check_labels(y, num_items)
        return y

    def fit(self, y: Tensor) -> Self:
        """Count the classes."""
        counts, positive = y.bincount().cpu(), self.positive
        if positive is None:
            positive = positive_class(self.metric, range(len(counts)), counts.numpy())
        return replace(self, outputs=len(counts), positive=positive)

    def loss(self, scores: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
        """Cross-entropy."""
        if weight is None:
            return cross_entropy(scores, y)
        return F.cross_entropy(scores, y, reduction="none") @ weight.to(scores.dtype) / weight.sum()

    def activate(self, scores: Tensor) -> Tensor:
        """Softmax over the classes that were seen."""
        if self.unseen:
            unseen = torch.tensor(self.unseen, device=scores.device)
            scores = scores.index_fill(1, unseen, -torch.inf)
        return scores.softmax(1)

    def decide(self, activated: Tensor) -> Tensor:
        """The class of the highest probability, or of the highest product with its factor."""
        return (activated * activated.new_tensor(self.decision) if self.decision else activated).argmax(1)

    def measure(self, scores: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
        """``[2]`` loss and metric."""
        if not self.measures_on_device:
            return super().measure(scores, y, weight)
        accuracy = (scores.argmax(1) == y).double().mean()
        return torch.stack([self.loss(scores, y, weight).double(), accuracy])

    @property
    def _metric(self) -> Metric:
        found = super()._metric
        return found if self.positive is None else found.of_class(self.positive, self.positive)


class _Table(Objective):
    """Targets with several columns, in which entries may be unknown (NaN)."""

    @abstractmethod
    def _entry_loss(self, scores: Tensor, y: Tensor) -> Tensor:
        """``[n, columns]`` the loss of every entry."""

    def loss(self, scores: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
        """The mean over the known entries."""
        share = _entry_weights(y, weight).to(scores.dtype)
        return (self._entry_loss(scores, y.nan_to_num().to(scores.dtype)) * share).sum() / share.sum()

    def size(self, y: Tensor, weight: Tensor | None = None) -> float:
        """The number of known entries, or the sum of their weights."""
        return _entry_weights(y, weight).sum().item()


@dataclass(frozen=True)
class Multilabel(_Table):
    """Any number of labels an item: binary cross-entropy.

    The default metric is the macro average precision: it ranks items by probability, so it can tell epochs apart even
    while no probability of a rare label has reached 0.5, where F1 is zero.
    """

    task: ClassVar[Task] = "multilabel"
    default_metric: ClassVar[str] = "average-precision"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(0 < threshold < 1 for threshold in self.decision):
            raise DemonetError(f"thresholds {self.decision!r} are not between 0 and 1")

    def check(self, y: Tensor, num_items: int) -> Tensor:
        """``[n, labels]`` of 0 and 1, NaN or -1 for unknown; float32 with NaN comes out."""
        if not isinstance(y, Tensor) or y.dim() != 2:
            raise DemonetError(f"labels are {_shape(y)}, not [items, labels] of 0 and 1")
        _check_count(y, num_items)
        table = y.float()
        table = table.masked_fill(table == -1, torch.nan)
        bad = ~((table == 0) | (table == 1) | table.isnan())
        if bool(bad.any()):
            row, column = (int(i) for i in bad.nonzero()[0])
            hint = "0, 1, or NaN or -1 for unknown"
            raise DemonetError(f"label {y[row, column].item()} of item {row}, column {column}", hint=hint)
        return table

    def fit(self, y: Tensor) -> Self:
        """Count the labels."""
        _check_columns(y, "label")
        return replace(self, outputs=y.size(1))

    def activate(self, scores: Tensor) -> Tensor:
        """Sigmoid."""
        return scores.sigmoid()

    def decide(self, activated: Tensor) -> Tensor:
        """0 or 1: each label from its threshold on."""
        return (activated >= (activated.new_tensor(self.decision) if self.decision else 0.5)).long()

    def _entry_loss(self, scores: Tensor, y: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(scores, y, reduction="none")


@dataclass(frozen=True)
class Regress(_Table):
    """One or several numbers an item: squared or absolute error of standardised targets.

    Attributes:
        error: ``"mse"`` or ``"mae"``.
        mean, scale: Mean and standard deviation of each target column over the training part.
    """

    task: ClassVar[Task] = "regress"
    default_metric: ClassVar[str] = "rmse"

    error: Literal["mse", "mae"] = "mse"
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.error not in ("mse", "mae"):
            raise DemonetError(f"error={self.error!r} is not 'mse' or 'mae'")

    def check(self, y: Tensor, num_items: int) -> Tensor:
        """``[n]`` or ``[n, columns]`` numbers, NaN for unknown; float64 ``[n, columns]`` comes out."""
        if not isinstance(y, Tensor) or y.dim() not in (1, 2) or y.is_complex():
            raise DemonetError(f"targets are {_shape(y)}, not numbers [items] or [items, columns]")
        _check_count(y, num_items)
        table = y.double().view(num_items, -1)
        sizes = table.abs().nan_to_num(0.0, torch.inf)
        if sizes.numel() and sizes.max() > 0 and not LEAST < sizes.max() < MOST:
            row, column = divmod(int(sizes.argmax()), sizes.size(1))
            problem = f"target {table[row, column].item()} of item {row}, column {column}, is the largest"
            raise DemonetError(problem, hint=f"in a unit in which it is between {LEAST} and {MOST}")
        return table

    def fit(self, y: Tensor) -> Self:
        """Mean and standard deviation of every column; a constant column is only centred."""
        _check_columns(y, "target column")
        mean = y.nanmean(0)
        scale = (y - mean).square().nanmean(0).sqrt()
        scale = torch.where(scale > 0, scale, 1.0)
        return replace(self, outputs=y.size(1), mean=tuple(mean.tolist()), scale=tuple(scale.tolist()))

    def encode(self, y: Tensor) -> Tensor:
        """Standardised targets."""
        return ((y - y.new_tensor(self.mean)) / y.new_tensor(self.scale)).float()

    def decode(self, y: Tensor) -> Tensor:
        """Targets in the user's units."""
        return self.activate(y.double())

    def activate(self, scores: Tensor) -> Tensor:
        """Values in the user's units."""
        return scores * scores.new_tensor(self.scale) + scores.new_tensor(self.mean)

    def decide(self, activated: Tensor) -> Tensor:
        """The values themselves."""
        return activated

    def _entry_loss(self, scores: Tensor, y: Tensor) -> Tensor:
        return (scores - y).square() if self.error == "mse" else (scores - y).abs()


OBJECTIVES: dict[str, type[Objective]] = {kind.task: kind for kind in (Classify, Multilabel, Regress)}


def objective_from_state(state: dict[str, Any]) -> Objective:
    """The objective that gave this state.

    >>> objective_from_state(Regress(error="mae").state())
    Regress(metric='rmse', outputs=0, decision=(), error='mae', mean=(), scale=())
    """
    values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in state.items()}
    return OBJECTIVES[values.pop("task")](**values)


def cross_entropy(scores: Tensor, y: Tensor) -> Tensor:
    """``F.cross_entropy``; on a CPU many items of few classes go class by class, which is three times as fast."""
    if by_class(scores.size(0), scores.size(1), scores.device):
        return F.cross_entropy(scores.t()[None], y[None])
    return F.cross_entropy(scores, y)


def _shape(y: Any) -> str:
    return f"{list(y.shape)} of {y.dtype}" if isinstance(y, Tensor) else f"a {type(y).__name__}"


def _check_count(y: Tensor, num_items: int) -> None:
    if y.size(0) != num_items:
        raise DemonetError(f"{y.size(0)} targets for {num_items} items")


def _check_columns(y: Tensor, noun: str) -> None:
    empty = y.isnan().all(0)
    if bool(empty.any()):
        raise DemonetError(f"{noun} {int(empty.nonzero()[0])} has no known value in the training part")


def _entry_weights(y: Tensor, weight: Tensor | None) -> Tensor:
    known = ~y.isnan()
    return known.float() if weight is None else known * weight[:, None]


def value_of(metric: Metric, task: Task, y: Array, outputs: Array, weight: Array | None = None) -> float | None:
    """A metric of probabilities or values, by the weights of the items if given; None where it is not defined."""
    predicted = decided(task, outputs, metric.decision) if metric.uses == "predictions" else outputs
    with warnings.catch_warnings():  # scikit-learn warns where a metric is not defined
        warnings.simplefilter("ignore")
        value = metric.functions[task](y, predicted, weight)
    return float(value) if np.isfinite(value) else None


def decided(task: Task, outputs: Array, decision: Sequence[float] = ()) -> Array:
    """Predictions from probabilities or values; of equally probable classes, the first.

    Args:
        task: What is predicted.
        outputs: ``[items, outputs]``.
        decision: See :class:`~demonet.train.metrics.Metric`.
    """
    if task == "classify":
        return (outputs * np.array(decision) if decision else outputs).argmax(1)
    return OBJECTIVES[task](decision=tuple(decision)).decide(torch.from_numpy(outputs)).numpy()
