"""Estimators for whole graphs: a classifier and a regressor with scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch_geometric.data import Batch, Data

from demonet.data.read import read_graph, read_graphs
from demonet.data.splits import Split
from demonet.ensemble import Progress as Candidate
from demonet.errors import DemonetError
from demonet.estimators.base import DEMONetEstimator, has_weights, num_attributes
from demonet.estimators.closed_form import ClosedForm, model_for, narrow
from demonet.estimators.targets import Array, Classification, Regression
from demonet.train.loop import Epoch
from demonet.train.presets import preset
from demonet.train.recipes import prepare_batch, replace_features, train_graphs

BATCH = 512  # graphs in a batch of predictions, which bounds the memory


class GraphEstimator(DEMONetEstimator):
    """What the estimators of graphs share."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on graphs with targets ``y``, or with their own.

        Args:
            X: The graphs.
            y: One target for each graph; each graph's own ``y`` if None. Graphs whose target is None or NaN are left
                out; so are graphs with an own ``y`` of -1 in a classification.
        """
        self._check_parameters()
        listed = _listed(X)
        if y is None:
            rows, y = self._own(listed)
            listed = [listed[row] for row in rows]
        return self._fit(self._read(listed), y)

    def fit_split(
        self,
        graphs: Sequence[Data],
        split: Split,
        *,
        on_epoch: Callable[[Epoch], None] | None = None,
        checkpoint: str | Path | None = None,
        on_candidate: Callable[[Candidate], None] | None = None,
    ) -> Self:
        """Train on a given split: nothing more is held out, and the test part is not used.

        Args:
            graphs: The graphs, each with its target in ``y``.
            split: Training and validation graphs, by their index in ``graphs``.
            on_epoch: Callback after every epoch.
            checkpoint: Where the state is saved; training resumes from it if it exists. It is a file for a network, and
                for ``model="auto"`` a folder with a file for every finished candidate.
            on_candidate: Callback before and after every candidate of ``model="auto"``.
        """
        self._check_parameters()
        listed = _listed(graphs)
        rows, y = self._own(listed, split)
        return self._fit(self._read(listed), y, rows, split, on_epoch, checkpoint, on_candidate)

    def predict(self, X: Any) -> Array:
        """Predictions for graphs.

        A classifier gives a class for each graph, or a 0/1 table if it was fitted on one; a regressor gives values in
        the units of ``y``, ``[graphs]`` or ``[graphs, columns]``.
        """
        return self._decide(self._outputs(X))

    def transform(self, X: Any) -> Array:
        """``[graphs, width]`` embeddings, ``g_i`` in the paper: the readout of each graph (Eq. 12).

        With ``model="kernel"`` they are the decision function, with ``"auto"`` the probabilities of the members. There
        are at most 256 columns: more are brought down to them by a fixed random projection, which nearly keeps
        distances. ``model_.embed`` of a network gives the whole readout.
        """
        graphs = self._read_fitted(X)
        return self._framed(self._embed(graphs), range(len(graphs)))

    def _width(self) -> int:
        x = torch.zeros(2, self.n_features_in_) if self.n_features_in_ else None
        pair = Data(x=x, edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        return int(self._embed([pair]).shape[1])

    def shares(self, X: Any) -> dict[str, Array]:
        """The decision function of ``model="kernel"``, split exactly into the terms of the kernel.

        Keys: ``seed``, ``shared``, ``degree``, ``bias``, ``structure``, ``wl``, ``constant``, and ``map`` for what a
        nonlinear map does not separate. Each array is ``[graphs, columns]``; together they are ``transform``, or of a
        regression ``predict``.
        """
        graphs = self._read_fitted(X)
        self._check_attributes(graphs[0], "graph 0")
        return self._closed_form("shares").shares(graphs)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy or R² on graphs with targets ``y``, or on those that have their own."""
        check_is_fitted(self, "model_")
        listed = _listed(X)
        if y is None:
            rows, y = self._own(listed)
            listed = [listed[row] for row in rows]
        return self._score(y, self.predict(listed), sample_weight)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load what :meth:`save` wrote."""
        return cls._restore(path)

    def _own(self, listed: list[Any], split: Split | None = None) -> tuple[Array, Array]:
        if not all(isinstance(graph, Data) for graph in listed):
            raise DemonetError("y is None, and not every graph is a Data with a y of its own", hint="pass y")
        return self._labelled(listed, split)

    def _fit(
        self,
        graphs: list[Data],
        y: Any,
        rows: Array | None = None,
        split: Split | None = None,
        on_epoch: Callable[[Epoch], None] | None = None,
        checkpoint: str | Path | None = None,
        on_candidate: Callable[[Candidate], None] | None = None,
    ) -> Self:
        rows = np.arange(len(graphs)) if rows is None else rows
        targets = self._targets(y, len(rows))
        empty = torch.nan if targets.y.is_floating_point() else -1
        y = targets.y.new_full((len(graphs), *targets.y.shape[1:]), empty)
        y[torch.from_numpy(rows)] = targets.y
        self.n_features_in_, self.weighted_ = num_attributes(graphs[0]), has_weights(graphs)
        model = model_for(self.model, targets)
        if model != "network":
            self._fit_closed_form(model, graphs, y, targets, split, on_candidate, on_epoch, checkpoint)
            return self
        for graph, target in zip(graphs, y, strict=True):
            graph.y = target.view(1, *target.shape)
        split, settled = split or self._hold_out(y), self._settle("graphs", graphs)
        if self.features is not None and not self.n_features_in_ and "attributes" in self.features.split("+"):
            raise DemonetError(f"features={self.features!r}, but the graphs have no attributes")
        items = [graph.to(self._device()) for graph in graphs]
        self._train(train_graphs, items, y, targets, settled, split, on_epoch, checkpoint)
        return self

    def _outputs(self, X: Any) -> Array:
        return self._outputs_of(self._read_fitted(X))

    def _read_fitted(self, X: Any) -> list[Data]:
        """Graphs for a fitted model."""
        check_is_fitted(self, "model_")
        graphs = self._read(_listed(X))
        self._match_weights(graphs)
        return graphs

    def _outputs_of(self, graphs: list[Data]) -> Array:
        self._check_attributes(graphs[0], "graph 0")
        if isinstance(self.model_, ClosedForm):
            return self._finite(self.model_.outputs(graphs), graphs)
        return self._finite(self._activate(self._in_batches(self.model_, graphs)), graphs)

    def _embed(self, graphs: list[Data]) -> Array:
        self._check_attributes(graphs[0], "graph 0")
        if isinstance(self.model_, ClosedForm):
            return self._finite(self.model_.embed(graphs), graphs)
        return self._finite(
            narrow(self._in_batches(self.model_.embed, graphs).cpu().numpy()).astype(np.float32), graphs
        )

    def _read(self, listed: list[Any]) -> list[Data]:
        """The graphs as checked Data, without their targets."""
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
            if num_attributes(graph) != num_attributes(read[0]):
                problem = f"graph {number} has {num_attributes(graph)} attributes a node"
                raise DemonetError(f"{problem}, graph 0 {num_attributes(read[0])}", hint="use the same columns")
        return read

    @torch.no_grad()
    def _in_batches(self, function: Callable[..., Tensor], graphs: list[Data]) -> Tensor:
        device = next(self.model_.parameters()).device
        ready = [replace_features(graph, self.features_.transform(graph)).to(device) for graph in graphs]
        batches = [Batch.from_data_list(ready[start : start + BATCH]) for start in range(0, len(ready), BATCH)]
        return torch.cat([function(*prepare_batch(self.model_, batch)) for batch in batches])


class DEMONetGraphClassifier(Classification, GraphEstimator):
    """DEMO-Net for whole graphs, as a scikit-learn classifier and transformer.

    ``X`` is a list of graphs, each in any form that :func:`~demonet.data.read_graph` takes, a
    :class:`~demonet.data.GraphSet`, or a folder or file that :func:`~demonet.data.read_graphs` reads. Edges are
    undirected. Graphs without attributes get features of their structure.

    ``y`` has one class of any type for each graph, None or NaN for unlabelled; or it is a table ``[graphs, labels]`` of
    0 and 1, NaN or -1 for unknown entries, for a multi-label classification. Without ``y``, each graph is a PyG Data
    with its own ``y``: a class number, -1 for unlabelled, or a row of labels.

    Args:
        model: ``"auto"``: several models, weighted on held-out items and fitted again on all labelled ones; for tables
            of labels a network, with a warning. ``"kernel"``: the closed form of DEMO-Net, the degree-specific kernel
            machine, in seconds. ``"network"``: a DEMO-Net, trained. Only a network reads the parameters from ``preset``
            to ``patience``, and ``class_weight``; with another model they are an error.
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
        validation_fraction: Share of the labelled graphs that is held out for validation.
        metric: The validation metric that chooses the weights of ``"auto"`` or the epoch of a network: ``"accuracy"``,
            ``"balanced"``, ``"macro-f1"``, ``"auc"``, ``"average-precision"`` or ``"log-loss"``. By default
            ``"auto"`` uses log-loss minus accuracy, a network of the preset ``"strong"`` its loss, and other presets
            accuracy, or average precision for tables of labels.
        positive: The positive one of two classes, for ``"average-precision"``; the rarer of the labelled ones if None,
            of equals the last.
        class_weight: None, ``"balanced"``, or a dict from class to weight: the weight of a graph of each class in the
            loss and in the validation metric. Not for tables of labels.
        random_state: Seed of all random numbers, an integer.
        device: ``"cpu"``, or ``"auto"`` for a GPU if there is one.
        verbose: Show progress.

    Attributes:
        classes_: The sorted classes, or the indices of the labels: the columns of ``predict_proba``.
        n_features_in_: Number of attributes of a node in training, 0 if there were none.
        weighted_: Whether edges have weights other than 1. If not, those of other graphs are not used, with a warning;
            if so, it is a warning that other graphs have none.
        model_: The network; for the other models a wrapper with a ``machine`` or an ``ensemble``.
        features_, preset_: The feature map and the configuration of a network.
        candidates_: Of ``"auto"``: the table of candidates, each a dict with name, validation log-loss and accuracy
            with intervals, weight, seconds, status and reason.
        objective_: The objective; ``objective_.task`` is ``"classify"`` or ``"multilabel"``.
        history_: The learning curves of a network.
        split_: Training and validation graphs, by their index among the labelled graphs.

    >>> import networkx as nx
    >>> graphs = [nx.cycle_graph(n) for n in range(4, 12)] + [nx.star_graph(n) for n in range(4, 12)]
    >>> classifier = DEMONetGraphClassifier(effort="quick").fit(graphs, ["cycle"] * 8 + ["star"] * 8)
    >>> classifier.predict([nx.cycle_graph(20), nx.star_graph(9)])
    array(['cycle', 'star'], dtype='<U5')
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GraphEstimator._parameter_constraints,
        **Classification._parameter_constraints,
    }

    def __init__(
        self,
        *,
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
        validation_fraction: float = 0.2,
        metric: str | None = None,
        positive: Any = None,
        class_weight: str | dict[Any, float] | None = None,
        random_state: int = 0,
        device: str = "cpu",
        verbose: bool | int = False,
    ) -> None:
        self._store(locals())

    def predict_proba(self, X: Any) -> Array:
        """``[graphs, classes]`` probabilities; rows sum to 1 unless the columns are labels."""
        return self._outputs(X)

    score = GraphEstimator.score


