"""DEMONetGraphClassifier: whole graphs, classified the way scikit-learn does it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch_geometric.data import Batch, Data

from demonet.checks import check_split
from demonet.data.read import read_graph, read_graphs
from demonet.data.splits import Split
from demonet.errors import DemonetError
from demonet.estimators.base import DEMONetEstimator, probabilities
from demonet.estimators.targets import encode_targets
from demonet.nn.models import GraphDEMONet
from demonet.train.loop import Epoch
from demonet.train.presets import Preset, preset
from demonet.train.problem import labels
from demonet.train.recipes import prepare_batch, replace_features, train_graphs

BATCH = 512  # graphs that are predicted at a time: memory, not the answer, depends on it


class DEMONetGraphClassifier(DEMONetEstimator):
    """DEMO-Net for whole graphs, as a scikit-learn classifier and transformer.

    ``X`` is a list of graphs, each in any form that :func:`~demonet.data.read_graph` takes, a
    :class:`~demonet.data.GraphSet`, or a folder or file that :func:`~demonet.data.read_graphs` reads. Edges are
    undirected. Graphs without attributes have the one-hot degree in their place.

    Args:
        preset: ``"default"``, ``"paper"`` or ``"authors"``: features, model and training together.
        scheme: ``"weight"``, ``"hash"`` or ``"smooth"``; as the preset says if None, and so are the next five.
        features: What nodes know at first, as :class:`~demonet.data.FeatureMap` names it.
        hidden: Width of every hidden layer.
        lr: Learning rate.
        epochs: At most this many.
        patience: Stop after so many epochs without an improvement.
        validation_fraction: Share of the labelled graphs that is held out to choose the epoch.
        class_weight: None, ``"balanced"``, or a dict from class to weight: how much a graph of each class counts, in
            the loss and in the accuracy that chooses the epoch.
        random_state: Where all randomness comes from, a whole number.
        device: ``"cpu"``, or ``"auto"`` for a GPU where there is one.
        verbose: Show progress.

    Attributes:
        classes_: The classes, sorted: the columns of ``predict_proba``.
        n_features_in_: Attributes of a node in training, 0 where there were none.
        model_, features_, preset_: The network, its feature map, and how they were made.
        history_: The learning curves.
        split_: Which of the labelled graphs were trained on and which chose the epoch.

    >>> import networkx as nx
    >>> graphs = [nx.cycle_graph(n) for n in range(4, 12)] + [nx.star_graph(n) for n in range(4, 12)]
    >>> classifier = DEMONetGraphClassifier(epochs=30).fit(graphs, ["cycle"] * 8 + ["star"] * 8)
    >>> classifier.predict([nx.cycle_graph(20), nx.star_graph(9)])
    array(['cycle', 'star'], dtype='<U5')
    """

    model_: GraphDEMONet

    def __init__(
        self,
        *,
        preset: str = "default",
        scheme: str | None = None,
        features: str | None = None,
        hidden: int | None = None,
        lr: float | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        validation_fraction: float = 0.2,
        class_weight: str | dict[Any, float] | None = None,
        random_state: int = 0,
        device: str = "cpu",
        verbose: bool = False,
    ) -> None:
        self.preset = preset
        self.scheme = scheme
        self.features = features
        self.hidden = hidden
        self.lr = lr
        self.epochs = epochs
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.class_weight = class_weight
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on graphs with classes ``y``, or with their own; those labelled -1 are left out.

        Args:
            X: The graphs.
            y: One class for each, of any type; each graph's own ``y`` if None.
        """
        self._check_parameters()
        listed = _listed(X)
        if y is None:
            rows, y = _own_labels(listed)
            listed = [listed[row] for row in rows]
        return self._fit(self._read(listed), y)

    def fit_split(
        self,
        graphs: Sequence[Data],
        split: Split,
        *,
        on_epoch: Callable[[Epoch], None] | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Train on a split of one's own: nothing more is held out, and its test part stays unseen.

        Args:
            graphs: The graphs, each with its label in ``y``.
            split: Who is trained on and who chooses the epoch, by their place in ``graphs``.
            on_epoch: Told about every finished epoch.
            checkpoint: Where the state is saved every so often; training goes on from one that is there.
        """
        self._check_parameters()
        listed = _listed(graphs)
        check_split(split, labels(listed))
        rows, y = _own_labels(listed)
        return self._fit(self._read(listed), y, rows, split, on_epoch, checkpoint)

    def _fit(
        self,
        graphs: list[Data],
        y: Any,
        rows: np.ndarray | None = None,
        split: Split | None = None,
        on_epoch: Callable[[Epoch], None] | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        rows = np.arange(len(graphs)) if rows is None else rows
        classes, codes = encode_targets(y, len(rows))
        numbers = torch.full((len(graphs),), -1)
        numbers[torch.from_numpy(rows)] = torch.from_numpy(codes)
        for graph, number in zip(graphs, numbers, strict=True):
            graph.y = number.view(1)
        attributes = _attributes(graphs[0])
        split, settled = split or self._hold_out(numbers), self._settle_features(attributes)
        with self._progress(settled.train.epochs, on_epoch) as told:
            trained = train_graphs(
                [graph.to(self._device()) for graph in graphs],
                split,
                settled,
                seed=int(self.random_state),
                class_weight=self._class_weights(classes, numbers, split),
                on_epoch=told,
                checkpoint=checkpoint,
            )
        self._keep(trained, classes, split, attributes)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The class of each graph."""
        probability = self.predict_proba(X)
        return self.classes_[probability.argmax(1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """``[graphs, classes]`` probabilities."""
        check_is_fitted(self, "model_")
        return probabilities(self._in_batches(self.model_, self._read(_listed(X))))

    def transform(self, X: Any) -> np.ndarray:
        """``[graphs, width]`` embeddings, the paper's ``g_i``: the readout of each graph (Eq. 12)."""
        check_is_fitted(self, "model_")
        return self._in_batches(self.model_.embed, self._read(_listed(X))).cpu().numpy()

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy on graphs with classes ``y``, or on those that have a label of their own."""
        check_is_fitted(self, "model_")
        listed = _listed(X)
        if y is None:
            rows, y = _own_labels(listed)
            listed = [listed[row] for row in rows]
        return float(accuracy_score(y, self.predict(listed), sample_weight=sample_weight))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """What :meth:`save` wrote."""
        return cls._restore(path)

    def _settle_features(self, attributes: int) -> Preset:
        """The preset; where nodes have no attributes, the paper puts the one-hot degree in their place."""
        settled = self._settle("graphs")
        if attributes or self.features is not None:
            return settled
        return replace(settled, features=settled.features.replace("attributes", "degree-onehot"))

    def _read(self, listed: list[Any]) -> list[Data]:
        """The graphs as checked Data, without their labels."""
        self_loops, read = preset(self.preset, "graphs").self_loops, []
        for number, graph in enumerate(listed):
            if isinstance(graph, Data):
                graph = Data(**{name: value for name, value in graph.to_dict().items() if name != "y"})
            try:
                read.append(read_graph(graph, self_loops=self_loops, directed=False))
                if read[-1].num_nodes == 0:
                    raise DemonetError("has no nodes")
            except DemonetError as error:
                raise DemonetError(f"graph {number}: {error}") from None
        for number, graph in enumerate(read[1:], 1):
            if _attributes(graph) != _attributes(read[0]):
                problem = f"graph {number} has {_attributes(graph)} attributes a node, graph 0 {_attributes(read[0])}"
                raise DemonetError(problem, hint="the same columns in every graph")
        return read

    @torch.no_grad()
    def _in_batches(self, function: Callable[..., Tensor], graphs: list[Data]) -> Tensor:
        self._check_attributes(graphs[0], "graph 0")
        device = next(self.model_.parameters()).device
        ready = [replace_features(graph, self.features_.transform(graph)).to(device) for graph in graphs]
        batches = [Batch.from_data_list(ready[start : start + BATCH]) for start in range(0, len(ready), BATCH)]
        return torch.cat([function(*prepare_batch(self.model_, batch)) for batch in batches])


def _listed(X: Any) -> list[Any]:
    """The graphs one by one; those of a set know the names of their classes."""
    if isinstance(X, str | Path):
        X = read_graphs(X)
    if isinstance(X, Data) or not hasattr(X, "__iter__"):
        raise DemonetError(f"a {type(X).__name__}, where graphs belong", hint="a list of graphs")
    names = getattr(X, "class_names", None)
    listed = [_named(graph, names) if names else graph for graph in X]
    if not listed:
        raise DemonetError("there are no graphs")
    return listed


def _named(graph: Data, names: list[Any]) -> Data:
    named = Data(**graph.to_dict())
    named.class_names = names
    return named


def _own_labels(listed: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """The labelled graphs, and their classes by name where they have names."""
    if not all(isinstance(graph, Data) for graph in listed):
        raise DemonetError("y is None, and not every graph is a Data with a label of its own", hint="pass y")
    codes = labels(listed).cpu().numpy()
    rows = np.flatnonzero(codes >= 0)
    names = listed[0].get("class_names")
    return rows, codes[rows] if names is None else np.asarray(names)[codes[rows]]


def _attributes(graph: Data) -> int:
    return 0 if graph.x is None else int(graph.x.size(1))
