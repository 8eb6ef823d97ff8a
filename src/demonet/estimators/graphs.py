"""Estimators for whole graphs: a classifier and a regressor with scikit-learn's interface."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import networkx as nx
import numpy as np
from sklearn.utils.validation import check_is_fitted
from torch_geometric.data import Data

from demonet.data.columns import Columns
from demonet.data.read import read_graph, read_graphs
from demonet.errors import DemonetError
from demonet.estimators.base import DEMONetEstimator
from demonet.estimators.core import num_attributes
from demonet.estimators.explain import Explanation, explain_item
from demonet.estimators.targets import Array, Classification, Regression
from demonet.train.presets import preset


@dataclass(kw_only=True, eq=False, repr=False)
class GraphEstimator(DEMONetEstimator):
    """What the estimators of graphs share."""

    _items: ClassVar[str] = "graphs"

    attributes: Any = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on graphs with targets ``y``, or with their own.

        Args:
            X: The graphs.
            y: One target for each graph; each graph's own ``y`` if None. Graphs whose target is None or NaN are left
                out; so are graphs with an own ``y`` of -1 in a classification.
            sample_weight: One weight for each of ``X``, see :meth:`demonet.DEMONetClassifier.fit`.
        """
        self._check_parameters()
        listed, y, weight = self._with_targets(X, y, sample_weight)
        return self._fit(self._learn(listed), np.arange(len(listed)), y, None, weight)

    def predict(self, X: Any) -> Array:
        """Predictions for graphs.

        A classifier gives a class for each graph, or a 0/1 table if it was fitted on one; a regressor gives values in
        the units of ``y``, ``[graphs]`` or ``[graphs, columns]``.
        """
        return self._decide(self._outputs(X), self.fitted_)

    def transform(self, X: Any) -> Array:
        """``[graphs, width]`` embeddings, ``g_i`` in the paper: the readout of each graph (Eq. 12).

        With ``model="kernel"`` they are the decision function, with ``"auto"`` the readout of the network that weighs
        most, the leading components of a kernel, or numbers about the graph, the first that there is. There
        are at most 256 columns: more are brought down to them by a fixed random projection, which nearly keeps
        distances. ``model_.embed`` of a network gives the whole readout.
        """
        graphs = self._read_fitted(X)
        return self._framed(self.fitted_.embed(graphs), range(len(graphs)))

    def explain(self, X: Any, index: int = 0, *, output: int | None = None) -> Explanation:
        """What led to the prediction for one of the graphs: its columns and nodes, and how much each moved it.

        Args:
            X: Graphs.
            index: The one to explain.
            output: The class, label or target column to explain, by its index; by default the one with the highest
                score.
        """
        return explain_item(self.fitted_, self._read_fitted(X), index, output)

    def shares(self, X: Any) -> dict[str, Array]:
        """The decision function of ``model="kernel"``, split exactly into the terms of the kernel.

        Keys: ``seed``, ``shared``, ``degree``, ``bias``, ``structure``, ``wl``, ``constant``, and ``map`` for what a
        nonlinear map does not separate. Each array is ``[graphs, columns]``; together they are ``transform``, or of a
        regression ``predict``.
        """
        graphs = self._read_fitted(X)
        self.fitted_.check_attributes(graphs)
        return self.fitted_.model.shares(graphs)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy or R² on graphs with targets ``y``, or on those that have their own."""
        check_is_fitted(self, "model_")
        listed, y, weight = self._with_targets(X, y, sample_weight)
        return self._score(y, self.predict(listed), weight)

    def _with_targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[list[Any], Any, Any]:
        """The graphs, their targets and weights; without ``y``, those graphs that have their own."""
        listed = self._listed(X)
        if y is not None:
            return listed, y, sample_weight
        rows, y, weight = self._labelled(listed, sample_weight)
        return [listed[row] for row in rows], y, weight

    def _listed(self, X: Any) -> list[Any]:
        """The graphs as a list; those of a GraphSet carry the names of its classes."""
        if isinstance(X, str | Path):
            X = read_graphs(X)
        if isinstance(X, Data) or not hasattr(X, "__iter__"):
            raise DemonetError(f"X is a {type(X).__name__}, not a list of graphs")
        names = getattr(X, "class_names", None)
        listed = [Data(**graph.to_dict() | {"class_names": names}) if names else graph for graph in X]
        if not listed:
            raise DemonetError("there are no graphs")
        return listed

    def _learn(self, given: list[Any]) -> list[Data]:
        return self._read(given, self._learn_columns(given))

    def _outputs(self, X: Any) -> Array:
        check_is_fitted(self, "model_")
        return self.fitted_.outputs(self._read_fitted(X))

    def _read_fitted(self, X: Any) -> list[Data]:
        """Graphs for a fitted model."""
        check_is_fitted(self, "model_")
        graphs = self._read(self._listed(X), self.fitted_.columns)
        self.fitted_.match_numbers(graphs)
        return graphs

    def _learn_columns(self, listed: list[Any]) -> Columns | None:
        """What the node attributes of NetworkX graphs become, learned from those of all graphs."""
        if self.attributes is None:
            return None
        for number, graph in enumerate(listed):
            if not isinstance(graph, nx.Graph):
                problem = f"attributes={self.attributes!r} of graph {number}, a {type(graph).__name__}"
                raise DemonetError(problem, hint="they are names of node attributes of NetworkX graphs")
        together = nx.disjoint_union_all([graph.to_undirected(as_view=True) for graph in listed])
        return read_graph(together, features=self.attributes).columns

    def _read(self, listed: list[Any], columns: Columns | None = None) -> list[Data]:
        """The graphs as checked Data, without their targets."""
        self_loops, read = preset(self.preset, "graphs").self_loops, []
        for number, graph in enumerate(listed):
            if isinstance(graph, Data):
                graph = Data(**{name: value for name, value in graph.to_dict().items() if name != "y"})
            try:
                named = columns.sources if columns is not None and isinstance(graph, nx.Graph) else None
                read.append(read_graph(graph, features=named, columns=columns, self_loops=self_loops, directed=False))
                if read[-1].num_nodes == 0:
                    raise DemonetError("has no nodes")
            except DemonetError as error:
                raise DemonetError(f"graph {number}: {error}") from None
        for number, graph in enumerate(read[1:], 1):
            if num_attributes(graph) != num_attributes(read[0]):
                problem = f"graph {number} has {num_attributes(graph)} attributes a node"
                raise DemonetError(f"{problem}, graph 0 {num_attributes(read[0])}", hint="use the same columns")
        return read


@dataclass(kw_only=True, eq=False, repr=False)
class DEMONetGraphClassifier(Classification, GraphEstimator):
    """DEMO-Net for whole graphs, as a scikit-learn classifier and transformer.

    ``X`` is a list of graphs, each in any form that :func:`~demonet.data.read_graph` takes, a
    :class:`~demonet.data.GraphSet`, or a folder or file that :func:`~demonet.data.read_graphs` reads. Edges are
    undirected. Graphs without attributes get features of their structure.

    ``y`` has one class of any type for each graph, None or NaN for unlabelled; or it is a table ``[graphs, labels]`` of
    0 and 1, NaN or -1 for unknown entries, for a multi-label classification. Without ``y``, each graph is a PyG Data
    with its own ``y``: a class number, -1 for unlabelled, or a row of labels.

    Args:
        attributes: Names of node attributes of NetworkX graphs, or ``"all"`` of them, which are then treated as a table
            is; they are not read unless named. A PyG Data has its attributes in ``x``.
        model, effort, time_limit, n_jobs: See :class:`~demonet.DEMONetClassifier`. Only a network reads the parameters
            from ``preset`` to ``patience``.
        preset, scheme, features, hidden, layers, lr, epochs, patience: See :class:`~demonet.DEMONetClassifier`.
        validation_fraction, metric, positive, class_weight: The same, with graphs in place of nodes.
        random_state, device, verbose: See :class:`~demonet.DEMONetClassifier`.

    Attributes:
        n_features_in_: Number of attributes of a node in training, 0 if there were none.
        feature_names_in_, columns_: Their names, and what they became, if they are named in ``attributes``.
        classes_, weighted_, model_, features_, preset_, candidates_, objective_, history_: See
            :class:`~demonet.DEMONetClassifier`.
        split_: Training and validation graphs, by their index among the labelled graphs.

    >>> import networkx as nx
    >>> graphs = [nx.cycle_graph(n) for n in range(4, 12)] + [nx.star_graph(n) for n in range(4, 12)]
    >>> classifier = DEMONetGraphClassifier(effort="quick").fit(graphs, ["cycle"] * 8 + ["star"] * 8)
    >>> classifier.predict([nx.cycle_graph(20), nx.star_graph(9)])
    array(['cycle', 'star'], dtype='<U5')
    """

    def predict_proba(self, X: Any) -> Array:
        """``[graphs, classes]`` probabilities; rows sum to 1 unless the columns are labels."""
        return self._outputs(X)

    score = GraphEstimator.score


@dataclass(kw_only=True, eq=False, repr=False)
class DEMONetGraphRegressor(Regression, GraphEstimator):
    """DEMO-Net for one or several numbers a graph, as a scikit-learn regressor and transformer.

    ``y`` has one number for each graph, or one row of a table ``[graphs, columns]``; NaN is an unknown value. Targets
    are standardised for training, and predictions are in the units of ``y``. ``X`` and all other parameters and
    attributes are those of :class:`DEMONetGraphClassifier`, without classes and their weights.

    Args:
        attributes: See :class:`DEMONetGraphClassifier`.
        metric, loss: See :class:`~demonet.DEMONetRegressor`.
        model, effort, time_limit, n_jobs, validation_fraction: See :class:`DEMONetGraphClassifier`.
        preset, scheme, features, hidden, layers, lr, epochs, patience: The same.
        random_state, device, verbose: The same.

    >>> import networkx as nx
    >>> graphs = [nx.star_graph(n) for n in range(3, 13)]
    >>> DEMONetGraphRegressor(effort="quick").fit(graphs, range(3, 13)).predict(graphs).shape
    (10,)
    """

    score = GraphEstimator.score
