"""The models that estimators fit, with one interface: the ensemble, the closed-form kernel machine, or a network.

The first two learn from all labelled items: the machine chooses its settings by leave-one-out, the ensemble its weights
on validation items, and then it fits its members again with these. Probabilities of all three are calibrated on
validation items, if there are some.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from demonet.closedform import DegreeEffect, KernelMachine
from demonet.data.splits import Split
from demonet.degree.tasks import DegreeTasks
from demonet.ensemble import Candidate, Ensemble
from demonet.ensemble.calibration import FEWEST, Calibration, LabelCalibration, calibrate, calibration_from_state
from demonet.errors import DemonetError
from demonet.estimators.targets import Array
from demonet.features import FeatureMap
from demonet.methods.closed_form import AVERAGED, COARSE_SCREEN
from demonet.nn.blocks import ROWS, WholeGraph
from demonet.nn.config import ModelConfig
from demonet.nn.models import GraphDEMONet, NodeDEMONet
from demonet.nn.prepared import GraphInput
from demonet.schema import check_like
from demonet.tensorfile import by_prefix
from demonet.train.config import TrainConfig
from demonet.train.loop import History
from demonet.train.metrics import Task
from demonet.train.objective import Objective
from demonet.train.presets import Preset
from demonet.train.recipes import Trained, prepare_batch, replace_features

COLUMNS = 256  # of an embedding, at most
BATCH = 512  # graphs in a batch of predictions, which bounds the memory


class Model(ABC):
    """A fitted model. Its items are the nodes of a graph, or graphs; ``rows`` chooses some of them."""

    name: ClassVar[str]
    calibration: Calibration | LabelCalibration

    @abstractmethod
    def outputs(self, items: Any, rows: Array | None = None) -> Array:
        """``[items, outputs]`` probabilities, or values in the units of the targets."""

    @abstractmethod
    def embed(self, items: Any, rows: Array | None = None) -> Array:
        """``[items, width]`` what ``transform`` gives."""

    def fitted_outputs(self, items: Any) -> Array:
        """``outputs`` of all items that were fitted."""
        return self.outputs(items)

    def outputs_and_embedding(self, items: Any) -> tuple[Array, Array]:
        """``fitted_outputs`` and ``embed`` of all items that were fitted."""
        return self.fitted_outputs(items), self.embed(items)

    @property
    def strict(self) -> Model | None:
        """The model of the training part alone, this one if it was not refitted; None where there is none any more."""
        return self

    def shares(self, items: Any, rows: Array | None = None) -> dict[str, Array]:
        """The decision function term by term, of a kernel machine; other models are not additive."""
        raise DemonetError(f"shares with model={self.name!r}", hint='use model="kernel"')

    def degree_effect(self, seed: int) -> DegreeEffect:
        """What the degree-specific term is worth; that of a trained network cannot be left out."""
        raise DemonetError(f"degree_effect with model={self.name!r}", hint='use model="kernel"')

    @property
    def needs_fitted_graph(self) -> bool:
        """Whether the model has no answer for another graph than the fitted one."""
        return False

    def known_targets(self, items: Any) -> Array | None:
        """The targets that a prediction starts from, by item, -1 or NaN where unknown; None if it reads none."""
        return None

    def to(self, device: torch.device) -> Self:
        """The model itself: only a network predicts on another device than the CPU."""
        return self

    @abstractmethod
    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """All that predictions need, besides the objective: a part for JSON and plain tensors."""

    @classmethod
    @abstractmethod
    def from_state(cls, facts: dict[str, Any], tensors: dict[str, Tensor], objective: Objective) -> Self:
        """The model that gave this state."""


@dataclass(frozen=True, eq=False)
class LabelledItems:
    """Items with targets.

    Attributes:
        items: A graph whose nodes have targets in ``y``, or graphs that have.
        y: These: ``[items]`` classes, -1 for unlabelled; or ``[items, columns]`` labels or numbers, NaN for unknown.
        split: Training and validation items.
        task: What the targets are.
        seed: Of everything random.
        device: Where kernel machines and networks are fitted.
        weight: ``[items]`` how much each counts; None if all are 1.
    """

    items: Any
    y: Tensor
    split: Split
    task: Task
    seed: int
    device: str
    weight: Array | None = None

    def calibration(self, outputs: Callable[[Any, Array], Array]) -> Calibration | LabelCalibration:
        """What makes probabilities of those of a model that was fitted on the training part: validation items say.

        Items of a class that the training part does not have say nothing about the others.
        """
        y, train, rows = self.y.numpy(), self.split.train.numpy(), self.split.val.numpy()
        rows = rows[np.isin(y[rows], y[train])] if self.task == "classify" else rows
        if self.task == "regress" or len(rows) < FEWEST:
            return calibration_from_state(self.task, {}, 0)
        weight = None if self.weight is None else self.weight[rows]
        return calibrate(self.task, outputs(self.items, rows), y[rows], self.seed, weight)

    def machine(self, task: Any, **options: Any) -> KernelMachine:
        """A machine for one of its tasks, fitted on training and validation items; unknown entries as means.

        Its classes are those that were ``seen``.
        """
        rows, y = self._known()
        if y.ndim == 2:
            y = np.where(np.isnan(y), np.nanmean(y, 0), y)
        else:
            y = np.searchsorted(self.seen, y)
        weight = None if self.weight is None else self.weight[rows]
        return KernelMachine(task, device=self.device, seed=self.seed, **options).fit(
            self.items, rows, y, weight=weight
        )

    @property
    def seen(self) -> Array:
        """The numbers of the classes that training and validation items have."""
        return np.unique(self._known()[1])

    def _known(self) -> tuple[Array, Array]:
        """Training and validation items in order, and their targets."""
        rows = torch.cat([self.split.train, self.split.val]).sort().values.numpy()
        return rows, self.y.numpy()[rows]


class KernelModel(Model):
    """A kernel machine, fitted on all labelled items.

    Attributes:
        machine: The :class:`~demonet.closedform.KernelMachine`.
        seen: The classes that it knows, by their numbers among ``outputs`` of them; None for numbers.
        calibration: What makes probabilities of what the link gives.
    """

    name = "kernel"

    def __init__(
        self,
        machine: KernelMachine,
        seen: Array | None = None,
        outputs: int = 0,
        calibration: Calibration | LabelCalibration | None = None,
    ) -> None:
        self.machine, self.seen, self._outputs = machine, seen, outputs
        self.calibration = calibration or Calibration()
        self._strict: KernelModel | None = None

    @classmethod
    def fit(cls, problem: LabelledItems) -> Self:
        """Choose settings, noise and link by leave-one-out, and solve; first on the training part, to calibrate."""
        split, strict = problem.split, None
        if split.val.numel():
            strict = cls.fit(replace(problem, split=replace(split, val=split.val[:0])))
            strict.calibration = problem.calibration(strict.outputs)
        calibration = None if strict is None else strict.calibration
        if problem.task == "regress":
            found = cls(problem.machine("regression"))
        else:
            found = cls(problem.machine("auto"), problem.seen, int(problem.y.max()) + 1, calibration)
        found._strict = strict
        return found

    @property
    def strict(self) -> Model | None:
        """None without a validation part, or if loaded."""
        return self._strict

    def outputs(self, items: Any, rows: Array | None = None) -> Array:
        """Probabilities, or values in the units of ``y``."""
        return self._decoded(self.machine.decision_function(items, rows))

    def _decoded(self, f: Array) -> Array:
        if self.seen is None:
            return self.machine.values(f)
        return self.calibration.apply(self._spread(np.exp(self.machine.link_.log_probabilities(f))))

    def _spread(self, columns: Array) -> Array:
        """A column a class in its place, 0 for classes that were not seen; the one of ordered classes as it is."""
        if self.seen is None or columns.shape[1] != len(self.seen):
            return columns
        found = np.zeros((len(columns), self._outputs), columns.dtype)
        found[:, self.seen] = columns
        return found

    def embed(self, items: Any, rows: Array | None = None) -> Array:
        """The decision function: a column a class or number, or one for ordered classes."""
        return self._spread(self.machine.decision_function(items, rows)).astype(np.float32)

    def outputs_and_embedding(self, items: Any) -> tuple[Array, Array]:
        """Both follow from the decision function, which takes long on a large graph."""
        found = self.machine.decision_function(items)
        return self._decoded(found), self._spread(found).astype(np.float32)

    def shares(self, items: Any, rows: Array | None = None) -> dict[str, Array]:
        """The decision function term by term; of a regression in the units of ``y``, the mean in ``constant``."""
        found = {name: self._spread(part) for name, part in self.machine.shares(items, rows).items()}
        if self.machine.task_ == "regression":
            found = {name: np.asarray(self.machine.deviation_) * part for name, part in found.items()}
            found["constant"] = np.asarray(found.get("constant", 0.0)) + np.asarray(self.machine.mean_)
        return found

    def degree_effect(self, seed: int) -> DegreeEffect:
        """By leave-one-out, or on held-out items where the machine is solved in the primal."""
        return self.machine.degree_effect(seed)

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The machine's state."""
        facts, tensors = self.machine.state()
        seen = None if self.seen is None else self.seen.tolist()
        return facts | {"outputs": self._outputs, "seen": seen, "calibration": self.calibration.state()}, tensors

    @classmethod
    def from_state(cls, facts: dict[str, Any], tensors: dict[str, Tensor], objective: Objective) -> Self:
        """The machine again."""
        seen = None if facts["seen"] is None else np.array(facts["seen"])
        calibration = calibration_from_state(objective.task, facts["calibration"], facts["outputs"])
        return cls(KernelMachine.from_state(facts, tensors), seen, facts["outputs"], calibration)


