"""A trained model as one file: weights, feature map, tasks, classes and how it was made. No pickle, one format version.

The graph is not in the file: it is the user's, and may be large. A model is loaded beside a graph.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet.data.features import FeatureMap
from demonet.data.splits import Split
from demonet.degree.tasks import DegreeTasks
from demonet.errors import DemonetError
from demonet.estimators.sealed import read_sealed, write_sealed
from demonet.estimators.targets import class_state, classes_from_state
from demonet.nn.config import ModelConfig
from demonet.nn.models import DEMONet, GraphDEMONet, NodeDEMONet
from demonet.train.config import TrainConfig
from demonet.train.loop import History
from demonet.train.presets import Preset

FORMAT = "demonet-model-1"
_PARTS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class SavedModel:
    """All that an estimator has learned, and the parameters it was made with.

    Attributes:
        estimator: The name of its class.
        parameters: Of the estimator, as plain values.
        preset: How it was made, the parameters worked in.
        model: The network.
        features: The fitted feature map.
        classes: The classes in the order of the scores.
        num_attributes: Columns of ``x`` in training, 0 where there were none.
        history: The learning curves.
        split: Who was trained on and who chose the epoch.
    """

    estimator: str
    parameters: dict[str, Any]
    preset: Preset
    model: DEMONet
    features: FeatureMap
    classes: np.ndarray
    num_attributes: int
    history: History
    split: Split


def save_model(path: str | Path, saved: SavedModel) -> None:
    """Write a model, whole or not at all."""
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
        "classes": class_state(saved.classes),
        "num_attributes": saved.num_attributes,
        "history": vars(saved.history),
        "split": {"name": saved.split.name, "seed": saved.split.seed},
    }
    write_sealed(path, FORMAT, tensors, facts)


def load_model(path: str | Path, estimator: str) -> SavedModel:
    """Read a model of that class; a file that is damaged, incomplete or of another kind is refused."""
    tensors, facts = read_sealed(path, FORMAT)
    try:
        if facts["estimator"] != estimator:
            raise DemonetError(f"a {facts['estimator']}, not a {estimator}", file=path, hint="load it with its class")
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "features": {}, "split": {}}
        for name, tensor in tensors.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = tensor
        saved = _assemble(facts, parts)
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
    make = GraphDEMONet if preset.family == "graphs" else NodeDEMONet
    with torch.device("meta"):  # shapes only: nothing is drawn at random, or allocated before it is known to fit
        network = make(features.num_features, len(classes), tasks, preset.model)
    network.load_state_dict(parts["model"], assign=True)
    return SavedModel(
        estimator=facts["estimator"],
        parameters=facts["parameters"],
        preset=preset,
        model=network.eval(),
        features=features,
        classes=classes,
        num_attributes=int(facts["num_attributes"]),
        history=History(**facts["history"]),
        split=Split(facts["split"]["name"], facts["split"]["seed"], **{part: parts["split"][part] for part in _PARTS}),
    )


def _try(saved: SavedModel) -> None:
    """Run the model on the smallest graph, so that what is missing is missed now and not in use."""
    if "adjacency" in saved.features.blocks:  # these features know one graph, and it is not here
        return
    x = torch.zeros(2, saved.num_attributes) if saved.num_attributes else None
    pair = Data(x=x, edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    with torch.no_grad():
        saved.model(saved.model.prepare(saved.features.transform(pair), pair.edge_index))
