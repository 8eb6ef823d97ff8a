"""Estimators for the nodes of one graph: a classifier and a regressor with scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import networkx as nx
import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted
from torch_geometric.data import Data

from demonet.data.ids import Numbering, id_at, ids_of, make_ids
from demonet.data.read import read_graph
from demonet.data.readers.arrow import is_frame
from demonet.data.splits import Split
from demonet.errors import DemonetError
from demonet.estimators.base import DEMONetEstimator
from demonet.estimators.explain import Explanation, explain_item
from demonet.estimators.targets import Array, Classification, Regression
from demonet.train.presets import preset


@dataclass(eq=False, repr=False)
class NodeEstimator(DEMONetEstimator):
    """What the estimators of nodes share."""

    _items: ClassVar[str] = "nodes"

    graph: Any = None
    _: KW_ONLY
    attributes: Any = None
    batch_size: int | None = None
    neighbours: int | None = None
    directed: bool | None = None

    def fit(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on some nodes of the graph. All edges are used, and the targets of these nodes.

        Args:
            X: Node ids; or None, if ``y`` has them. Where the parameter ``graph`` is None, the graph: a Data, a file, a
                data frame of edges, a NetworkX graph or a SciPy matrix. A Data may have its targets in ``y``, and then
                only the nodes of its ``train_mask`` train, if it has one, and those of its ``val_mask`` validate.
            y: One target for each id, or for each node if ``X`` is a graph; or a dict from id to target, or without ids
                a pandas Series or DataFrame with ids as its index. Nodes whose target is missing (None, NaN, a word
                such as ``"nan"`` or ``"NA"``) are unlabelled. -1 is a class like any other; only in a torch tensor,
                such as the ``y`` of a Data, it is an unlabelled node of a classification.
            sample_weight: One weight for each target in ``y``, or a dict or Series from id to weight: how much a node
                counts, in the fit of every model as if it were there so often, and where settings and weights are
                chosen by a loss. It counts in no metric. A node of weight 0 is not in training.
        """
        self._check_parameters()
        if is_graph(X) and self.graph is not None:
            raise DemonetError("X is a graph, and so is graph=", hint="fit(node_ids, y), or leave out graph=")
        if y is not None or not isinstance(X, Data):
            graph, ids = (X, None) if is_graph(X) else (self.graph, X)
            data = self._learn(graph)
            weight = sample_weight
            if isinstance(weight, Mapping) or (ids is None and hasattr(weight, "items") and hasattr(weight, "index")):
                weight = dict(weight.items())
            ids, y = _by_id(ids, y, optional=is_graph(X))
            if isinstance(weight, dict):
                weight = _of_ids(weight, ids_of(data) if ids is None else ids)
            return self._fit(data, find_nodes(data, ids), y, None, weight)
        split = Split.from_masks(X) if X.get("train_mask") is not None else None
        if split is not None and split.val.numel():
            return self.fit_split(X, split, sample_weight=sample_weight)
        rows, y, weight = self._labelled(X, sample_weight)
        if split is not None:
            chosen = np.isin(rows, split.train.numpy())
            rows, y, weight = rows[chosen], y[chosen], None if weight is None else weight[chosen]
        return self._fit(self._learn(X), rows, y, None, weight)

    def predict(self, X: Any = None, *, graph: Any = None) -> Array:
        """Predictions for the nodes ``X``, or for all, of the fitted graph or of another.

        A classifier gives a class for each node, or a 0/1 table if it was fitted on one; a regressor gives values in
        the units of ``y``, ``[nodes]`` or ``[nodes, columns]``.
        """
        return self._decide(self._outputs(X, graph), self.fitted_)

    def transform(self, X: Any = None, *, graph: Any = None) -> Array:
        """``[nodes, width]`` embeddings, ``e_v`` in the paper: the input of the head.

        For a network without hidden layers (preset ``default`` on graphs with attributes), these are the scores. With
        ``model="kernel"`` they are the decision function, with ``"auto"`` the hidden layer of the network that weighs
        most; without a network, the leading components of the kernel that weighs most; without either, structural
        features and attributes. There are at most 256 columns. See ``set_output`` for data frames.
        """
        data, rows = self._locate(X, graph)
        ids = ids_of(data)
        return self._framed(self.fitted_.embed(data, rows), [ids[row] for row in rows])

    def score(self, X: Any = None, y: Any = None, sample_weight: Any = None, *, graph: Any = None) -> float:
        """Accuracy or R² on the nodes ``X`` with targets ``y``, as :meth:`fit` takes them.

        Of a Data with its own targets, the labelled nodes count, or if it has a ``test_mask`` those of it.
        """
        if isinstance(X, Data) and y is None and graph is None:
            rows, y, _ = self._labelled(X)
            if X.get("test_mask") is not None:
                chosen = np.isin(rows, Split.from_masks(X).test.numpy())
                rows, y = rows[chosen], y[chosen]
            return self._score(y, self.predict(X)[rows], sample_weight)
        if y is None:
            raise DemonetError("score needs y", hint="score(node_ids, y), or score(data) with targets in data.y")
        if is_graph(X):
            X, graph = None, X
        ids, y = _by_id(X, y, optional=True)
        return self._score(y, self.predict(ids, graph=graph), sample_weight)

    def explain(self, node: Any, *, graph: Any = None, output: int | None = None) -> Explanation:
        """What led to the prediction for one node: columns, neighbours and known labels, and how much each moved it.

        With ``model="kernel"``, its ``shares`` are the terms of the kernel, which add up to the score exactly; with
        ``model="network"``, ``network`` has the terms of Eq. 5.

        Args:
            node: Its id.
            graph: Another graph than the fitted one.
            output: The class, label or target column to explain, by its index (for a class, in ``classes_``); by
                default the one with the highest score.
        """
        data, rows = self._locate([node], graph)
        return explain_item(self.fitted_, data, int(rows[0]), output)

    def shares(self, X: Any = None, *, graph: Any = None) -> dict[str, Array]:
        """The decision function of ``model="kernel"``, split exactly into the terms of the kernel.

        Keys: ``seed``, ``shared``, ``degree``, ``bias``, ``structure``, ``constant``, and ``map`` for what a nonlinear
        map does not separate. Each array is ``[nodes, columns]``; together they are ``transform``, or of a regression
        ``predict``.
        """
        data, rows = self._locate(X, graph)
        return self.fitted_.model.shares(data, rows)

    @classmethod
    def load(cls, path: str | Path, graph: Any = None, attributes: Any = None) -> Self:
        """Load what :meth:`save` or ``demonet fit`` wrote. Without a graph, each call of ``predict`` needs one.

        Args:
            path: The file; in the folder of a run it is ``model.safetensors``.
            graph: Anything that :func:`~demonet.data.read_graph` reads. For a file with named columns, pass what
                ``read_graph(edges, source=..., target=...)`` returns.
            attributes: Its attributes; a table is encoded as that of training.
        """
        estimator = super().load(path)
        estimator.attributes = attributes
        if graph is not None:
            estimator.graph = graph
            estimator.graph_ = estimator._read(graph)
        return estimator

    def _listed(self, X: Any) -> Any:
        return X

    def _learn(self, given: Any) -> Data:
        return self._read(given, learn=True)

    def _outputs(self, X: Any = None, graph: Any = None) -> Array:
        data, rows = self._locate(X, graph)
        return self.fitted_.outputs(data, rows)

    def _read(self, graph: Any, learn: bool = False) -> Data:
        """The graph without its targets; a table of attributes is encoded as in training, unless it is ``learn``-ed."""
        if graph is None:
            raise DemonetError("there is no graph", hint=f"{type(self).__name__}(graph=...), or a graph in place of X")
        if isinstance(graph, Data):
            graph = Data(**{name: value for name, value in graph.to_dict().items() if name != "y"})
        data = read_graph(
            graph,
            features=None if _has_own(graph) and not learn else self.attributes,
            self_loops=preset(self.preset, "nodes").self_loops,
            directed=self.directed,
            columns=None if learn else self.fitted_.columns,
        )
        if data.num_nodes == 0:
            raise DemonetError("the graph has no nodes")
        if not learn:
            self.fitted_.match_numbers([data])
        return data

    def _locate(self, X: Any, graph: Any) -> tuple[Data, Array]:
        """The graph, and the indices of the nodes in it."""
        check_is_fitted(self, "model_")
        if is_graph(X):
            if graph is not None:
                raise DemonetError("two graphs, one as X and one as graph=", hint="pass one of them")
            X, graph = None, X
        if graph is None and not hasattr(self, "graph_"):
            raise DemonetError("a loaded model has no graph", hint="load(path, graph=...), or pass graph=... here")
        if graph is not None and not _has_own(graph) and not _named(self.attributes):
            hint = "pass graph=read_graph(edges, features=..., columns=estimator.columns_)"
            raise DemonetError("attributes= are those of the training graph, not of another one", hint=hint)
        data = self.graph_ if graph is None else self._read(graph)
        self.fitted_.check_attributes(data)
        return data, find_nodes(data, X)