class DEMONetGraphRegressor(Regression, GraphEstimator):
    """DEMO-Net for one or several numbers a graph, as a scikit-learn regressor and transformer.

    ``y`` has one number for each graph, or one row of a table ``[graphs, columns]``; NaN is an unknown value. Targets
    are standardised for training, and predictions are in the units of ``y``. ``X`` and all other parameters and
    attributes are those of :class:`DEMONetGraphClassifier`, without classes and their weights.

    Args:
        model: ``"kernel"``: the degree-specific kernel machine, for one target column; ``"network"``; ``"auto"``: the
            kernel machine for one column, a network (with a warning) for several. Only a network reads the parameters
            from ``preset`` to ``patience``, ``metric`` and ``loss``.
        preset, scheme, features, hidden, lr, epochs, patience, validation_fraction: See
            :class:`DEMONetGraphClassifier`.
        metric: The validation metric that chooses the epoch: ``"rmse"``, ``"mae"`` or ``"r2"``. If None, the loss in
            the preset ``"strong"``, the root mean squared error in the others.
        loss: ``"mse"`` or ``"mae"``: squared or absolute error.
        random_state, device, verbose: See :class:`DEMONetGraphClassifier`.

    >>> import networkx as nx
    >>> graphs = [nx.star_graph(n) for n in range(3, 13)]
    >>> DEMONetGraphRegressor().fit(graphs, range(3, 13)).predict(graphs).shape
    (10,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GraphEstimator._parameter_constraints,
        **Regression._parameter_constraints,
    }

    def __init__(
        self,
        *,
        model: str = "auto",
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
        random_state: int = 0,
        device: str = "cpu",
        verbose: bool | int = False,
    ) -> None:
        self._store(locals())

    score = GraphEstimator.score


def _listed(X: Any) -> list[Any]:
    """The graphs as a list; those of a GraphSet carry the names of its classes."""
    if isinstance(X, str | Path):
        X = read_graphs(X)
    if isinstance(X, Data) or not hasattr(X, "__iter__"):
        raise DemonetError(f"X is a {type(X).__name__}, not a list of graphs")
    names = getattr(X, "class_names", None)
    listed = [_named(graph, names) if names else graph for graph in X]
    if not listed:
        raise DemonetError("there are no graphs")
    return listed


def _named(graph: Data, names: list[Any]) -> Data:
    named = Data(**graph.to_dict())
    named.class_names = names
    return named
