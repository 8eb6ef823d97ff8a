"""Estimators for the nodes of one graph: a classifier and a regressor with scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch_geometric.data import Data

from demonet.data.ids import Numbering, id_at, ids_of, make_ids
from demonet.data.read import read_graph
from demonet.data.splits import Split
from demonet.ensemble import Progress as Candidate
from demonet.errors import DemonetError
from demonet.estimators.base import DEMONetEstimator, num_attributes
from demonet.estimators.closed_form import ClosedForm, explain_shares
from demonet.estimators.explain import Explanation, explain_node
from demonet.estimators.targets import Array, Classification, Regression, Targets
from demonet.nn.prepared import GraphInput
from demonet.train.loop import Epoch
from demonet.train.presets import preset
from demonet.train.recipes import family_of, train_nodes


class NodeEstimator(DEMONetEstimator):
    """What the estimators of nodes share."""

    graph: Any
    directed: bool | None

    graph_: Data

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DEMONetEstimator._parameter_constraints,
        "directed": ["boolean", None],
    }

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on some nodes of the graph. All edges are used, and the targets of these nodes.

        Args:
            X: Node ids; or a Data with targets in ``y``, and then neither ``graph`` nor ``y``.
            y: One target for each id. Nodes whose target is None or NaN are unlabelled; in the ``y`` of a Data, -1 is
                an unlabelled node of a classification.
        """
        self._check_parameters()
        if not isinstance(X, Data):
            data = self._read(self.graph)
            return self._fit(data, find_nodes(data, X), y)
        if self.graph is not None or y is not None:
            raise DemonetError("X is a graph, and so is graph=, or y is given", hint="fit(node_ids, y) or fit(data)")
        rows, y = self._labelled(X)
        return self._fit(self._read(X), rows, y)

    def fit_split(
        self,
        data: Data,
        split: Split,
        *,
        on_epoch: Callable[[Epoch], None] | None = None,
        checkpoint: str | Path | None = None,
        on_candidate: Callable[[Candidate], None] | None = None,
    ) -> Self:
        """Train on a given split: nothing more is held out, and the test part is not used.

        Args:
            data: The graph, with targets in ``y``.
            split: Training and validation nodes, by their index in ``data``.
            on_epoch: Callback after every epoch.
            checkpoint: File to which the state is saved; training resumes from it if it exists.
            on_candidate: Callback before and after every candidate of ``model="auto"``.
        """
        self._check_parameters()
        rows, y = self._labelled(data, split)
        return self._fit(self._read(data), rows, y, split, on_epoch, checkpoint, on_candidate)

    def predict(self, X: Any = None, *, graph: Any = None) -> Array:
        """Predictions for the nodes ``X``, or for all, of the fitted graph or of another.

        A classifier gives a class for each node, or a 0/1 table if it was fitted on one; a regressor gives values in
        the units of ``y``, ``[nodes]`` or ``[nodes, columns]``.
        """
        return self._decide(self._outputs(X, graph))

    @torch.no_grad()
    def transform(self, X: Any = None, *, graph: Any = None) -> Array:
        """``[nodes, width]`` embeddings, ``e_v`` in the paper: the input of the head.

        For a network without hidden layers (preset ``default`` on graphs with attributes), these are the scores. With
        ``model="kernel"`` they are the decision function, with ``"auto"`` the probabilities of all members.
        """
        data, rows = self._locate(X, graph)
        if isinstance(self.model_, ClosedForm):
            return self.model_.embed(data, rows)
        read = self.model_.embed if len(self.model_.layers) else self.model_
        return read(self._prepare(data)).cpu().numpy()[rows]

    def score(self, X: Any = None, y: Any = None, sample_weight: Any = None, *, graph: Any = None) -> float:
        """Accuracy or R² on the nodes ``X`` with targets ``y``, or on the labelled nodes of a Data."""
        if isinstance(X, Data) and y is None and graph is None:
            rows, y = self._labelled(X)
            return self._score(y, self.predict(X)[rows], sample_weight)
        if y is None:
            raise DemonetError("score needs y", hint="score(node_ids, y), or score(data) with targets in data.y")
        return self._score(y, self.predict(X, graph=graph), sample_weight)

    def explain(self, node: Any, *, graph: Any = None, epochs: int = 100, output: int | None = None) -> Explanation:
        """Which edges, features and terms of the network led to the prediction for one node.

        With ``model="kernel"``, its ``shares`` are the terms of the kernel, which add up to the score exactly.

        Args:
            node: Its id.
            graph: Another graph than the fitted one.
            epochs: Steps of PyG's GNNExplainer; its seed is ``random_state``.
            output: The class, label or target column to explain, by its index (for a class, in ``classes_``); by
                default the one with the highest score.
        """
        data, rows = self._locate([node], graph)
        classes = getattr(self, "classes_", None)
        if isinstance(self.model_, ClosedForm):
            return explain_shares(self.model_, data, int(rows[0]), classes, output)
        x = self.features_.transform(data)
        return explain_node(
            self.model_,
            self.objective_,
            self.features_,
            data,
            x,
            int(rows[0]),
            classes,
            epochs=epochs,
            seed=self.random_state,
            output=output,
        )

    def shares(self, X: Any = None, *, graph: Any = None) -> dict[str, Array]:
        """The decision function of ``model="kernel"``, split exactly into the terms of the kernel.

        Keys: ``seed``, ``shared``, ``degree``, ``bias``, ``structure``, ``constant``, and ``map`` for what a nonlinear
        map does not separate. Each array is ``[nodes, columns]``; together they are ``transform``, or of a regression
        ``predict``.
        """
        data, rows = self._locate(X, graph)
        return self._closed_form("shares").shares(data, rows)

    @classmethod
    def load(cls, path: str | Path, graph: Any = None) -> Self:
        """Load what :meth:`save` or ``demonet fit`` wrote. Without a graph, each call of ``predict`` needs one.

        Args:
            path: The file; in the folder of a run it is ``model.safetensors``.
            graph: Anything that :func:`~demonet.data.read_graph` reads. For a file with named columns or attributes,
                pass what ``read_graph(edges, source=..., target=..., features=...)`` returns.
        """
        estimator = cls._restore(path)
        if graph is not None:
            estimator.graph = graph
            estimator.graph_ = estimator._read(graph)
        return estimator

    def _fit(
        self,
        data: Data,
        rows: Array,
        y: Any,
        split: Split | None = None,
        on_epoch: Callable[[Epoch], None] | None = None,
        checkpoint: str | Path | None = None,
        on_candidate: Callable[[Candidate], None] | None = None,
    ) -> Self:
        targets = self._targets(y, len(rows))
        y = targets_by_node(data, rows, targets)
        if self.model != "network":
            self._fit_closed_form(data, y, targets, split, on_candidate, (on_epoch, checkpoint))
            self.n_features_in_, self.graph_ = num_attributes(data), data
            return self
        data.y = y
        settled, split = self._settle(family_of(data)), split or self._hold_out(y)
        self._train(train_nodes, data.to(self._device()), y, targets, settled, split, on_epoch, checkpoint)
        del data.y
        self.n_features_in_, self.graph_ = num_attributes(data), data.cpu()
        return self

    @torch.no_grad()
    def _outputs(self, X: Any = None, graph: Any = None) -> Array:
        data, rows = self._locate(X, graph)
        if isinstance(self.model_, ClosedForm):
            return self.model_.outputs(data, rows)
        return self._activate(self.model_(self._prepare(data)))[rows]

    def _read(self, graph: Any) -> Data:
        """The graph without its targets."""
        if graph is None:
            raise DemonetError("there is no graph", hint=f"{type(self).__name__}(graph=...), or a Data in place of X")
        if isinstance(graph, Data):
            graph = Data(**{name: value for name, value in graph.to_dict().items() if name != "y"})
        data = read_graph(graph, self_loops=preset(self.preset, "nodes").self_loops, directed=self.directed)
        if data.num_nodes == 0:
            raise DemonetError("the graph has no nodes")
        return data

    def _locate(self, X: Any, graph: Any) -> tuple[Data, Array]:
        """The graph, and the indices of the nodes in it."""
        check_is_fitted(self, "model_")
        if isinstance(X, Data):
            if graph is not None:
                raise DemonetError("two graphs, one as X and one as graph=", hint="pass one of them")
            X, graph = None, X
        if graph is None and not hasattr(self, "graph_"):
            raise DemonetError("a loaded model has no graph", hint="load(path, graph=...), or pass graph=... here")
        data = self.graph_ if graph is None else self._read(graph)
        self._check_attributes(data)
        return data, np.arange(int(data.num_nodes)) if X is None else find_nodes(data, X)

    def _prepare(self, data: Data) -> GraphInput:
        data = data.clone().to(next(self.model_.parameters()).device)
        x = self.features_.transform(data)
        return self.model_.prepare(x, data.edge_index, edge_weight=data.get("edge_weight"))


