"""What estimators fit in place of a network: the closed-form kernel machine, or the ensemble.

``model="kernel"`` and ``model="auto"`` of the estimators end up here. Both models learn from all labelled items: the
machine chooses its settings by leave-one-out, the ensemble its weights on validation items, and then it fits its
members again with these.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet.checks import labelled
from demonet.closedform import DegreeEffect, KernelMachine
from demonet.data.splits import Split
from demonet.ensemble import Candidate, Ensemble, Progress
from demonet.errors import DemonetError
from demonet.estimators.targets import Array, Targets
from demonet.train.metrics import Task

NETWORK_ONLY: tuple[str, ...] = ("preset", "scheme", "features", "hidden", "lr", "epochs", "patience", "class_weight")
NETWORK_ONLY += ("loss", "batch_size", "neighbours")
AUTO_ONLY = ("effort", "time_limit")
COLUMNS = 256  # of an embedding, at most


def narrow(rows: Array) -> Array:
    """At most 256 columns: a fixed random projection of more, which nearly keeps distances."""
    if rows.shape[1] <= COLUMNS:
        return rows
    return rows @ np.random.default_rng(0).normal(scale=COLUMNS**-0.5, size=(rows.shape[1], COLUMNS))


@dataclass(frozen=True, eq=False)
class Problem:
    """Items with targets, and what an estimator's parameters say about the fit.

    Attributes:
        items: A graph whose nodes have targets, or graphs that have.
        y: ``[items]`` class numbers, -1 for unlabelled; or ``[items, columns]`` labels or numbers, NaN for unknown.
        split: Training and validation items.
        task: What the targets are.
        seed: Of everything random.
        device: Where kernel machines and networks are fitted.
        effort, time_limit, metric, positive, checkpoint, on_candidate: See :meth:`demonet.ensemble.Ensemble.fit`.
    """

    items: Any
    y: Tensor
    split: Split
    task: Task = "classify"
    seed: int = 0
    device: str = "cpu"
    effort: Any = "standard"
    time_limit: float | None = None
    metric: str | None = None
    positive: int | None = None
    checkpoint: str | Path | None = None
    on_candidate: Callable[[Progress], None] | None = None

    @property
    def rows(self) -> Array:
        """Training and validation items together."""
        return torch.cat([self.split.train, self.split.val]).sort().values.numpy()


class ClosedForm(ABC):
    """A fitted model that is not a network."""

    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def fit(cls, problem: Problem) -> Self:
        """Fit on the labelled items."""

    @abstractmethod
    def outputs(self, items: Any, rows: Array | None = None) -> Array:
        """``[items, outputs]`` probabilities, or values."""

    @abstractmethod
    def embed(self, items: Any, rows: Array | None = None) -> Array:
        """``[items, width]`` what ``transform`` gives."""

    def outputs_and_embedding(self, items: Any) -> tuple[Array, Array]:
        """``outputs`` and ``embed`` of all items."""
        return self.outputs(items), self.embed(items)

    @abstractmethod
    def shares(self, items: Any, rows: Array | None = None) -> dict[str, Array]:
        """The decision function term by term."""

    @abstractmethod
    def degree_effect(self, seed: int) -> DegreeEffect:
        """What the degree-specific term is worth."""

    @abstractmethod
    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """All that predictions need: a part for JSON and plain tensors."""

    @classmethod
    @abstractmethod
    def from_state(cls, facts: dict[str, Any], tensors: dict[str, Tensor]) -> Self:
        """The model that gave this state."""

    @property
    def needs_fitted_graph(self) -> bool:
        """Whether the model has no answer for another graph than the fitted one."""
        return False

    def known_targets(self, items: Any) -> Array | None:
        """The targets that a prediction starts from, by item, -1 or NaN where unknown; None if it reads none."""
        return None

    def to(self, device: torch.device) -> Self:
        """The model itself: predictions of a loaded model run on the CPU."""
        return self


class KernelModel(ClosedForm):
    """A kernel machine, fitted on all labelled items.

    Attributes:
        machine: The :class:`~demonet.closedform.KernelMachine`.
    """

    name = "kernel"

    def __init__(self, machine: KernelMachine) -> None:
        self.machine = machine

    @classmethod
    def fit(cls, problem: Problem) -> Self:
        """Choose settings, noise and link by leave-one-out, and solve."""
        return cls(fit_machine(problem, "regression" if problem.task == "regress" else "auto"))

    @property
    def _regression(self) -> bool:
        return self.machine.task_ == "regression"

    def outputs(self, items: Any, rows: Array | None = None) -> Array:
        """Probabilities, or values in the units of ``y``."""
        if self._regression:
            return self.machine.values(self.machine.decision_function(items, rows))
        return self.machine.predict_proba(items, rows)

    def embed(self, items: Any, rows: Array | None = None) -> Array:
        """The decision function: a column a class or number, or one for ordered classes."""
        return self.machine.decision_function(items, rows).astype(np.float32)

    def shares(self, items: Any, rows: Array | None = None) -> dict[str, Array]:
        """The decision function term by term; of a regression in the units of ``y``, the mean in ``constant``."""
        found = self.machine.shares(items, rows)
        if self._regression:
            found = {name: np.asarray(self.machine.deviation_) * part for name, part in found.items()}
            found["constant"] = np.asarray(found.get("constant", 0.0)) + np.asarray(self.machine.mean_)
        return found

    def degree_effect(self, seed: int) -> DegreeEffect:
        """By leave-one-out, or on held-out items where the machine is solved in the primal."""
        return self.machine.degree_effect(seed)

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The machine's state."""
        return self.machine.state()

    @classmethod
    def from_state(cls, facts: dict[str, Any], tensors: dict[str, Tensor]) -> Self:
        """The machine again."""
        return cls(KernelMachine.from_state(facts, tensors))