class EnsembleModel(Model):
    """A weighted average of members, fitted again on training and validation items.

    Attributes:
        ensemble: The :class:`~demonet.ensemble.Ensemble`.
    """

    name = "auto"

    def __init__(self, ensemble: Ensemble, problem: LabelledItems | None = None) -> None:
        self.ensemble, self._problem, self.calibration = ensemble, problem, ensemble.calibration

    @classmethod
    def fit(cls, problem: LabelledItems, **options: Any) -> Self:
        """Fit every candidate and weigh them, see :meth:`demonet.ensemble.Ensemble.fit` for the options."""
        given = {name: getattr(problem, name) for name in ("task", "seed", "device", "weight")} | options
        return cls(Ensemble.fit(problem.items, problem.split, **given), problem)

    @property
    def candidates(self) -> list[dict[str, Any]]:
        """The table of candidates, with the 95 % interval of the loss."""
        table = []
        for candidate in self.ensemble.candidates:
            row = asdict(candidate)
            row.pop("machine")
            loss, error = row["loss"], row.pop("loss_error")
            known = loss is not None and error is not None
            row["loss_low"] = max(0.0, loss - 1.96 * error) if known else None
            row["loss_high"] = loss + 1.96 * error if known else None
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
        return self.ensemble.outputs(items, rows)

    def outputs_elsewhere(self, items: Any) -> Array:
        """Outputs with the weights for another graph, without members that know the nodes of the fitted one."""
        return self.ensemble.elsewhere(np.nan_to_num(self.ensemble.member_outputs(items)))

    def fitted_outputs(self, items: Any) -> Array:
        """Those from the fit itself, if they are at hand."""
        known = self.ensemble.fitted_outputs
        return self.outputs(items) if known is None else known

    @property
    def strict(self) -> EnsembleModel | None:
        """The average of members that were fitted on the training part alone; None if loaded."""
        return None if self.ensemble.strict is None else EnsembleModel(self.ensemble.strict)

    def embed(self, items: Any, rows: Array | None = None) -> Array:
        """The hidden layer of a network, or the leading components of a kernel, see :meth:`Ensemble.embed`."""
        return _of_rows(narrow(self.ensemble.embed(items)).astype(np.float32), rows)

    def machine_row(self) -> Candidate | None:
        """The row of the kernel machine that weighs most, or has the lowest loss, among the candidates."""
        rows = [
            row for row in self.ensemble.candidates if row.machine and row.status == "fitted" and row.loss is not None
        ]
        return min(rows, key=lambda row: (-row.weight, row.loss), default=None)

    def degree_effect(self, seed: int) -> DegreeEffect:
        """That of the kernel machine among the candidates, with all labelled items and the search of a quick fit."""
        row = self.machine_row()
        if row is None:
            raise DemonetError("the ensemble has fitted no kernel machine", hint='use model="kernel"')
        if self._problem is None:
            raise DemonetError("degree_effect of a model that was loaded", hint="call it after fit")
        most = {"members": AVERAGED["quick"], "screen": COARSE_SCREEN}
        search = {name: min(row.machine[name], value) for name, value in most.items()}
        labels = self._problem.task == "multilabel"
        return self._problem.machine(**row.machine | search).degree_effect(seed, labels=labels)

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The ensemble's state."""
        return self.ensemble.state()

    @classmethod
    def from_state(cls, facts: dict[str, Any], tensors: dict[str, Tensor], objective: Objective) -> Self:
        """The ensemble again."""
        return cls(Ensemble.from_state(facts, tensors))


