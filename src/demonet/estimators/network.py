"""A trained network with all that it needs to predict: what ``model="network"`` fits.

It is used as the models of :mod:`demonet.estimators.closed_form` are.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from demonet.degree.tasks import DegreeTasks
from demonet.errors import DemonetError
from demonet.estimators.closed_form import narrow
from demonet.estimators.targets import Array
from demonet.features import FeatureMap
from demonet.nn.blocks import ROWS, WholeGraph
from demonet.nn.config import ModelConfig
from demonet.nn.models import GraphDEMONet, NodeDEMONet
from demonet.nn.prepared import GraphInput
from demonet.schema import check_like
from demonet.train.config import TrainConfig
from demonet.train.loop import History
from demonet.train.objective import Objective
from demonet.train.presets import Preset
from demonet.train.recipes import Trained, prepare_batch, replace_features

BATCH = 512  # graphs in a batch of predictions, which bounds the memory


class NetworkModel:
    """A network, for the nodes of a graph or for graphs.

    Attributes:
        network: The trained network.
        objective: What it was trained for, fitted.
        features: The fitted feature map.
        preset: The configuration, changed by the parameters.
        history: The learning curves.
    """

    name: ClassVar[str] = "network"

    def __init__(
        self,
        network: NodeDEMONet | GraphDEMONet,
        objective: Objective,
        features: FeatureMap,
        preset: Preset,
        history: History,
    ) -> None:
        self.network, self.objective, self.features = network.eval(), objective, features
        self.preset, self.history = preset, history

    @classmethod
    def of(cls, trained: Trained) -> Self:
        """What a recipe has trained."""
        network: Any = trained.model
        return cls(network, trained.objective, trained.features, trained.preset, trained.history)

    def outputs(self, items: Any, rows: Array | None = None) -> Array:
        """``[items, outputs]`` probabilities, or values in the units of the targets."""
        return _of_rows(self._activate(self._run(self.network, items)), rows)

    def embed(self, items: Any, rows: Array | None = None) -> Array:
        """``[items, width]`` the input of the head; the scores of a network without hidden layers."""
        if isinstance(items, Data):
            read = self.network.embed if len(self.network.layers) else self.network
            return _of_rows(self._run(read, items).cpu().numpy(), rows)
        return _of_rows(narrow(self._run(self.network.embed, items).cpu().numpy()).astype(np.float32), rows)

    @torch.no_grad()
    def outputs_and_embedding(self, items: Any) -> tuple[Array, Array]:
        """``outputs`` and ``embed`` of all items; a graph is prepared once for both."""
        if not isinstance(self.network, NodeDEMONet):
            return self.outputs(items), self.embed(items)
        graph = self.prepare(items)
        if len(self.network.layers):
            scores, embedding = self.network.scores_and_embedding(graph)
        else:
            scores = embedding = self.network(graph)
        return self._activate(scores), embedding.cpu().numpy()

    def known_targets(self, items: Any) -> None:
        """A network reads no labels of neighbours."""

    def shares(self, items: Any, rows: Array | None = None) -> dict[str, Array]:
        """Refused: a network is not additive."""
        raise DemonetError("shares of a network", hint='use model="kernel"')

    def degree_effect(self, seed: int) -> Any:
        """Refused: the term of a trained network cannot be left out."""
        raise DemonetError("degree_effect of a network", hint='use model="kernel"')

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
        return self.objective.activate(scores.double()).cpu().numpy()

    def to(self, device: torch.device) -> Self:
        """The model itself, on that device."""
        self.network.to(device)
        return self

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """All that predictions need, besides the objective: a part for JSON and plain tensors."""
        info, arrays = self.features.state()
        facts = {
            "preset": asdict(self.preset),
            "tasks": self.network.tasks.state(),
            "features": info,
            "history": vars(self.history),
        }
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        return facts, tensors | {f"features.{name}": value for name, value in arrays.items()}

    @classmethod
    def from_state(cls, facts: dict[str, Any], tensors: dict[str, Tensor], objective: Objective) -> Self:
        """The model that gave this state."""
        parts: dict[str, dict[str, Tensor]] = {"network": {}, "features": {}}
        for name, tensor in tensors.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = tensor
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
        return cls(network, objective, features, preset, History(**facts["history"]))


def _of_rows(found: Array, rows: Array | None) -> Array:
    return found if rows is None else found[rows]
