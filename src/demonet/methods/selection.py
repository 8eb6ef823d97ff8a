"""Fitting several scikit-learn classifiers and selecting one on the validation part; the loss of each item."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from torch import Tensor

from demonet.closedform.link import shares
from demonet.data.rows import Rows
from demonet.data.splits import Split
from demonet.train.metrics import Task

_STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
_DEFAULT_STRENGTH = 1.0
_MAX_ITER = 300
CHOICE_FOLDS = 5  # of validation items


@dataclass(frozen=True)
class Selected:
    """A fitted model, its score on the validation part (0 where that part is empty), the number of classes or 0."""

    model: Any
    score: float
    classes: int

    def predict(self, x: Rows) -> Tensor:
        """The class of each row."""
        return torch.from_numpy(np.asarray(self.model.predict(int32_indices(x))).astype(np.int64))

    def outputs(self, x: Rows) -> tuple[Tensor, Tensor | None]:
        """The class of each row, and ``[items, classes]`` probabilities where the model has them; for tables, both."""
        if not self.classes:
            values = torch.from_numpy(self.model.predict(int32_indices(x)))
            return values, values
        if not hasattr(self.model, "predict_proba"):
            return self.predict(x), None
        known = self.model.predict_proba(int32_indices(x))
        probability = np.zeros((len(known), self.classes))
        probability[:, self.model.classes_] = known
        return self.predict(x), torch.from_numpy(probability)


class ByColumn(BaseEstimator):
    """A model for each column of a table of targets, fitted on its known entries.

    Args:
        model: An unfitted scikit-learn model; of a classifier, the probability of a 1 is predicted.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Rows, y: NDArray[np.float64], weight: NDArray[np.float64] | None = None) -> Self:
        """Fit every column; one in which all entries are the same needs no model.

        Of the models here, nearest neighbours take no ``weight`` of rows.
        """
        self.models_ = []
        for target in y.T:
            known = np.flatnonzero(~np.isnan(target))
            model = DummyRegressor() if np.ptp(target[known]) == 0 else clone(self.model)
            if hasattr(model, "n_neighbors"):
                model.set_params(n_neighbors=min(model.n_neighbors, known.size))
            own = {} if weight is None else {"sample_weight": weight[known]}
            self.models_.append(model.fit(X[known], target[known], **own))
        return self

    def predict(self, X: Rows) -> NDArray[np.float64]:
        """``[items, columns]``."""
        return np.stack([m.predict_proba(X)[:, 1] if is_classifier(m) else m.predict(X) for m in self.models_], 1)


class Choice:
    r"""The setting of least loss on validation items; and for each item, what the setting that is best without it says.

    A setting looks better than it is on the items that it was chosen on: of n items, by about 1/n of log-loss for every
    number that is chosen. A table of targets has choices of its own for each column. Beside models with fewer choices
    these look too good, unless the choice for an item is made on other folds.

    Args:
        items: Number of items.
        seed: Of the folds.
    """

    def __init__(self, items: int, seed: int) -> None:
        self._fold = np.random.default_rng(seed).permutation(items) % CHOICE_FOLDS
        rest = [self._fold != fold for fold in range(CHOICE_FOLDS)]
        self._counts = np.stack([np.ones(items, dtype=bool), *rest]).astype(np.float64)
        self._least = np.full(1 + CHOICE_FOLDS, np.inf)
        self.best: Any = None
        self.outputs = np.zeros(items)

    def offer(self, setting: Any, outputs: NDArray[np.float64], losses: NDArray[np.float64]) -> None:
        """Compare one more setting, with the output and the loss of each item; the first of equals stays."""
        total = self._counts @ losses
        better = total < self._least
        self._least[better] = total[better]
        self.best = setting if better[0] else self.best
        rows = better[1:][self._fold]
        self.outputs[rows] = outputs[rows]


def accuracy(y: NDArray[np.int64], probability: NDArray[np.float64]) -> float:
    """The share of rows whose most probable class is right."""
    return float(np.mean(probability.argmax(1) == y))