class EnsembleModel(ClosedForm):
    """A weighted average of members, fitted again on training and validation items.

    Attributes:
        ensemble: The :class:`~demonet.ensemble.Ensemble`.
    """

    name = "auto"

    def __init__(self, ensemble: Ensemble, problem: Problem | None = None) -> None:
        self.ensemble, self._problem = ensemble, problem

    @classmethod
    def fit(cls, problem: Problem) -> Self:
        """Fit every candidate, weigh them on validation items, and fit those that count again."""
        options = {name: getattr(problem, name) for name in (*AUTO_ONLY, "metric", "positive", "device", "checkpoint")}
        options["on_progress"] = problem.on_candidate
        items = _with_labels(problem.items, problem.y)
        ensemble = Ensemble.fit(items, problem.split, task=problem.task, seed=problem.seed, **options)
        return cls(ensemble, replace(problem, on_candidate=None, checkpoint=None))

    @property
    def candidates(self) -> list[dict[str, Any]]:
        """The table of candidates, with the 95 % interval of the loss."""
        table = []
        for candidate in self.ensemble.candidates:
            row = asdict(candidate)
            row.pop("machine")
            loss, error = row["loss"], row.pop("loss_error")
            known = loss is not None and error is not None
            row["loss_low"], row["loss_high"] = (
                (max(0.0, loss - 1.96 * error), loss + 1.96 * error) if known else (None, None)
            )
            table.append(row)
        return table

    @property
    def needs_fitted_graph(self) -> bool:
        """Whether no member has an answer for another graph than the fitted one."""
        return self.ensemble.needs_fitted_graph

    def known_targets(self, items: Any) -> Array | None:
        """Those of the members that propagate them."""
        return self.ensemble.known_targets(items)

    def outputs(self, items: Any, rows: Array | None = None) -> Array:
        """Averaged probabilities or values."""
        found = self.ensemble.outputs(items)
        return found if rows is None else found[rows]

    def outputs_elsewhere(self, items: Any) -> Array:
        """Outputs with the weights for another graph, without members that know the nodes of the fitted one."""
        return np.tensordot(self.ensemble.inductive_weights, np.nan_to_num(self.ensemble.member_outputs(items)), 1)

    def strict(self) -> EnsembleModel:
        """The same average of members that were fitted on the training part alone; not of a loaded model."""
        ensemble = copy.copy(self.ensemble)
        assert ensemble.strict_members is not None
        ensemble.members = ensemble.strict_members
        return EnsembleModel(ensemble)

    def embed(self, items: Any, rows: Array | None = None) -> Array:
        """The hidden layer of a network, or the leading components of a kernel, see :meth:`Ensemble.embed`.

        More than 256 columns are brought down to them by a fixed random projection, which nearly keeps distances.
        """
        found = narrow(self.ensemble.embed(items)).astype(np.float32)
        return found if rows is None else found[rows]

    def of_fitted_items(self, items: Any) -> tuple[Array, Array]:
        """``outputs`` and ``embed`` of the items that were fitted; the former from the fit itself, if it is at hand."""
        known = self.ensemble.fitted_outputs
        return self.outputs(items) if known is None else known, self.embed(items)

    def shares(self, items: Any, rows: Array | None = None) -> dict[str, Array]:
        """Refused: most members are not additive."""
        raise DemonetError("an ensemble has no additive shares", hint='use model="kernel"')

    def machine_row(self) -> Candidate | None:
        """The row of the kernel machine that weighs most, or has the lowest loss, among the candidates."""
        rows = [
            row for row in self.ensemble.candidates if row.machine and row.status == "fitted" and row.loss is not None
        ]
        return min(rows, key=lambda row: (-row.weight, row.loss), default=None)

    def degree_effect(self, seed: int) -> DegreeEffect:
        """That of the kernel machine among the candidates, fitted again on all labelled items."""
        row = self.machine_row()
        if row is None:
            raise DemonetError("the ensemble has fitted no kernel machine", hint='use model="kernel"')
        if self._problem is None:
            raise DemonetError("degree_effect of a model that was loaded", hint="call it after fit")
        return fit_machine(self._problem, **row.machine).degree_effect(seed)

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The ensemble's state."""
        return self.ensemble.state()

    @classmethod
    def from_state(cls, facts: dict[str, Any], tensors: dict[str, Tensor]) -> Self:
        """The ensemble again."""
        return cls(Ensemble.from_state(facts, tensors))