@dataclass(eq=False)
class NetworkModel(Model):
    """A trained network with all that it needs to predict.

    Attributes:
        network: The trained network.
        objective: What it was trained for, fitted.
        features: The fitted feature map.
        preset: The configuration, changed by the parameters.
        history: The learning curves.
        calibration: What makes probabilities of activated scores.
    """

    name: ClassVar[str] = "network"

    network: NodeDEMONet | GraphDEMONet
    objective: Objective
    features: FeatureMap
    preset: Preset
    history: History
    calibration: Calibration | LabelCalibration = field(default_factory=Calibration)

    def __post_init__(self) -> None:
        self.network.eval()

    @classmethod
    def of(cls, trained: Trained, problem: LabelledItems) -> Self:
        """What a recipe has trained, calibrated."""
        network: Any = trained.model
        found = cls(network, trained.objective, trained.features, trained.preset, trained.history)
        found.calibration = problem.calibration(found.outputs)
        return found

    def outputs(self, items: Any, rows: Array | None = None) -> Array:
        """Activated scores, of classes and labels calibrated."""
        return _of_rows(self._activate(self._run(self.network, items)), rows)

    def embed(self, items: Any, rows: Array | None = None) -> Array:
        """The input of the head; the scores of a network for nodes without hidden layers."""
        if isinstance(items, Data):
            read = self.network.embed if len(self.network.layers) else self.network
            return _of_rows(self._run(read, items).cpu().numpy(), rows)
        return _of_rows(narrow(self._run(self.network.embed, items).cpu().numpy()).astype(np.float32), rows)

    @torch.no_grad()
    def outputs_and_embedding(self, items: Any) -> tuple[Array, Array]:
        """A graph is prepared once for both."""
        if not isinstance(self.network, NodeDEMONet):
            return self.outputs(items), self.embed(items)
        graph = self.prepare(items)
        if len(self.network.layers):
            scores, embedding = self.network.scores_and_embedding(graph)
        else:
            scores = embedding = self.network(graph)
        return self._activate(scores), embedding.cpu().numpy()

    def prepare(self, data: Data) -> GraphInput | WholeGraph:
        """What the network is called with: a large graph goes through it in blocks of rows."""
        data = copy.copy(data).to(self._device)  # to() changes a graph in place
        x = self.features.transform(data)
        large = x.size(0) > 2 * ROWS
        sums = not large or x.layout != torch.strided  # a block of rows can compute dense sums itself
        graph = self.network.prepare(x, data.edge_index, edge_weight=data.get("edge_weight"), sums=sums)
        return WholeGraph(graph, once=True) if large else graph

    @property
    def needs_fitted_graph(self) -> bool:
        """Whether the features are made for the fitted graph alone."""
        return "adjacency" in self.features.blocks

    @property
    def _device(self) -> torch.device:
        return next(self.network.parameters()).device

    @torch.no_grad()
    def _run(self, function: Callable[..., Tensor], items: Data | Sequence[Data]) -> Tensor:
        if isinstance(items, Data):
            return function(self.prepare(items))
        ready = [replace_features(graph, self.features.transform(graph)).to(self._device) for graph in items]
        batches = [Batch.from_data_list(ready[start : start + BATCH]) for start in range(0, len(ready), BATCH)]
        return torch.cat([function(*prepare_batch(self.network, batch)) for batch in batches])

    def _activate(self, scores: Tensor) -> Array:
        """Probabilities or values from scores, in double precision so that probabilities sum to 1 closely."""
        return self.calibration.apply(self.objective.activate(scores.double()).cpu().numpy())

    def to(self, device: torch.device) -> Self:
        """The model itself, on that device."""
        self.network.to(device)
        return self

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Preset, tasks, features and curves; the weights, and the arrays of the features."""
        info, arrays = self.features.state()
        facts = {
            "preset": asdict(self.preset),
            "tasks": self.network.tasks.state(),
            "features": info,
            "history": vars(self.history),
            "calibration": self.calibration.state(),
        }
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        return facts, tensors | {f"features.{name}": value for name, value in arrays.items()}

    @classmethod
    def from_state(cls, facts: dict[str, Any], tensors: dict[str, Tensor], objective: Objective) -> Self:
        """The network again."""
        parts = by_prefix(tensors, "network", "features")
        described = facts["preset"]
        model, train = ModelConfig.from_state(described["model"]), TrainConfig(**described["train"])
        preset = Preset(**described | {"model": model, "train": train})
        features = FeatureMap.from_state(facts["features"], parts["features"])
        make = GraphDEMONet if preset.family == "graphs" else NodeDEMONet
        tasks = DegreeTasks.from_state(facts["tasks"])
        with torch.device("meta"):  # shapes only: nothing is allocated before the tensors are known to fit
            network = make(features.num_features, objective.outputs, tasks, preset.model)
        check_like(parts["network"], network.state_dict())
        network.load_state_dict(parts["network"], assign=True)
        calibration = calibration_from_state(objective.task, facts["calibration"], objective.outputs)
        return cls(network, objective, features, preset, History(**facts["history"]), calibration)


MODELS: dict[str, type[Model]] = {model.name: model for model in (KernelModel, EnsembleModel, NetworkModel)}


def narrow(rows: Array) -> Array:
    """At most 256 columns: a fixed random projection of more, which nearly keeps distances."""
    if rows.shape[1] <= COLUMNS:
        return rows
    return rows @ np.random.default_rng(0).normal(scale=COLUMNS**-0.5, size=(rows.shape[1], COLUMNS))


def _of_rows(found: Array, rows: Array | None) -> Array:
    return found if rows is None else found[rows]