@dataclass(eq=False, repr=False)
class DEMONetClassifier(Classification, NodeEstimator):
    """DEMO-Net for the nodes of a graph, as a scikit-learn classifier and transformer.

    ``X`` is a list of node ids, as the graph has them, so that scikit-learn's searches and splits work on nodes. A
    graph in place of ``X`` is the short form: all its nodes. For ``fit`` and ``score``, a PyG ``Data`` may have its
    labels in ``y``, -1 for unlabelled. ``graph=`` in ``predict``, ``predict_proba``, ``transform`` and ``score`` is
    another graph than the fitted one. What happens to degrees that were not seen in training depends on the scheme
    (``docs/theory.md``).

    ``y`` has one class of any type for each node, None, NaN or a word such as ``"NA"`` for unlabelled; or it is a dict
    or Series from id to class; or a table ``[nodes, labels]`` of 0 and 1, NaN or -1 for unknown entries, for a
    multi-label classification; ids are the index of a data frame beside a graph. In classes, -1 is unlabelled only in
    a torch tensor; elsewhere it is a class.

    Args:
        graph: Anything that :func:`~demonet.data.read_graph` reads: a file, a data frame or list of edges, a PyG Data,
            a NetworkX graph, a SciPy matrix. A Data has its attributes in ``x``.
        attributes: Attributes of the nodes, anything that ``read_graph(features=...)`` reads: a data frame with ids as
            its index, a file, a list of names of node attributes of a NetworkX graph, ``"all"`` of them. Categories,
            missing values and kinds of columns are handled as by ``demonet fit``. They are never read unless named: a
            label may be among them.
        model: ``"auto"``: several models, weighted on held-out items and fitted again on all labelled ones.
            ``"kernel"``: the closed form of DEMO-Net, the degree-specific kernel machine, in seconds; not for tables of
            labels. ``"network"``: a DEMO-Net, trained. Only a network reads the parameters from ``preset``
            to ``neighbours``; with another model they are an error.
        effort: Of ``"auto"``: ``"quick"``, ``"standard"`` or ``"best"``.
        time_limit: Of ``"auto"``: seconds, refits included.
        n_jobs: Of ``"auto"``: processes that fit candidates at once, with one thread each; -1 for as many as there are
            processors; None for this process alone. Without a time limit the model is the same for any number.
        preset: ``"strong"``, ``"default"`` (which the tables of results have), ``"paper"`` or ``"authors"``: features,
            model and training together.
        scheme: ``"weight"``, ``"hash"``, ``"smooth"`` or another registered scheme; None for the preset's value,
            also in the next six.
        features: The node features, see :class:`~demonet.features.FeatureMap`.
        hidden: Width of the hidden layers.
        layers: Number of hidden layers. ``"auto"``: the network of the preset and those of ``"deep-5"`` and
            ``"deep-12"`` are trained, each for at most the epochs of its preset, and the best on validation is kept:
            by the metric, or by the loss where that chooses the epoch of all of them (as with weights).
        lr: Learning rate.
        epochs: The maximum number of epochs.
        patience: Stop after so many epochs without an improvement.
        batch_size: Training nodes of a batch; by default all nodes are one batch, unless they do not fit into memory.
        neighbours: How many neighbours of a node are drawn in a batch, for each layer after the first; all if None.
        validation_fraction: Share of the labelled nodes that is held out for validation.
        metric: The validation metric that chooses the weights of ``"auto"`` or the epoch of a network: ``"accuracy"``,
            ``"balanced"``, ``"macro-f1"``, ``"auc"``, ``"average-precision"``, ``"precision@K"`` for any number K, or
            ``"log-loss"``. By default ``"auto"`` uses log-loss minus accuracy (of tables of labels the log-loss), a
            network of the preset ``"strong"`` its loss, and other presets accuracy, or average precision for tables of
            labels. Where 80 % or more of the labelled nodes have one class, average precision (of two classes) or
            macro F1 is in place of accuracy, and what ``"auto"`` uses.
        positive: The positive one of two classes, for ``"average-precision"`` and ``"precision@K"``; the rarer of the
            labelled ones if None, of equals the last.
        class_weight: None, ``"balanced"``, or a dict from class to weight: how much a node of each class counts, times
            its ``sample_weight``. The loss with these weights then chooses in place of the metric, unless ``metric`` is
            given; scores are balanced accuracies. Probabilities are those of classes that are as frequent as their
            weights say. Not for tables of labels.
        directed: Whether edges are directed; as :func:`~demonet.data.read_graph` decides if None.
        random_state: Seed of all random numbers, an integer; None for another one in each fit.
        device: ``"cpu"``; ``"cuda"`` or ``"cuda:1"`` for a GPU that must be there; ``"auto"`` for one if there is one.
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
        candidates_: Of ``"auto"``: the table of candidates, each a dict with name, loss and score (in ``metric``)
            on validation, weight, seconds, status and reason.
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

    def predict_proba(self, X: Any = None, *, graph: Any = None) -> Array:
        """``[nodes, classes]`` probabilities; rows sum to 1 unless the columns are labels."""
        return self._outputs(X, graph)

    score = NodeEstimator.score


@dataclass(eq=False, repr=False)
class DEMONetRegressor(Regression, NodeEstimator):
    """DEMO-Net for numbers at the nodes of a graph, as a scikit-learn regressor and transformer.

    ``y`` has one number for each node, or one row of a table ``[nodes, columns]``; NaN is an unknown value. Targets are
    standardised for training, and predictions are in the units of ``y``. ``X``, ``graph`` and all other parameters and
    attributes are those of :class:`DEMONetClassifier`, without classes and their weights.

    Args:
        graph, attributes: See :class:`DEMONetClassifier`.
        model, effort, time_limit, n_jobs: See :class:`DEMONetClassifier`. Only a network reads the parameters from
            ``preset`` to ``neighbours``, and ``loss``.
        preset, scheme, features, hidden, layers, lr, epochs, patience, batch_size, neighbours, validation_fraction: See
            :class:`DEMONetClassifier`.
        metric: The validation metric that chooses the weights of ``"auto"`` or the epoch of a network: ``"rmse"``,
            ``"mae"`` or ``"r2"``. By default ``"auto"`` uses the squared error of standardised targets, a network of
            the preset ``"strong"`` its loss, and other presets the root mean squared error.
        loss: ``"mse"`` or ``"mae"``: squared or absolute error.
        directed, random_state, device, verbose: See :class:`DEMONetClassifier`.

    >>> import networkx as nx
    >>> star = nx.star_graph(9)
    >>> regressor = DEMONetRegressor(graph=star, effort="quick").fit(list(star), [star.degree(node) for node in star])
    >>> regressor.predict([0, 1]).shape
    (2,)
    """

    score = NodeEstimator.score


def is_graph(X: Any) -> bool:
    """Whether this is a graph, not a list of ids; lists of pairs and arrays count as ids."""
    table = is_frame(X) and len(X.columns) > 1
    return table or isinstance(X, Data | nx.Graph | str | Path) or issparse(X)


def _by_id(X: Any, y: Any, *, optional: bool) -> tuple[Any, Any]:
    """Ids and targets, where ``y`` may be a mapping by id, or a pandas Series or table with ids as its index.

    Where ids are optional, None for those of all nodes.
    """
    if X is None and hasattr(y, "items") and hasattr(y, "index"):
        return list(y.index), y
    if isinstance(y, Mapping):
        if X is None:
            return list(y), list(y.values())
        ids = np.asarray(X, dtype=object).ravel().tolist()
        return X, [y.get(name) for name in ids]
    if X is None and not optional:
        hint = "fit(node_ids, y), or a dict or Series from id to target"
        raise DemonetError("X is None, and y has no ids", hint=hint)
    return X, y


def _of_ids(weight: dict[Any, Any], ids: Any) -> list[Any]:
    """The weights of nodes, by their ids."""
    names = np.asarray(ids, dtype=object).ravel().tolist()
    missing = [name for name in names if name not in weight]
    if missing:
        raise DemonetError(f"sample_weight has no node {missing[0]!r} ({len(missing)} in total)")
    return [weight[name] for name in names]


def _has_own(graph: Any) -> bool:
    return isinstance(graph, Data) and graph.x is not None


def _named(attributes: Any) -> bool:
    """Whether attributes are named as parts of a graph, so that another graph has them, too."""
    several = isinstance(attributes, list | tuple) and all(isinstance(name, str) for name in attributes)
    return attributes is None or several or (isinstance(attributes, str) and not Path(attributes).is_file())


def find_nodes(data: Data, ids: Any) -> Array:
    """The indices of nodes in a graph, by their ids; of all, if None."""
    if ids is None:
        return np.arange(int(data.num_nodes or 0))
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
