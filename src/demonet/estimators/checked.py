"""Estimators on graphs that a reader has already checked, so that ``runs`` reads and labels a graph only once."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from torch_geometric.data import Data

from demonet.checks import check_split
from demonet.data.splits import Split
from demonet.ensemble import Progress as Candidate
from demonet.estimators.graphs import DEMONetGraphClassifier
from demonet.estimators.nodes import DEMONetClassifier
from demonet.train.loop import Epoch
from demonet.train.problem import labels

Estimator = DEMONetClassifier | DEMONetGraphClassifier
_E = TypeVar("_E", DEMONetClassifier, DEMONetGraphClassifier)


def fit_checked(
    estimator: _E,
    data: Data | Sequence[Data],
    split: Split,
    classes: Sequence[Any],
    *,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | Path | None = None,
    on_candidate: Callable[[Candidate], None] | None = None,
) -> _E:
    """Train on the split of a checked graph, or of checked graphs; the data is not changed.

    Args:
        estimator: The estimator to fit.
        data: The graph, or the graphs, with class indices in ``y``, -1 for unlabelled.
        split: The items to train on and to choose the epoch by.
        classes: The class names, by class index. Each has a labelled item.
        on_epoch: Called after every epoch.
        checkpoint: Where the state is saved; training continues from an existing file.
        on_candidate: Called before and after every candidate of ``model="auto"``.
    """
    estimator._check_parameters()
    y = labels(data)
    check_split(split, y)
    rows = np.flatnonzero(y.cpu().numpy() >= 0)
    codes = y.cpu().numpy()[rows]
    if isinstance(estimator, DEMONetClassifier):
        estimator._fit(copy.copy(data), rows, codes, split, on_epoch, checkpoint, on_candidate)
    else:
        estimator._fit([copy.copy(graph) for graph in data], codes, rows, split, on_epoch, checkpoint, on_candidate)
    estimator.classes_ = np.asarray(classes)
    return estimator


def load_checked(path: str | Path, kind: str) -> Estimator:
    """A saved estimator of ``"nodes"`` or of ``"graphs"``."""
    return DEMONetClassifier.load(path) if kind == "nodes" else DEMONetGraphClassifier.load(path)


def predict_checked(estimator: Estimator, data: Data | Sequence[Data]) -> np.ndarray:
    """``[items, classes]`` probabilities for the nodes of a checked graph, or for checked graphs."""
    if isinstance(estimator, DEMONetClassifier):
        estimator.graph_ = data
        return estimator.predict_proba()
    return estimator._outputs_of(list(data))


def embed_checked(estimator: Estimator, data: Data | Sequence[Data]) -> np.ndarray:
    """``[items, width]`` embeddings for the nodes of a checked graph, or of checked graphs."""
    if isinstance(estimator, DEMONetClassifier):
        estimator.graph_ = data
        return estimator.transform()
    return estimator._embed(list(data))