def select(
    models: Sequence[Any],
    x: Rows,
    y: Tensor,
    split: Split,
    default: Any,
    kept: Any = None,
    judge: Callable[[Any, Any], float] = accuracy,
) -> Selected:
    """Fit every model on the training rows and select the best on the validation rows, the first among equals.

    Args:
        models: Unfitted scikit-learn models, the simplest first.
        x: One row per item, dense or sparse.
        y: ``[items]`` classes, or ``[items, columns]`` numbers, for which every column has a model of its own. Only
            those of the training and validation parts are used.
        split: Indices of the items of each part.
        default: The model for a split without a validation part.
        kept: What an earlier selection chose: fitted anew, and the only candidate.
        judge: The score of targets and ``[items, classes or columns]`` probabilities or values; larger is better.
    """
    x = int32_indices(x)
    train, val = split.train.numpy(), split.val.numpy()
    y_train, y_val = y.cpu().numpy()[train], y.cpu().numpy()[val]
    classes = int(y.max()) + 1 if y.dim() == 1 else 0
    if not classes:
        models, default = [ByColumn(model) for model in models], ByColumn(default)
    elif np.unique(y_train).size == 1:  # most classifiers refuse a single class
        models, default = [DummyClassifier()], DummyClassifier()
    if kept is not None:
        models = [clone(kept)]
    elif not val.size:
        models = [default]
    rows, best = x[train], None
    for model in models:
        with warnings.catch_warnings():  # a model that has not converged is a candidate as well
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(rows, y_train)
        found = Selected(model, 0.0, classes)
        if val.size:
            predicted, outputs = found.outputs(x[val])
            outputs = F.one_hot(predicted, classes) if outputs is None else outputs
            found = replace(found, score=judge(y_val, outputs.numpy()))
        if best is None or found.score > best.score:
            best = found
    if best is None:
        raise ValueError("there is no model to select from")
    return best


def logistic(
    x: Rows,
    y: Tensor,
    split: Split,
    *,
    one_vs_rest: bool = False,
    kept: Any = None,
    judge: Callable[[Any, Any], float] = accuracy,
) -> Selected:
    r"""Logistic regression with L2; the C with the best validation accuracy, the smallest among equals.

    .. math::
        \min_W \; \tfrac12 \lVert W \rVert^2 - C \sum\nolimits_{v \in train} \log p_W(y_v \mid x_v)

    Args:
        x: One row per item, dense or sparse.
        y: ``[items]`` classes; only those of the training and validation parts are used.
        split: Indices of the items of each part.
        one_vs_rest: Fit one binary regression per class instead of one multinomial regression.
        kept, judge: As in :func:`select`.
    """

    def regression(strength: float) -> Any:
        model = LogisticRegression(C=strength, max_iter=_MAX_ITER)
        return OneVsRestClassifier(model) if one_vs_rest else model

    models = [regression(c) for c in _STRENGTHS]
    return select(models, x, y, split, default=regression(_DEFAULT_STRENGTH), kept=kept, judge=judge)


def item_losses(
    task: Task, outputs: NDArray[np.float64], y: NDArray[Any], weight: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """``[..., items]``: the log-loss of each item's class; of tables, the binary log-loss or the squared error.

    Of a table, an item has the sum over its known entries, scaled so that the mean over items is that over entries.
    With weights, the mean over items is the weighted mean.

    Args:
        task: What the targets are.
        outputs: ``[..., items, outputs]`` probabilities or values.
        y: ``[items]`` classes, or ``[items, outputs]`` with NaN for unknown.
        weight: ``[items]``; None if all are 1.
    """
    if task == "classify":
        taken = np.take_along_axis(outputs, np.broadcast_to(y[:, None], (*outputs.shape[:-1], 1)), -1)
        losses = -np.log(np.maximum(taken[..., 0], 1e-12))
        return losses if weight is None else losses * shares(weight)
    known, target = ~np.isnan(y), np.nan_to_num(y)
    known = known if weight is None else known * weight[:, None]
    if task == "regress":
        each = (outputs - target) ** 2
    else:
        each = -np.log(np.maximum(np.where(target == 1, outputs, 1 - outputs), 1e-12))
    return (each * known).sum(-1) * (len(y) / (known.sum() or 1))


def int32_indices(x: Rows) -> Rows:
    """Sparse rows with the 32-bit indices that scikit-learn's solvers expect; dense rows unchanged."""
    if not isinstance(x, sparse.csr_array) or x.indices.dtype == np.int32:
        return x
    return sparse.csr_array((x.data, x.indices.astype(np.int32), x.indptr.astype(np.int32)), shape=x.shape)
