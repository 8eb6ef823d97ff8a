"""Estimators on graphs that a reader has already checked, so that ``runs`` reads and labels a graph only once."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from torch_geometric.data import Data

from demonet.checks import check_split, labelled
from demonet.data.splits import Split
from demonet.ensemble import Progress as Candidate
from demonet.estimators.closed_form import ClosedForm, EnsembleModel
from demonet.estimators.graphs import DEMONetGraphClassifier, DEMONetGraphRegressor, GraphEstimator
from demonet.estimators.nodes import DEMONetClassifier, DEMONetRegressor, NodeEstimator
from demonet.train.loop import Epoch
from demonet.train.objective import OBJECTIVES
from demonet.train.problem import labels
from demonet.train.recipes import Trained

Estimator = NodeEstimator | GraphEstimator
_E = TypeVar("_E", NodeEstimator, GraphEstimator)


def estimator_class(kind: str, task: str) -> type[Estimator]:
    """The class of estimators of ``"nodes"`` or ``"graphs"`` for a task."""
    if kind == "nodes":
        return DEMONetRegressor if task == "regress" else DEMONetClassifier
    return DEMONetGraphRegressor if task == "regress" else DEMONetGraphClassifier


def fit_checked(
    estimator: _E,
    data: Data | Sequence[Data],
    split: Split,
    task: str,
    names: Sequence[Any],
    *,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | Path | None = None,
    on_candidate: Callable[[Candidate], None] | None = None,
    recipe: Callable[..., Trained] | None = None,
) -> _E:
    """Train on the split of a checked graph, or of checked graphs; the data is not changed.

    Args:
        estimator: The estimator to fit.
        data: The graph, or the graphs, with targets in ``y``: see :mod:`demonet.train.objective`.
        split: The items to train on and to choose the epoch by.
        task: ``"classify"``, ``"multilabel"`` or ``"regress"``.
        names: The name of each class, of which each has a labelled item, or of each label; not used in a regression.
        on_epoch: Called after every epoch.
        checkpoint: Where the state is saved; training continues from an existing file.
        on_candidate: Called before and after every candidate of ``model="auto"``.
        recipe: Trains a network for nodes in place of :func:`~demonet.train.train_nodes`.
    """
    estimator._check_parameters()
    y = labels(data, OBJECTIVES[task]()).cpu()
    check_split(split, y)
    rows = labelled(y).nonzero().view(-1).numpy()
    targets, positive = y.numpy()[rows], estimator.get_params(deep=False).get("positive")
    if positive is not None:  # these targets are class numbers
        estimator.set_params(positive=[str(name) for name in names].index(str(positive)))
    if isinstance(estimator, NodeEstimator):
        estimator._fit(copy.copy(data), rows, targets, split, on_epoch, checkpoint, on_candidate, recipe)
    else:
        estimator._fit([copy.copy(graph) for graph in data], targets, rows, split, on_epoch, checkpoint, on_candidate)
    if task != "regress":
        estimator.classes_ = np.asarray(names)
    if positive is not None:
        estimator.set_params(positive=positive)
    return estimator


def load_checked(path: str | Path, kind: str, task: str) -> Estimator:
    """A saved estimator of ``"nodes"`` or of ``"graphs"``."""
    return estimator_class(kind, task).load(path)


def predict_checked(estimator: Estimator, data: Data | Sequence[Data]) -> np.ndarray:
    """``[items, outputs]`` probabilities or values for the nodes of a checked graph, or for checked graphs."""
    if isinstance(estimator, NodeEstimator):
        estimator.graph_ = data
        return estimator._outputs()
    return estimator._outputs_of(list(data))


def fitted_results(estimator: Estimator, data: Data | Sequence[Data]) -> tuple[np.ndarray, np.ndarray]:
    """Outputs and embeddings of the items that were fitted; an ensemble has them, and does not ask its members again.

    Args:
        estimator: Fitted, or loaded, on this data.
        data: The checked graph, or the checked graphs.
    """
    model = estimator.model_
    known = model.of_fitted_items() if isinstance(model, EnsembleModel) else None
    if isinstance(estimator, NodeEstimator):
        assert isinstance(data, Data)
        estimator.graph_ = data
        return known or estimator._outputs_and_embedding(data)
    graphs = list(data)
    if isinstance(model, ClosedForm):
        outputs, embedding = known or model.outputs_and_embedding(graphs)
        return estimator._finite(outputs, graphs), embedding
    return estimator._outputs_of(graphs), estimator._embed(graphs)


def embed_checked(estimator: Estimator, data: Data | Sequence[Data]) -> np.ndarray:
    """``[items, width]`` embeddings for the nodes of a checked graph, or of checked graphs."""
    if isinstance(estimator, NodeEstimator):
        assert isinstance(data, Data)
        return estimator._embed(data, np.arange(int(data.num_nodes or 0)))
    return estimator._embed(list(data))
