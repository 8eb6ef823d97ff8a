"""A fitted estimator as one tensor file: weights, feature map, tasks, objective, classes, parameters. No pickle.

The graph is not in the file: it may be large, and the user has it.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet.data.columns import Columns
from demonet.data.splits import Split
from demonet.degree.tasks import DegreeTasks
from demonet.errors import DemonetError, DemonetWarning
from demonet.estimators.closed_form import MODELS, ClosedForm
from demonet.estimators.targets import Array, class_state, classes_from_state
from demonet.features import FeatureMap
from demonet.nn.config import ModelConfig
from demonet.nn.models import DegreeNetwork, GraphDEMONet, NodeDEMONet
from demonet.tensorfile import read_tensors, write_tensors
from demonet.train.config import TrainConfig
from demonet.train.loop import History
from demonet.train.objective import Objective, objective_from_state
from demonet.train.presets import Preset

FORMAT = "demonet-model-2"
CLOSED_FORM = "demonet-closed-form-1"
_PARTS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class SavedModel:
    """The fitted state and the parameters of an estimator.

    Attributes:
        estimator: The name of its class.
        parameters: The parameters as plain values.
        model: The network, or the model in closed form.
        objective: The fitted objective.
        classes: The classes in the order of the scores, None for a regressor.
        num_attributes: Columns of ``x`` in training, 0 if there were none.
        split: Training and validation items.
        columns: What the columns of a table of attributes are, if the attributes come from one.
        weighted: Whether edges had weights in training; None if that is not known.
        preset, features, history: Of a network: the preset, changed by the parameters, the fitted feature map and the
            learning curves.
    """

    estimator: str
    parameters: dict[str, Any]
    model: DegreeNetwork | ClosedForm
    objective: Objective
    classes: Array | None
    num_attributes: int
    split: Split
    columns: Columns | None = None
    weighted: bool | None = None
    preset: Preset | None = None
    features: FeatureMap | None = None
    history: History | None = None


def save_model(path: str | Path, saved: SavedModel) -> None:
    """Write a model atomically."""
    if isinstance(saved.model, ClosedForm):
        return _save_closed_form(path, saved, saved.model)
    assert saved.preset is not None
    assert saved.features is not None
    info, arrays = saved.features.state()
    tensors = {f"model.{name}": value for name, value in saved.model.state_dict().items()}
    tensors |= {f"features.{name}": value for name, value in arrays.items()}
    tensors |= {f"split.{part}": getattr(saved.split, part) for part in _PARTS}
    facts = {
        "estimator": saved.estimator,
        "parameters": saved.parameters,
        "preset": asdict(saved.preset),
        "tasks": saved.model.tasks.state(),
        "features": info,
        "objective": saved.objective.state(),
        "classes": class_state(saved.classes),
        "num_attributes": saved.num_attributes,
        "columns": None if saved.columns is None else saved.columns.state(),
        "weighted": saved.weighted,
        "history": vars(saved.history),
        "split": {"name": saved.split.name, "seed": saved.split.seed},
    }
    write_tensors(path, FORMAT, tensors, facts)


def _save_closed_form(path: str | Path, saved: SavedModel, model: ClosedForm) -> None:
    state, arrays = model.state()
    tensors = {f"model.{name}": value for name, value in arrays.items()}
    tensors |= {f"split.{part}": getattr(saved.split, part) for part in _PARTS}
    facts = {
        "estimator": saved.estimator,
        "parameters": saved.parameters,
        "kind": model.name,
        "model": state,
        "objective": saved.objective.state(),
        "classes": class_state(saved.classes),
        "num_attributes": saved.num_attributes,
        "columns": None if saved.columns is None else saved.columns.state(),
        "weighted": saved.weighted,
        "split": {"name": saved.split.name, "seed": saved.split.seed},
    }
    write_tensors(path, CLOSED_FORM, tensors, facts)


def load_model(path: str | Path, estimator: str) -> SavedModel:
    """Read a model of that class; a file that is damaged, incomplete or of another format is refused."""
    tensors, facts, found = read_tensors(path, FORMAT, CLOSED_FORM)
    try:
        if facts["estimator"] != estimator:
            raise DemonetError(f"a {facts['estimator']}, not a {estimator}", file=path, hint="load it with its class")
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "features": {}, "split": {}}
        for name, tensor in tensors.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = tensor
        saved = _assemble(facts, parts) if found != CLOSED_FORM else _assemble_closed_form(facts, parts)
        _try(saved)
    except DemonetError as error:
        raise error if error.file is not None else DemonetError(f"does not hold a model: {error}", file=path) from None
    except (RuntimeError, KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise DemonetError(f"does not hold a model: {error!r}", file=path) from error
    return saved


def _assemble(facts: dict[str, Any], parts: dict[str, dict[str, Tensor]]) -> SavedModel:
    described = facts["preset"]
    model, train = ModelConfig.from_state(described["model"]), TrainConfig(**described["train"])
    preset = Preset(**described | {"model": model, "train": train})
    features = FeatureMap.from_state(facts["features"], parts["features"])
    tasks, classes = DegreeTasks.from_state(facts["tasks"]), classes_from_state(facts["classes"])
    objective = objective_from_state(facts["objective"])
    if classes is None and objective.task != "regress":
        raise DemonetError(f"classes are missing for the task {objective.task!r}")
    make = GraphDEMONet if preset.family == "graphs" else NodeDEMONet
    with torch.device("meta"):  # shapes only: nothing is allocated before the tensors are known to fit
        network = make(features.num_features, objective.outputs, tasks, preset.model)
    network.load_state_dict(parts["model"], assign=True)
    return SavedModel(
        estimator=facts["estimator"],
        parameters=facts["parameters"],
        preset=preset,
        model=network.eval(),
        objective=objective,
        features=features,
        classes=classes,
        num_attributes=int(facts["num_attributes"]),
        columns=_columns(facts),
        history=History(**facts["history"]),
        weighted=_weighted(facts),
        split=_split(facts, parts),
    )


def _assemble_closed_form(facts: dict[str, Any], parts: dict[str, dict[str, Tensor]]) -> SavedModel:
    classes, objective = classes_from_state(facts["classes"]), objective_from_state(facts["objective"])
    if (classes is None) != (objective.task == "regress"):
        raise DemonetError(f"classes do not match the task {objective.task!r}")
    return SavedModel(
        estimator=facts["estimator"],
        parameters=facts["parameters"],
        model=MODELS[facts["kind"]].from_state(facts["model"], parts["model"]),
        objective=objective,
        classes=classes,
        num_attributes=int(facts["num_attributes"]),
        columns=_columns(facts),
        weighted=_weighted(facts),
        split=_split(facts, parts),
    )


def _columns(facts: dict[str, Any]) -> Columns | None:
    state = facts["columns"]
    if state is None:
        return None
    columns = Columns.from_state(state)
    if len(columns.names) != int(facts["num_attributes"]):
        raise DemonetError(f"{len(columns.names)} columns for {facts['num_attributes']} attributes")
    return columns


def _weighted(facts: dict[str, Any]) -> bool | None:
    weighted = facts["weighted"]
    if weighted is not None and not isinstance(weighted, bool):
        raise DemonetError(f"weighted is {weighted!r}")
    return weighted


def _split(facts: dict[str, Any], parts: dict[str, dict[str, Tensor]]) -> Split:
    return Split(facts["split"]["name"], facts["split"]["seed"], **{part: parts["split"][part] for part in _PARTS})


def _try(saved: SavedModel) -> None:
    """Run the model on a graph of two nodes, so that a missing part is found when the model is loaded."""
    x = torch.zeros(2, saved.num_attributes) if saved.num_attributes else None
    pair = Data(x=x, edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    if isinstance(saved.model, ClosedForm):
        if not saved.model.needs_fitted_graph:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DemonetWarning)  # that this is another graph
                saved.model.outputs([pair] if "Graph" in saved.estimator else pair)
        return
    assert saved.features is not None
    if "adjacency" in saved.features.blocks:  # these features are made for one graph, which is not in the file
        return
    with torch.no_grad():
        saved.model(saved.model.prepare(saved.features.transform(pair), pair.edge_index))
