"""Estimators for the nodes of one graph: a classifier and a regressor with scikit-learn's interface."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch_geometric.data import Data

from demonet.data.ids import Numbering, id_at, ids_of, make_ids
from demonet.data.read import read_graph
from demonet.data.splits import Split
from demonet.ensemble import Progress as Candidate
from demonet.errors import DemonetError
from demonet.estimators.base import DEMONetEstimator, has_weights
from demonet.estimators.closed_form import ClosedForm, explain_shares, model_for
from demonet.estimators.explain import Explanation, explain_node
from demonet.estimators.targets import Array, Classification, Regression, Targets
from demonet.nn.blocks import ROWS, WholeGraph
from demonet.nn.prepared import GraphInput
from demonet.train.loop import Epoch
from demonet.train.presets import preset
from demonet.train.recipes import Trained, family_of, train_nodes


class NodeEstimator(DEMONetEstimator):
    """What the estimators of nodes share."""

    graph: Any
    attributes: Any
    batch_size: int | None
    neighbours: int | None
    directed: bool | None

    graph_: Data

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DEMONetEstimator._parameter_constraints,
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "neighbours": [Interval(Integral, 1, None, closed="left"), None],
        "directed": ["boolean", None],
    }

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Train on some nodes of the graph. All edges are used, and the targets of these nodes.

        Args:
            X: Node ids; or None, if ``y`` has them; or a Data with targets in ``y``, and then neither ``graph`` nor
                ``y``. If it has a ``train_mask``, only those nodes train, and those of its ``val_mask`` validate.
            y: One target for each id; or a dict from id to target, or without ``X`` a pandas Series with ids as its
                index. Nodes whose target is missing (None, NaN, a word such as ``"nan"`` or ``"NA"``) are unlabelled.
                -1 is a class like any other; only in a torch tensor, such as the ``y`` of a Data, it is an unlabelled
                node of a classification.
        """
        self._check_parameters()
        if not isinstance(X, Data):
            data = self._read(self.graph, learn=True)
            X, y = _by_id(X, y)
            return self._fit(data, find_nodes(data, X), y)
        if self.graph is not None or y is not None:
            raise DemonetError("X is a graph, and so is graph=, or y is given", hint="fit(node_ids, y) or fit(data)")
        split = Split.from_masks(X) if X.get("train_mask") is not None else None
        if split is not None and split.val.numel():
            return self.fit_split(X, split)
        rows, y = self._labelled(X)
        if split is not None:
            chosen = np.isin(rows, split.train.numpy())
            rows, y = rows[chosen], y[chosen]
        return self._fit(self._read(X, learn=True), rows, y)

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
            checkpoint: Where the state is saved; training resumes from it if it exists. It is a file for a network, and
                for ``model="auto"`` a folder with a file for every finished candidate.
            on_candidate: Callback before and after every candidate of ``model="auto"``.
        """
        self._check_parameters()
        rows, y = self._labelled(data, split)
        return self._fit(self._read(data, learn=True), rows, y, split, on_epoch, checkpoint, on_candidate)

    def predict(self, X: Any = None, *, graph: Any = None) -> Array:
        """Predictions for the nodes ``X``, or for all, of the fitted graph or of another.

        A classifier gives a class for each node, or a 0/1 table if it was fitted on one; a regressor gives values in
        the units of ``y``, ``[nodes]`` or ``[nodes, columns]``.
        """
        return self._decide(self._outputs(X, graph))

    def transform(self, X: Any = None, *, graph: Any = None) -> Array:
        """``[nodes, width]`` embeddings, ``e_v`` in the paper: the input of the head.

        For a network without hidden layers (preset ``default`` on graphs with attributes), these are the scores. With
        ``model="kernel"`` they are the decision function, with ``"auto"`` the probabilities of the members, at most 256
        columns. See ``set_output`` for data frames.
        """
        data, rows = self._locate(X, graph)
        ids = ids_of(data)
        return self._framed(self._embed(data, rows), [ids[row] for row in rows])

    def _width(self) -> int:
        data = getattr(self, "graph_", None)
        if data is None:
            names = len(self.columns_.names) if hasattr(self, "columns_") else self.n_features_in_
            x = torch.zeros(2, names) if names else None
            data = Data(x=x, edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        return int(self._embed(data, np.arange(1)).shape[1])

    @torch.no_grad()
    def _embed(self, data: Data, rows: Array) -> Array:
        if isinstance(self.model_, ClosedForm):
            return self._finite(self.model_.embed(data, rows), data, rows)
        read = self.model_.embed if len(self.model_.layers) else self.model_
        return self._finite(read(self._prepare(data)).cpu().numpy()[rows], data, rows)

    @torch.no_grad()
    def _outputs_and_embedding(self, data: Data) -> tuple[Array, Array]:
        """What :meth:`_outputs` and :meth:`_embed` give for all nodes; a network prepares the graph once for both."""
        if isinstance(self.model_, ClosedForm):
            both = self.model_.outputs_and_embedding(data)
        elif len(self.model_.layers):
            scores, embedding = self.model_.scores_and_embedding(self._prepare(data))
            both = self._activate(scores), embedding.cpu().numpy()
        else:
            scores = self.model_(self._prepare(data))
            both = self._activate(scores), scores.cpu().numpy()
        return self._finite(both[0], data), self._finite(both[1], data)

    def score(self, X: Any = None, y: Any = None, sample_weight: Any = None, *, graph: Any = None) -> float:
        """Accuracy or R² on the nodes ``X`` with targets ``y``, or on the labelled nodes of a Data.

        If the Data has a ``test_mask``, only those nodes count.
        """
        if isinstance(X, Data) and y is None and graph is None:
            rows, y = self._labelled(X)
            if X.get("test_mask") is not None:
                chosen = np.isin(rows, Split.from_masks(X).test.numpy())
                rows, y = rows[chosen], y[chosen]
            return self._score(y, self.predict(X)[rows], sample_weight)
        if y is None:
            raise DemonetError("score needs y", hint="score(node_ids, y), or score(data) with targets in data.y")
        return self._score(y, self.predict(X, graph=graph), sample_weight)

    def explain(self, node: Any, *, graph: Any = None, epochs: int = 100, output: int | None = None) -> Explanation:
        """Which edges, features and terms of the network led to the prediction for one node.

        With ``model="kernel"``, its ``shares`` are the terms of the kernel, which add up to the score exactly. With
        ``model="auto"``, they are those of the kernel machine among the members, for the class that the ensemble
        predicts; without a kernel machine, there is no explanation.

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
    def load(cls, path: str | Path, graph: Any = None, attributes: Any = None) -> Self:
        """Load what :meth:`save` or ``demonet fit`` wrote. Without a graph, each call of ``predict`` needs one.

        Args:
            path: The file; in the folder of a run it is ``model.safetensors``.
            graph: Anything that :func:`~demonet.data.read_graph` reads. For a file with named columns, pass what
                ``read_graph(edges, source=..., target=...)`` returns.
            attributes: Its attributes; a table is encoded as that of training.
        """
        estimator = cls._restore(path)
        estimator.attributes = attributes
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
        recipe: Callable[..., Trained] | None = None,
    ) -> Self:
        targets = self._targets(y, len(rows))
        y = targets_by_node(data, rows, targets)
        self._remember_columns(data)
        self.weighted_ = has_weights([data])
        model = model_for(self.model, targets)
        if model != "network":
            self._fit_closed_form(model, data, y, targets, split, on_candidate, on_epoch, checkpoint)
            self.graph_ = data
            return self
        data.y = y
        settled, split = self._settle(family_of(data), [data]), split or self._hold_out(y)
        recipe = recipe or partial(train_nodes, batch_size=self.batch_size, neighbours=self.neighbours)
        self._train(recipe, data.to(self._device()), y, targets, settled, split, on_epoch, checkpoint)
        del data.y
        self.graph_ = data.cpu()
        return self

    @torch.no_grad()
    def _outputs(self, X: Any = None, graph: Any = None) -> Array:
        data, rows = self._locate(X, graph)
        if isinstance(self.model_, ClosedForm):
            found = self.model_.outputs(data, rows)
        else:
            found = self._activate(self.model_(self._prepare(data)))[rows]
        return self._finite(found, data, rows)

    def _read(self, graph: Any, learn: bool = False) -> Data:
        """The graph without its targets; a table of attributes is encoded as in training, unless it is ``learn``-ed."""
        if graph is None:
            raise DemonetError("there is no graph", hint=f"{type(self).__name__}(graph=...), or a Data in place of X")
        if isinstance(graph, Data):
            graph = Data(**{name: value for name, value in graph.to_dict().items() if name != "y"})
        data = read_graph(
            graph,
            features=None if _has_own(graph) and not learn else self.attributes,
            self_loops=preset(self.preset, "nodes").self_loops,
            directed=self.directed,
            columns=None if learn else getattr(self, "columns_", None),
        )
        if data.num_nodes == 0:
            raise DemonetError("the graph has no nodes")
        if not learn:
            self._match_weights([data])
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
        if graph is not None and not _has_own(graph) and not _named(self.attributes):
            hint = "pass graph=read_graph(edges, features=..., columns=estimator.columns_)"
            raise DemonetError("attributes= are those of the training graph, not of another one", hint=hint)
        data = self.graph_ if graph is None else self._read(graph)
        self._check_attributes(data)
        return data, np.arange(int(data.num_nodes)) if X is None else find_nodes(data, X)

    def _prepare(self, data: Data) -> GraphInput | WholeGraph:
        """What the network is called with: a large graph goes through it in blocks of rows."""
        data = copy.copy(data).to(next(self.model_.parameters()).device)  # to() changes a graph in place
        x = self.features_.transform(data)
        large = x.size(0) > 2 * ROWS
        sums = not large or x.layout != torch.strided  # a block of rows can compute dense sums itself
        graph = self.model_.prepare(x, data.edge_index, edge_weight=data.get("edge_weight"), sums=sums)
        return WholeGraph(graph, once=True) if large else graph


