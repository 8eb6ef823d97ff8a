"""Simple baselines (floors) on the same test items: no input, the degree alone, and the attributes alone.

Besides these, which every task has, the registered methods that ask for it (``beside_fit``) are measured for classes.

One rule for the model and its floors. *Strict*: fitted on the training part, settings chosen on validation. *Refit*:
fitted again on training and validation items with these settings.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from torch_geometric.data import Data

from demonet import methods
from demonet.data.splits import Split
from demonet.methods.attributes import graph_attributes, node_attributes
from demonet.methods.selection import int32_indices
from demonet.methods.simple import degree_rows
from demonet.runs.evaluate import value_of
from demonet.runs.inputs import Inputs
from demonet.train.metrics import Metric
from demonet.train.recipes import family_of

Array = NDArray[Any]
RULES = ("strict", "refit")
FLOOR_NAMES = {"degree-knn": "degree only", "attribute-lr": "attributes only", "attribute-ridge": "attributes only"}
"""What people read instead of the names of methods."""
_NEIGHBOURS = (1, 3, 5, 9, 15)
_STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)


def floor_scores(inputs: Inputs, split: Split, metric: Metric) -> dict[str, dict[str, float]]:
    """By rule and name, the test metric of the floors; nothing where there is no test part.

    Args:
        inputs: The targets, and the graph or graphs.
        split: The parts.
        metric: What is measured, and what validation chooses settings by.
    """
    found: dict[str, dict[str, float]] = {rule: {} for rule in RULES}
    if not split.test.numel():
        return found
    used = np.sort(np.concatenate([part.numpy() for part in (split.train, split.val, split.test)]))
    train, val, test = (np.searchsorted(used, part.numpy()) for part in (split.train, split.val, split.test))
    y = inputs.data.y.numpy()[used]
    for name, outputs in _floors(inputs, split, used, train, val, metric):
        for rule, rows in zip(RULES, outputs, strict=True):
            value = value_of(metric, inputs.task, y[test], rows[test])
            if value is not None:
                found[rule][name] = value
    return found


def _floors(
    inputs: Inputs, split: Split, used: Array, train: Array, val: Array, metric: Metric
) -> Iterator[tuple[str, tuple[Array, Array]]]:
    """The strict and the refitted outputs of every floor: probabilities or values.

    Args:
        inputs: The targets, and the graph or graphs.
        split: The parts.
        used: The items of the split; outputs are for these alone, and other arguments count among them.
        train, val: Training and validation items.
        metric: What validation chooses settings by.
    """
    task, y = inputs.task, inputs.data.y.numpy()[used]
    classes, regress = task == "classify", task == "regress"
    table = np.eye(len(inputs.names))[y] if classes else y
    both = np.sort(np.concatenate([train, val]))
    fit: Callable[[Any, Any, Array], Array] = _of_classes(table) if classes else _by_column(table)

    def best(models: Sequence[Any], x: Any) -> tuple[Array, Array]:
        """The model with the best validation metric, the first among equals, and the same fitted again."""
        every = [fit(model, x, train) for model in models]
        sign = 1 if metric.larger_is_better else -1
        values = [value_of(metric, task, y[val], outputs[val]) for outputs in every]
        chosen = int(np.argmax([-np.inf if value is None else sign * value for value in values]))
        return every[chosen], fit(models[chosen], x, both)

    means = (np.tile(np.nanmean(table[rows], axis=0), (len(table), 1)) for rows in (train, both))
    yield "mean" if regress else "majority", (next(means), next(means))
    make = KNeighborsClassifier if classes else KNeighborsRegressor
    yield "degree-knn", best([make(k) for k in _NEIGHBOURS], degree_rows(inputs.data)[used])
    if inputs.graphs[0].x is not None:
        if isinstance(inputs.data, Data):
            x = node_attributes(inputs.data, used)
        else:
            x = graph_attributes(inputs.data)[used]
        linear = [Ridge(1 / c) if regress else LogisticRegression(C=c, max_iter=300) for c in _STRENGTHS]
        yield "attribute-ridge" if regress else "attribute-lr", best(linear, int32_indices(x))
    for method in map(methods.get, methods.names() if classes else ()):
        if method.beside_fit and method.applies(family_of(inputs.data), attributes=inputs.graphs[0].x is not None):
            items = inputs.data if isinstance(inputs.data, Data) else list(inputs.data)
            fitted = method().fit(items, split)
            strict, again = (one.predict_proba().numpy()[used] for one in (fitted, fitted.refit(items, split)))
            yield method.name, (strict, again)


def _of_classes(table: Array) -> Callable[[Any, Any, Array], Array]:
    """``[items, classes]`` probabilities of a model that is fitted on some rows."""

    def fit(model: Any, x: Any, rows: Array) -> Array:
        y, outputs = table[rows].argmax(1), np.zeros(table.shape)
        if np.ptp(y) == 0:  # most classifiers refuse a single class
            outputs[:, y[0]] = 1.0
            return outputs
        fitted = _fitted(model, x, rows, y)
        outputs[:, fitted.classes_] = _by_distinct_row(fitted.predict_proba, model, x)
        return outputs

    return fit


def _by_column(table: Array) -> Callable[[Any, Any, Array], Array]:
    """``[items, columns]``: a model that is fitted on the known entries of each column in some rows."""

    def fit(model: Any, x: Any, rows: Array) -> Array:
        columns = []
        for target in table.T:
            known = rows[~np.isnan(target[rows])]
            if np.ptp(target[known]) == 0:
                columns.append(np.full(len(target), target[known][0]))
                continue
            fitted = _fitted(model, x, known, target[known])
            if isinstance(model, LogisticRegression):
                columns.append(fitted.predict_proba(x)[:, 1])
            else:
                columns.append(_by_distinct_row(fitted.predict, model, x))
        return np.stack(columns, 1)

    return fit


def _fitted(model: Any, x: Any, rows: Array, y: Array) -> Any:
    model = clone(model)
    if hasattr(model, "n_neighbors"):
        model.set_params(n_neighbors=min(model.n_neighbors, rows.size))
    with warnings.catch_warnings():  # a regression that has not converged is a floor as well
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(x[rows], y)


def _by_distinct_row(predict: Callable[[Any], Array], model: Any, x: Any) -> Array:
    """Predictions; those of neighbours once for all nodes of one degree."""
    if not hasattr(model, "n_neighbors"):
        return predict(x)
    distinct, inverse = np.unique(x, axis=0, return_inverse=True)
    return predict(distinct)[inverse]