class DEMONetClassifier(Classification, NodeEstimator):
    """DEMO-Net for the nodes of a graph, as a scikit-learn classifier and transformer.

    ``X`` is a list of node ids, as the graph has them, so that scikit-learn's searches and splits work on nodes. A PyG
    ``Data`` in place of ``X`` is the short form: its nodes, and for ``fit`` and ``score`` its labels in ``y``, -1 for
    unlabelled. ``graph=`` in ``predict``, ``predict_proba``, ``transform`` and ``score`` is another graph than the
    fitted one. What happens to degrees that were not seen in training depends on the scheme (``docs/theory.md``).

    ``y`` has one class of any type for each node, None or NaN for unlabelled; or it is a table ``[nodes, labels]`` of 0
    and 1, NaN or -1 for unknown entries, for a multi-label classification.

    Args:
        graph: Anything that :func:`~demonet.data.read_graph` reads: a file, a PyG Data, a NetworkX graph, a SciPy
            matrix. Attributes are read from the ``x`` of a Data: ``graph=read_graph("edges.csv", features="f.csv")``.
        model: ``"network"``: a DEMO-Net, trained; ``"kernel"``: its closed form, the degree-specific kernel machine, in
            seconds; ``"auto"``: several models, weighted on held-out items and fitted again on all labelled ones. Only
            a network reads the parameters from ``preset`` to ``patience``, ``metric`` and ``class_weight``.
        effort: Of ``"auto"``: ``"quick"``, ``"standard"`` or ``"best"``.
        time_limit: Of ``"auto"``: seconds, a rough limit on the fit.
        preset: ``"strong"``, ``"default"`` (which the tables of results have), ``"paper"`` or ``"authors"``: features,
            model and training together.
        scheme: ``"weight"``, ``"hash"``, ``"smooth"`` or another registered scheme; None for the preset's value,
            also in the next five.
        features: The node features, see :class:`~demonet.data.FeatureMap`.
        hidden: Width of the hidden layers.
        lr: Learning rate.
        epochs: The maximum number of epochs.
        patience: Stop after so many epochs without an improvement.
        validation_fraction: Share of the labelled nodes that is held out to choose the epoch.
        metric: The validation metric that chooses the epoch: ``"accuracy"``, ``"balanced"``, ``"macro-f1"``, ``"auc"``,
            ``"average-precision"`` (for tables of labels) or ``"log-loss"``. If None, the loss chooses it in the preset
            ``"strong"``; in the others, accuracy, or the average precision for tables of labels.
        class_weight: None, ``"balanced"``, or a dict from class to weight: the weight of a node of each class in the
            loss and in the validation metric. Not for tables of labels.
        directed: Whether edges are directed; as :func:`~demonet.data.read_graph` decides if None.
        random_state: Seed of all random numbers, an integer.
        device: ``"cpu"``, or ``"auto"`` for a GPU if there is one.
        verbose: Show progress.

    Attributes:
        classes_: The sorted classes, or the indices of the labels: the columns of ``predict_proba``.
        n_features_in_: Number of attributes of a node in the fitted graph, 0 if it has none.
        graph_: The fitted graph, as read.
        model_: The network; for the other models a wrapper with a ``machine`` or an ``ensemble``.
        features_, preset_: The feature map and the configuration of a network.
        candidates_: Of ``"auto"``: the table of candidates, each a dict with name, validation log-loss and accuracy
            with intervals, weight, seconds, status and reason.
        objective_: The objective; ``objective_.task`` is ``"classify"`` or ``"multilabel"``.
        history_: The learning curves of a network.
        split_: Training and validation nodes, by their index in ``graph_``.

    >>> import networkx as nx
    >>> club = nx.karate_club_graph()
    >>> known = {0: "Hi", 1: "Hi", 2: "Hi", 3: "Hi", 32: "Officer", 33: "Officer", 31: "Officer", 30: "Officer"}
    >>> classifier = DEMONetClassifier(graph=club, epochs=20).fit(list(known), list(known.values()))
    >>> classifier.predict([33]), classifier.predict_proba().shape, classifier.transform().shape
    (array(['Officer'], dtype='<U7'), (34, 2), (34, 64))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NodeEstimator._parameter_constraints,
        **Classification._parameter_constraints,
    }

    def __init__(
        self,
        graph: Any = None,
        *,
        model: str = "network",
        effort: str = "standard",
        time_limit: float | None = None,
        preset: str = "strong",
        scheme: str | None = None,
        features: str | None = None,
        hidden: int | None = None,
        lr: float | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        validation_fraction: float = 0.2,
        metric: str | None = None,
        class_weight: str | dict[Any, float] | None = None,
        directed: bool | None = None,
        random_state: int = 0,
        device: str = "cpu",
        verbose: bool = False,
    ) -> None:
        self._store(locals())

    def predict_proba(self, X: Any = None, *, graph: Any = None) -> Array:
        """``[nodes, classes]`` probabilities; rows sum to 1 unless the columns are labels."""
        return self._outputs(X, graph)

    score = NodeEstimator.score


class DEMONetRegressor(Regression, NodeEstimator):
    """DEMO-Net for numbers at the nodes of a graph, as a scikit-learn regressor and transformer.

    ``y`` has one number for each node, or one row of a table ``[nodes, columns]``; NaN is an unknown value. Targets are
    standardised for training, and predictions are in the units of ``y``. ``X``, ``graph`` and all other parameters and
    attributes are those of :class:`DEMONetClassifier`, without classes and their weights.

    Args:
        graph: See :class:`DEMONetClassifier`.
        model: ``"network"`` or ``"kernel"``, for one target column.
        preset, scheme, features, hidden, lr, epochs, patience, validation_fraction: See
            :class:`DEMONetClassifier`.
        metric: The validation metric that chooses the epoch: ``"rmse"``, ``"mae"`` or ``"r2"``. If None, the loss in
            the preset ``"strong"``, the root mean squared error in the others.
        loss: ``"mse"`` or ``"mae"``: squared or absolute error.
        directed, random_state, device, verbose: See :class:`DEMONetClassifier`.

    >>> import networkx as nx
    >>> star = nx.star_graph(9)
    >>> regressor = DEMONetRegressor(graph=star, epochs=50).fit(list(star), [star.degree(node) for node in star])
    >>> regressor.predict([0, 1]).shape
    (2,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NodeEstimator._parameter_constraints,
        **Regression._parameter_constraints,
    }

    def __init__(
        self,
        graph: Any = None,
        *,
        model: str = "network",
        preset: str = "strong",
        scheme: str | None = None,
        features: str | None = None,
        hidden: int | None = None,
        lr: float | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        validation_fraction: float = 0.2,
        metric: str | None = None,
        loss: str = "mse",
        directed: bool | None = None,
        random_state: int = 0,
        device: str = "cpu",
        verbose: bool = False,
    ) -> None:
        self._store(locals())

    score = NodeEstimator.score


