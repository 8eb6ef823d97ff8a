"""Base class of neural networks: input features, seeded initial weights, the shared training loop, embeddings.

All networks are trained by the same loop: Adam with coupled L2, at most 1,000 epochs, early stopping with patience 100,
best weights restored. The learning rate and the batch size are those of each paper.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from demonet.data.splits import Split
from demonet.errors import DemonetError
from demonet.features import FeatureMap
from demonet.methods.base import Conditions, Items, Method, Predicted, Settings, at_least
from demonet.train.config import TrainConfig
from demonet.train.loop import History, fit
from demonet.train.problem import GraphProblem, NodeProblem, collated
from demonet.train.recipes import replace_features

_BATCH = 256  # graphs per batch for inference


@dataclass(frozen=True)
class NetworkSettings(Settings):
    """Settings of every network; ``train`` configures the training loop."""

    train: TrainConfig


@dataclass(frozen=True)
class LayerSettings(NetworkSettings):
    """Settings of a network with hidden layers of width ``hidden`` and a dropout probability ``dropout``."""

    hidden: int = at_least(1)
    dropout: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.dropout < 1.0:
            raise DemonetError(f"dropout must be in [0, 1), got {self.dropout!r}")


@dataclass(frozen=True)
class DeepSettings(LayerSettings):
    """Settings of a network with ``layers`` hidden layers."""

    layers: int = at_least(1, 2)


class Classifier(nn.Module):
    """A network that embeds every item and then scores it, by ``head``. Both methods take the same inputs."""

    head: Any

    @abstractmethod
    def embed(self, *inputs: Any) -> Tensor:
        """``[items, width]`` the last hidden layer."""

    def forward(self, *inputs: Any) -> Tensor:
        """``[items, classes]`` scores."""
        return self.head(self.embed(*inputs))


def read_out(
    pool: Callable[..., Tensor], h: Tensor, batch: Tensor | None = None, num_graphs: int | None = None
) -> Tensor:
    """Nodes as they are; of a batch of graphs, what ``pool`` makes of the nodes of each."""
    return h if batch is None else pool(h, batch, num_graphs)


class Network(Method):
    """A neural network on the features and with the early stopping that all networks share.

    ``chosen`` is the number of epochs after which it was best on validation.

    Args:
        features: A specification for :class:`~demonet.features.FeatureMap`. By default the attributes, or the one-hot
            degree where there are none.
        changes: Settings that differ from ``defaults``, such as ``hidden``; of ``train``, also some fields by name.
    """

    group = "network"
    on_device = True
    defaults: ClassVar[NetworkSettings]
    settings: NetworkSettings
    history: History

    def __init__(self, features: str | None = None, **changes: Any) -> None:
        if isinstance(changes.get("train"), Mapping):
            changes["train"] = self.defaults.train.changed(**changes["train"])
        super().__init__(**changes)
        self.features = features
        self.history = History()

    @classmethod
    def under(cls, conditions: Conditions) -> Self:
        """With the limit of epochs, and standardised attributes where asked for."""
        epochs = min(conditions.epochs, cls.defaults.train.epochs)
        return cls("standardised" if conditions.standardise else None, train={"epochs": epochs})

    @abstractmethod
    def _build(self, in_channels: int, num_classes: int, training: list[Data], *, graphs: bool) -> Classifier:
        """The untrained network; ``training`` has the training graphs, or the single graph, with their features."""

    def _inputs(self, data: Data) -> tuple[Any, ...]:
        """The arguments of the network for one graph or for a batch of graphs."""
        if isinstance(data, Batch):
            return data.x, data.edge_index, data.batch, data.num_graphs
        return data.x, data.edge_index

    def _preprocess(self, graphs: list[Data], training: list[Data]) -> list[Data]:
        """Applied to all graphs once, before batching."""
        return graphs

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> Predicted:
        config = replace(self.settings.train, seed=seed)
        ready, training = self._featured(data, split)
        model = self._initialised(training, y, seed, graphs=not isinstance(data, Data))
        problem: NodeProblem | GraphProblem
        if isinstance(data, Data):
            inputs = self._inputs(ready[0])
            problem, batches = NodeProblem(inputs, y, split), iter([inputs])
        else:
            ready = self._preprocess(ready, training)
            problem = GraphProblem(y, split, collated(ready, self._inputs), config.batch_size)
            batches = self._batches(ready)
        if self.chosen is None:
            self.history = fit(model, problem, config)
            self.chosen = self.history.best_epoch + 1
        else:
            self.history = fit(model, problem, replace(config, epochs=self.chosen), choose=False)
        self._infer(model.eval(), batches)
        probability = problem.objective.activate(self._scores.double())
        return probability.argmax(1), probability

    def _initialised(self, training: list[Data], y: Tensor, seed: int, *, graphs: bool) -> Classifier:
        """The network with initial weights from the seed."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)  # GPU generators stay as they are
            return self._build(int(training[0].x.size(1)), int(y.max()) + 1, training, graphs=graphs).to(y.device)

    @torch.no_grad()
    def first_embeddings(self, data: Data, seed: int = 0) -> Tensor:
        """The last hidden layer of every node before training."""
        ready, training = self._featured(data, None)
        return self._initialised(training, data.y, seed, graphs=False).eval().embed(*self._inputs(ready[0]))

    def _featured(self, data: Items, split: Split | None) -> tuple[list[Data], list[Data]]:
        """All graphs and the training graphs, with features fitted on the training graphs."""
        graphs = [data] if isinstance(data, Data) else list(data)
        indices = [0] if isinstance(data, Data) or split is None else split.train.tolist()
        features = FeatureMap(self.features or ("degree-onehot" if graphs[0].x is None else "attributes"))
        features.fit([graphs[i] for i in indices])
        ready = [replace_features(graph, features.transform(graph)) for graph in graphs]
        if not isinstance(data, Data):  # batching needs dense features; those of a single graph may be sparse
            for graph in ready:
                graph.x = graph.x.to_dense()
        return ready, [ready[i] for i in indices]

    def _batches(self, graphs: Sequence[Data]) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(graphs), _BATCH):
            yield self._inputs(Batch.from_data_list(list(graphs[start : start + _BATCH])))

    @torch.no_grad()
    def _infer(self, model: Classifier, batches: Iterator[tuple[Any, ...]]) -> None:
        outputs = [(model(*inputs), model.embed(*inputs)) for inputs in batches]
        self._scores, self._embeddings = (torch.cat(parts) for parts in zip(*outputs, strict=True))

    def embeddings(self) -> Tensor:
        """``[items, width]`` the last hidden layer."""
        return self._embeddings