class DEMONetClassifier(Classification, NodeEstimator):
    """DEMO-Net for the nodes of a graph, as a scikit-learn classifier and transformer.

    ``X`` is a list of node ids, as the graph has them, so that scikit-learn's searches and splits work on nodes. A PyG
    ``Data`` in place of ``X`` is the short form: its nodes, and for ``fit`` and ``score`` its labels in ``y``, -1 for
    unlabelled. ``graph=`` in ``predict``, ``predict_proba``, ``transform`` and ``score`` is another graph than the
    fitted one. What happens to degrees that were not seen in training depends on the scheme (``docs/theory.md``).

    ``y`` has one class of any type for each node, None, NaN or a word such as ``"NA"`` for unlabelled; or it is a dict
    or Series from id to class; or a table ``[nodes, labels]`` of 0 and 1, NaN or -1 for unknown entries, for a
    multi-label classification. In classes, -1 is unlabelled only in a torch tensor; elsewhere it is a class.

    Args:
        graph: Anything that :func:`~demonet.data.read_graph` reads: a file, a data frame or list of edges, a PyG Data,
            a NetworkX graph, a SciPy matrix. A Data has its attributes in ``x``.
        attributes: Attributes of the nodes, anything that ``read_graph(features=...)`` reads: a data frame with ids as
            its index, a file, a list of names of node attributes of a NetworkX graph, ``"all"`` of them. Categories,
            missing values and kinds of columns are handled as by ``demonet fit``. They are never read unless named: a
            label may be among them.
        model: ``"auto"``: several models, weighted on held-out items and fitted again on all labelled ones; for tables
            of labels a network, with a warning. ``"kernel"``: the closed form of DEMO-Net, the degree-specific kernel
            machine, in seconds. ``"network"``: a DEMO-Net, trained. Only a network reads the parameters from ``preset``
            to ``neighbours``, and ``class_weight``; with another model they are an error.
        effort: Of ``"auto"``: ``"quick"``, ``"standard"`` or ``"best"``.
        time_limit: Of ``"auto"``: seconds, a rough limit on the fit.
        preset: ``"strong"``, ``"default"`` (which the tables of results have), ``"paper"`` or ``"authors"``: features,
            model and training together.
        scheme: ``"weight"``, ``"hash"``, ``"smooth"`` or another registered scheme; None for the preset's value,
            also in the next five.
        features: The node features, see :class:`~demonet.features.FeatureMap`.
        hidden: Width of the hidden layers.
        lr: Learning rate.
        epochs: The maximum number of epochs.
        patience: Stop after so many epochs without an improvement.
        batch_size: Training nodes of a batch; by default all nodes are one batch, unless they do not fit into memory.
        neighbours: How many neighbours of a node are drawn in a batch, for each layer after the first; all if None.
        validation_fraction: Share of the labelled nodes that is held out for validation.
        metric: The validation metric that chooses the weights of ``"auto"`` or the epoch of a network: ``"accuracy"``,
            ``"balanced"``, ``"macro-f1"``, ``"auc"``, ``"average-precision"`` or ``"log-loss"``. By default
            ``"auto"`` uses log-loss minus accuracy, a network of the preset ``"strong"`` its loss, and other presets
            accuracy, or average precision for tables of labels.
        positive: The positive one of two classes, for ``"average-precision"``; the rarer of the labelled ones if None,
            of equals the last.
        class_weight: None, ``"balanced"``, or a dict from class to weight: the weight of a node of each class in the
            loss and in the validation metric. Not for tables of labels.
        directed: Whether edges are directed; as :func:`~demonet.data.read_graph` decides if None.
        random_state: Seed of all random numbers, an integer.
        device: ``"cpu"``, or ``"auto"`` for a GPU if there is one.
        verbose: Show progress.

    Attributes:
        classes_: The sorted classes, or the indices of the labels: the columns of ``predict_proba``.
        n_features_in_: Number of attributes of a node in the fitted graph, 0 if it has none; of a table, its columns.
        feature_names_in_: Their names, if the attributes are a table with names.
        columns_: What the columns of the table became, a :class:`~demonet.data.Columns`: the way to read another one.
        graph_: The fitted graph, as read.
        weighted_: Whether edges have weights other than 1. If not, those of another graph are not used, with a warning;
            if so, it is a warning that another graph has none.
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
    >>> classifier = DEMONetClassifier(graph=club, effort="quick").fit(list(known), list(known.values()))
    >>> classifier.predict([33]), classifier.predict_proba().shape, len(classifier.transform())
    (array(['Officer'], dtype='<U7'), (34, 2), 34)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NodeEstimator._parameter_constraints,
        **Classification._parameter_constraints,
    }

    def __init__(
        self,
        graph: Any = None,
        *,
        attributes: Any = None,
        model: str = "auto",
        effort: str = "standard",
        time_limit: float | None = None,
        preset: str = "strong",
        scheme: str | None = None,
        features: str | None = None,
        hidden: int | None = None,
        lr: float | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        batch_size: int | None = None,
        neighbours: int | None = None,
        validation_fraction: float = 0.2,
        metric: str | None = None,
        positive: Any = None,
        class_weight: str | dict[Any, float] | None = None,
        directed: bool | None = None,
        random_state: int = 0,
        device: str = "cpu",
        verbose: bool | int = False,
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
        graph, attributes: See :class:`DEMONetClassifier`.
        model: ``"kernel"``: the degree-specific kernel machine, for one target column; ``"network"``; ``"auto"``: the
            kernel machine for one column, a network (with a warning) for several. Only a network reads the parameters
            from ``preset`` to ``neighbours``, ``metric`` and ``loss``.
        preset, scheme, features, hidden, lr, epochs, patience, batch_size, neighbours, validation_fraction: See
            :class:`DEMONetClassifier`.
        metric: The validation metric that chooses the epoch: ``"rmse"``, ``"mae"`` or ``"r2"``. If None, the loss in
            the preset ``"strong"``, the root mean squared error in the others.
        loss: ``"mse"`` or ``"mae"``: squared or absolute error.
        directed, random_state, device, verbose: See :class:`DEMONetClassifier`.

    >>> import networkx as nx
    >>> star = nx.star_graph(9)
    >>> regressor = DEMONetRegressor(graph=star).fit(list(star), [star.degree(node) for node in star])
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
        attributes: Any = None,
        model: str = "auto",
        preset: str = "strong",
        scheme: str | None = None,
        features: str | None = None,
        hidden: int | None = None,
        lr: float | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        batch_size: int | None = None,
        neighbours: int | None = None,
        validation_fraction: float = 0.2,
        metric: str | None = None,
        loss: str = "mse",
        directed: bool | None = None,
        random_state: int = 0,
        device: str = "cpu",
        verbose: bool | int = False,
    ) -> None:
        self._store(locals())

    score = NodeEstimator.score


def _by_id(X: Any, y: Any) -> tuple[Any, Any]:
    """Ids and targets of ``fit``, where ``y`` may be a mapping by id."""
    if isinstance(y, Mapping) or (X is None and hasattr(y, "items") and hasattr(y, "index")):
        if X is None:
            pairs = list(y.items())
            return [key for key, _ in pairs], [value for _, value in pairs]
        ids = np.asarray(X, dtype=object).ravel().tolist()
        return X, [y.get(name) for name in ids]
    if X is None:
        raise DemonetError(
            "X is None, and y has no ids", hint="fit(node_ids, y), or a dict or Series from id to target"
        )
    return X, y


def _has_own(graph: Any) -> bool:
    return isinstance(graph, Data) and graph.x is not None


def _named(attributes: Any) -> bool:
    """Whether attributes are named as parts of a graph, so that another graph has them, too."""
    several = isinstance(attributes, list | tuple) and all(isinstance(name, str) for name in attributes)
    return attributes is None or several or (isinstance(attributes, str) and not Path(attributes).is_file())


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