def find_nodes(data: Data, ids: Any) -> Array:
    """The indices of nodes in a graph, by their ids."""
    array = np.asarray(ids)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DemonetError(f"node ids of shape {array.shape}", hint="pass a flat list of ids, or a graph as graph=")
    wanted = make_ids(array.tolist())
    own = ids_of(data)
    numbering = Numbering(np.array(own, dtype=object if isinstance(own[0], str) else np.int64))
    rows = numbering.find(wanted)
    if (rows < 0).any():
        unknown = id_at(wanted, int(np.flatnonzero(rows < 0)[0]))
        raise DemonetError(f"no node {unknown!r} in the graph ({int((rows < 0).sum())} in total)")
    return rows


def targets_by_node(data: Data, rows: Array, targets: Targets) -> Tensor:
    """Targets of all nodes, -1 or NaN for those not in ``rows``; a node listed twice must have the same target."""
    found = targets.y.numpy()
    empty = np.nan if targets.y.is_floating_point() else -1
    y = np.full((int(data.num_nodes), *found.shape[1:]), empty, dtype=found.dtype)
    y[rows[::-1]] = found[::-1]
    differs = (y[rows] != found) & ~((y[rows] != y[rows]) & (found != found))
    clash = np.flatnonzero(differs.reshape(len(rows), -1).any(1))
    if clash.size:
        row = int(rows[clash[0]])
        values = [y[row].tolist(), found[clash[0]].tolist()]
        if found.ndim == 1 and targets.classes is not None:
            values = ["unlabelled" if code < 0 else targets.classes.tolist()[code] for code in values]
        raise DemonetError(f"node {ids_of(data)[row]!r} is labelled {values[1]!r}, and {values[0]!r} before")
    return torch.from_numpy(y)
