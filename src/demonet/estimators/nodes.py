"""DEMONetClassifier: the nodes of a graph, classified the way scikit-learn does it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted
from torch_geometric.data import Data

from demonet.checks import check_split
from demonet.data.read import read_graph
from demonet.data.splits import Split
from demonet.errors import DemonetError
from demonet.estimators.base import DEMONetEstimator, probabilities
from demonet.estimators.explain import Explanation, explain_node
from demonet.estimators.node_ids import find_nodes, labels_by_place, own_labels
from demonet.estimators.targets import encode_targets
from demonet.nn.models import NodeDEMONet
from demonet.nn.prepared import GraphInput
from demonet.train.loop import Epoch
from demonet.train.presets import preset
from demonet.train.problem import labels
from demonet.train.recipes import family_of, train_nodes


class DEMONetClassifier(DEMONetEstimator):
    """DEMO-Net for the nodes of a graph, as a scikit-learn classifier and transformer.

    ``X`` is a list of node ids, as the graph has them, so that scikit-learn's searches and splits work on nodes. A PyG
    ``Data`` in place of ``X`` is the short form: its nodes, and for ``fit`` and ``score`` its labels in ``y``, -1 for
    unlabelled. ``graph=`` in ``predict``, ``predict_proba``, ``transform`` and ``score`` is another graph than the
    fitted one; degrees never seen fall back on what is shared.

    Args:
        graph: Anything that :func:`~demonet.data.read_graph` reads: a file, a PyG Data, a NetworkX graph, a SciPy
            matrix. Attributes are read from a Data's ``x``: ``graph=read_graph("edges.csv", features="f.csv")``.
        preset: ``"default"``, ``"paper"`` or ``"authors"``: features, model and training together.
        scheme: ``"weight"``, ``"hash"`` or ``"smooth"``; as the preset says if None, and so are the next five.
        features: What nodes know at first, as :class:`~demonet.data.FeatureMap` names it.
        hidden: Width of every hidden layer.
        lr: Learning rate.
        epochs: At most this many.
        patience: Stop after so many epochs without an improvement.
        validation_fraction: Share of the labelled nodes that is held out to choose the epoch.
        class_weight: None, ``"balanced"``, or a dict from class to weight: how much a node of each class counts, in the
            loss and in the accuracy that chooses the epoch.
        directed: Whether arcs are one-way; as :func:`~demonet.data.read_graph` decides if None.
        random_state: Where all randomness comes from, a whole number.
        device: ``"cpu"``, or ``"auto"`` for a GPU where there is one.
        verbose: Show progress.

    Attributes:
        classes_: The classes, sorted: the columns of ``predict_proba``.
        n_features_in_: Attributes of a node in the fitted graph, 0 where it has none.
        graph_: The fitted graph, as read.
        model_, features_, preset_: The network, its feature map, and how they were made.
        history_: The learning curves.
        split_: Which nodes, by their place in ``graph_``, were trained on and which chose the epoch.

    >>> import networkx as nx
    >>> club = nx.karate_club_graph()
    >>> known = {0: "Hi", 1: "Hi", 2: "Hi", 3: "Hi", 32: "Officer", 33: "Officer", 31: "Officer", 30: "Officer"}
    >>> classifier = DEMONetClassifier(graph=club, epochs=20).fit(list(known), list(known.values()))
    >>> classifier.predict([33]), classifier.predict_proba().shape, classifier.transform().shape
    (array(['Officer'], dtype='<U7'), (34, 2), (34, 64))
    """

    model_: NodeDEMONet

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DEMONetEstimator._parameter_constraints,
        "directed": ["boolean", None],
    }

    def __init__(
        self,
        graph: Any = None,
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
        directed: bool | None = None,
        random_state: int = 0,
        device: str = "cpu",
        verbose: bool = False,
    ) -> None:
        self.graph = graph
        self.preset = preset
        self.scheme = scheme
        self.features = features
        self.hidden = hidden
        self.lr = lr
        self.epochs = epochs
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.class_weight = class_weight
        self.directed = directed
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on some nodes of the graph; all its edges are known, these labels are.

        Args:
            X: Node ids; or a Data with labels in ``y``, and then no ``graph`` and no ``y`` beside it.
            y: One class for each id, of any type.
        """
        self._check_parameters()
        if not isinstance(X, Data):
            data = self._read(self.graph)
            return self._fit(data, find_nodes(data, X), y)
        if self.graph is not None or y is not None:
            raise DemonetError("a graph as X, and graph= or y beside it", hint="fit(node_ids, y), or fit(data) alone")
        rows, y = own_labels(X)
        return self._fit(self._read(X), rows, y)

    def fit_split(
        self,
        data: Data,
        split: Split,
        *,
        on_epoch: Callable[[Epoch], None] | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Train on a split of one's own: nothing more is held out, and its test part stays unseen.

        Args:
            data: The graph, with labels in ``y``.
            split: Who is trained on and who chooses the epoch, by their place in ``data``.
            on_epoch: Told about every finished epoch.
            checkpoint: Where the state is saved every so often; training goes on from one that is there.
        """
        self._check_parameters()
        check_split(split, labels(data))
        rows, y = own_labels(data)
        return self._fit(self._read(data), rows, y, split, on_epoch, checkpoint)

    def predict(self, X: Any = None, *, graph: Any = None) -> np.ndarray:
        """The class of each node: those of ``X``, all if None, of the fitted graph or of another."""
        probability = self.predict_proba(X, graph=graph)
        return self.classes_[probability.argmax(1)]

    @torch.no_grad()
    def predict_proba(self, X: Any = None, *, graph: Any = None) -> np.ndarray:
        """``[nodes, classes]`` probabilities."""
        data, rows = self._locate(X, graph)
        return probabilities(self.model_(self._prepare(data)))[rows]

    @torch.no_grad()
    def transform(self, X: Any = None, *, graph: Any = None) -> np.ndarray:
        """``[nodes, width]`` embeddings, the paper's ``e_v``: what the head reads of each node.

        A network without hidden layers (``default`` on graphs with attributes) has its scores for an embedding.
        """
        data, rows = self._locate(X, graph)
        read = self.model_.embed if len(self.model_.layers) else self.model_
        return read(self._prepare(data)).cpu().numpy()[rows]

    def score(self, X: Any = None, y: Any = None, sample_weight: Any = None, *, graph: Any = None) -> float:
        """Accuracy on the nodes ``X`` with classes ``y``, or on the labelled nodes of a Data."""
        if isinstance(X, Data) and y is None and graph is None:
            rows, y = own_labels(X)
            return float(accuracy_score(y, self.predict(X)[rows], sample_weight=sample_weight))
        if y is None:
            raise DemonetError("a score needs y", hint="score(node_ids, y), or score(data) with labels in data.y")
        return float(accuracy_score(y, self.predict(X, graph=graph), sample_weight=sample_weight))

    def explain(self, node: Any, *, graph: Any = None, epochs: int = 100) -> Explanation:
        """Which arcs, features and parts of the network moved the prediction for one node.

        Args:
            node: Its id.
            graph: Another graph than the fitted one.
            epochs: Steps of PyG's GNNExplainer; its seed is ``random_state``.
        """
        data, rows = self._locate([node], graph)
        x = self.features_.transform(data)
        return explain_node(
            self.model_, self.features_, data, x, int(rows[0]), self.classes_, epochs, self.random_state
        )

    @classmethod
    def load(cls, path: str | Path, graph: Any = None) -> Self:
        """What :meth:`save` wrote, beside a graph; without one, each call of ``predict`` names its own."""
        estimator = cls._restore(path)
        if graph is not None:
            estimator.graph = graph
            estimator.graph_ = estimator._read(graph)
        return estimator

    def _fit(
        self,
        data: Data,
        rows: np.ndarray,
        y: Any,
        split: Split | None = None,
        on_epoch: Callable[[Epoch], None] | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        classes, codes = encode_targets(y, len(rows))
        data.y = torch.from_numpy(labels_by_place(data, rows, classes, codes))
        settled, split = self._settle(family_of(data)), split or self._hold_out(data.y)
        weights = self._class_weights(classes, data.y, split)
        with self._progress(settled.train.epochs, on_epoch) as told:
            trained = train_nodes(
                data.to(self._device()),
                split,
                settled,
                seed=int(self.random_state),
                class_weight=weights,
                on_epoch=told,
                checkpoint=checkpoint,
            )
        del data.y
        self._keep(trained, classes, split, 0 if data.x is None else int(data.x.size(1)))
        self.graph_ = data.cpu()
        return self

    def _read(self, graph: Any) -> Data:
        """The graph without its labels: those are another matter."""
        if graph is None:
            raise DemonetError("there is no graph", hint=f"{type(self).__name__}(graph=...), or a Data in place of X")
        if isinstance(graph, Data):
            graph = Data(**{name: value for name, value in graph.to_dict().items() if name != "y"})
        data = read_graph(graph, self_loops=preset(self.preset, "nodes").self_loops, directed=self.directed)
        if data.num_nodes == 0:
            raise DemonetError("the graph has no nodes")
        return data

    def _locate(self, X: Any, graph: Any) -> tuple[Data, np.ndarray]:
        """The graph that is meant, and the places of the nodes in it."""
        check_is_fitted(self, "model_")
        if isinstance(X, Data):
            if graph is not None:
                raise DemonetError("two graphs, one as X and one as graph=", hint="pass one of them")
            X, graph = None, X
        if graph is None and not hasattr(self, "graph_"):
            raise DemonetError("a loaded model has no graph of its own", hint="load(path, graph=...) or graph=... here")
        data = self.graph_ if graph is None else self._read(graph)
        self._check_attributes(data)
        return data, np.arange(int(data.num_nodes)) if X is None else find_nodes(data, X)

    def _prepare(self, data: Data) -> GraphInput:
        data = data.clone().to(next(self.model_.parameters()).device)
        x = self.features_.transform(data)
        return self.model_.prepare(x, data.edge_index, edge_weight=data.get("edge_weight"))
