"""What all networks have in common: features, first weights from a seed, the one training loop, embeddings."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from demonet.baselines.base import Baseline, Items
from demonet.baselines.settings import changed
from demonet.baselines.settings_networks import NetworkSettings
from demonet.data.features import FeatureMap
from demonet.data.splits import Split
from demonet.train.loop import History, fit
from demonet.train.problem import GraphProblem, NodeProblem, collated
from demonet.train.recipes import replace_features

TOGETHER = 256  # graphs that are asked for at once, when all are


class Classifier(nn.Module):
    """A network in two steps: what it knows of every item, then the scores. Both take the same inputs."""

    @abstractmethod
    def embed(self, *inputs: Any) -> Tensor:
        """``[items, width]`` the last hidden layer."""

    @abstractmethod
    def forward(self, *inputs: Any) -> Tensor:
        """``[items, classes]`` scores."""


class Network(Baseline):
    """A network with the features and the early stopping that every network here gets.

    Args:
        features: As :class:`~demonet.data.FeatureMap` names them; by default the attributes, or the one-hot degree.
        changes: Any of the method's settings, such as ``train`` or ``hidden``, where its paper's are not wanted.
    """

    defaults: ClassVar[NetworkSettings]
    chosen: NetworkSettings

    def __init__(self, features: str | None = None, **changes: Any) -> None:
        self.features, self.chosen = features, changed(self.defaults, self.name, changes)
        self.history = History()

    @abstractmethod
    def _module(self, in_channels: int, num_classes: int, seen: list[Data], *, graphs: bool) -> Classifier:
        """The untrained network; ``seen`` are the training graphs, or the one graph, with their features."""

    def _inputs(self, data: Data) -> tuple[Any, ...]:
        """What the network is called with for one graph, or for a batch of graphs."""
        if isinstance(data, Batch):
            return data.x, data.edge_index, data.batch, data.num_graphs
        return data.x, data.edge_index

    def _layout(self, graphs: list[Data], seen: list[Data]) -> list[Data]:
        """What is done to graphs once, before any are batched."""
        return graphs

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> None:
        config = replace(self.chosen.train, seed=seed)
        ready, seen = self._featured(data, split)
        model = self._first(seen, y, seed, graphs=not isinstance(data, Data))
        problem: NodeProblem | GraphProblem
        if isinstance(data, Data):
            inputs = self._inputs(ready[0])
            problem, everyone = NodeProblem(inputs, y, split), iter([inputs])
        else:
            ready = self._layout(ready, seen)
            problem = GraphProblem(y, split, collated(ready, self._inputs), config.batch_size)
            everyone = self._batches(ready)
        self.history = fit(model, problem, config)
        self._ask(model.eval(), everyone)

    def _first(self, seen: list[Data], y: Tensor, seed: int, *, graphs: bool) -> Classifier:
        """The network with its first weights."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self._module(int(seen[0].x.size(1)), int(y.max()) + 1, seen, graphs=graphs).to(y.device)

    @torch.no_grad()
    def first_embeddings(self, data: Data, seed: int = 0) -> Tensor:
        """The last hidden layer of every node before any training."""
        ready, seen = self._featured(data, None)
        return self._first(seen, data.y, seed, graphs=False).eval().embed(*self._inputs(ready[0]))

    def _featured(self, data: Items, split: Split | None) -> tuple[list[Data], list[Data]]:
        """All graphs with their features, which know the training graphs alone; and those."""
        graphs = [data] if isinstance(data, Data) else list(data)
        chosen = [0] if isinstance(data, Data) or split is None else split.train.tolist()
        features = FeatureMap(self.features or ("degree-onehot" if graphs[0].x is None else "attributes"))
        features.fit([graphs[i] for i in chosen])
        ready = [replace_features(graph, features.transform(graph)) for graph in graphs]
        if not isinstance(data, Data):  # batches are of dense features; a single graph's may be sparse
            for graph in ready:
                graph.x = graph.x.to_dense()
        return ready, [ready[i] for i in chosen]

    def _batches(self, graphs: Sequence[Data]) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(graphs), TOGETHER):
            yield self._inputs(Batch.from_data_list(list(graphs[start : start + TOGETHER])))

    @torch.no_grad()
    def _ask(self, model: Classifier, everyone: Iterator[tuple[Any, ...]]) -> None:
        answers = [(model(*inputs), model.embed(*inputs)) for inputs in everyone]
        self._scores, self._embeddings = (torch.cat(parts) for parts in zip(*answers, strict=True))

    def predict(self) -> Tensor:
        """The class with the highest score."""
        return self._scores.argmax(1)

    def embeddings(self) -> Tensor:
        """The last hidden layer."""
        return self._embeddings