def fit_machine(problem: Problem, task: Any, **options: Any) -> KernelMachine:
    """A machine for one of its tasks, fitted on training and validation items together; unknown entries as means."""
    rows = problem.rows
    y = problem.y.numpy()[rows]
    if y.ndim == 2:
        y = np.where(np.isnan(y), np.nanmean(y, 0), y)
    machine = KernelMachine(task, device=problem.device, seed=problem.seed, **options)
    return machine.fit(problem.items, rows, y)


MODELS: Mapping[str, type[ClosedForm]] = {model.name: model for model in (KernelModel, EnsembleModel)}


def check_parameters(model: str, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Refuse parameters that a model does not read.

    Args:
        model: ``"network"``, ``"kernel"`` or ``"auto"``.
        given: The estimator's parameters.
        defaults: Those of its class.
    """
    unread = (*(() if model == "auto" else AUTO_ONLY), *(() if model == "network" else NETWORK_ONLY))
    unread += ("metric", "positive") if model == "kernel" else ()
    for name in unread:
        if name in given and given[name] is not defaults[name] and given[name] != defaults[name]:
            raise DemonetError(
                f"{name}={given[name]!r} with model={model!r}, which does not read it",
                hint=f"leave {name} at {defaults[name]!r}, or use model={'auto' if name in AUTO_ONLY else 'network'!r}",
            )


def check_targets(model: str, targets: Targets) -> None:
    """Refuse tables of labels for a kernel machine."""
    if model == "kernel" and targets.objective.task == "multilabel":
        raise DemonetError(f"y is a table of labels, model={model!r} predicts one class", hint='use model="auto"')


def everything(y: Tensor, seed: int) -> Split:
    """All labelled items for training."""
    none = torch.empty(0, dtype=torch.int64)
    return Split("all labelled", seed, labelled(y).nonzero().view(-1), none, none)


def _with_labels(items: Any, y: Tensor) -> Any:
    """Shallow copies with encoded targets in ``y``."""
    if isinstance(items, Data):
        labelled_graph = Data(**items.to_dict())
        labelled_graph.y = y
        return labelled_graph
    graphs = [Data(**graph.to_dict()) for graph in items]
    for graph, target in zip(graphs, y, strict=True):
        graph.y = target.view(1, *target.shape)
    return graphs
