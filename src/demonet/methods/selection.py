"""Fitting several scikit-learn classifiers and selecting one on the validation part."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from torch import Tensor

from demonet.data.splits import Split

Rows = Any  # one row per item: a float64 array, or a scipy CSR array where most features are zero

_STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
_DEFAULT_STRENGTH = 1.0
_MAX_ITER = 300


@dataclass(frozen=True)
class Selected:
    """A fitted classifier, its accuracy on the validation part (0 where that part is empty), the number of classes."""

    model: Any
    accuracy: float
    classes: int

    def predict(self, x: Rows) -> Tensor:
        """The class of each row."""
        return torch.from_numpy(np.asarray(self.model.predict(int32_indices(x))).astype(np.int64))

    def outputs(self, x: Rows) -> tuple[Tensor, Tensor | None]:
        """The class of each row, and ``[items, classes]`` probabilities where the classifier has them."""
        if not hasattr(self.model, "predict_proba"):
            return self.predict(x), None
        known = self.model.predict_proba(int32_indices(x))
        probability = np.zeros((len(known), self.classes))
        probability[:, self.model.classes_] = known
        return self.predict(x), torch.from_numpy(probability)


def select(models: Sequence[Any], x: Rows, y: Tensor, split: Split, default: Any, kept: Any = None) -> Selected:
    """Fit every model on the training rows and select the best on the validation rows, the first among equals.

    Args:
        models: Unfitted scikit-learn classifiers, the simplest first.
        x: One row per item, dense or sparse.
        y: ``[items]`` classes; only those of the training and validation parts are used.
        split: Indices of the items of each part.
        default: The classifier for a split without a validation part.
        kept: What an earlier selection chose: fitted anew, and the only candidate.
    """
    x = int32_indices(x)
    train, val = split.train.numpy(), split.val.numpy()
    y_train, y_val = y.cpu().numpy()[train], y.cpu().numpy()[val]
    if np.unique(y_train).size == 1:  # most classifiers refuse a single class
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
        accuracy = float(np.mean(model.predict(x[val]) == y_val)) if val.size else 0.0
        if best is None or accuracy > best.accuracy:
            best = Selected(model, accuracy, int(y.max()) + 1)
    if best is None:
        raise ValueError("there is no model to select from")
    return best


def logistic(x: Rows, y: Tensor, split: Split, *, one_vs_rest: bool = False, kept: Any = None) -> Selected:
    r"""Logistic regression with L2; the C with the best validation accuracy, the smallest among equals.

    .. math::
        \min_W \; \tfrac12 \lVert W \rVert^2 - C \sum\nolimits_{v \in train} \log p_W(y_v \mid x_v)

    Args:
        x: One row per item, dense or sparse.
        y: ``[items]`` classes; only those of the training and validation parts are used.
        split: Indices of the items of each part.
        one_vs_rest: Fit one binary regression per class instead of one multinomial regression.
        kept: As in :func:`select`.
    """

    def regression(strength: float) -> Any:
        model = LogisticRegression(C=strength, max_iter=_MAX_ITER)
        return OneVsRestClassifier(model) if one_vs_rest else model

    models = [regression(c) for c in _STRENGTHS]
    return select(models, x, y, split, default=regression(_DEFAULT_STRENGTH), kept=kept)


def int32_indices(x: Rows) -> Rows:
    """Sparse rows with the 32-bit indices that scikit-learn's solvers expect; dense rows unchanged."""
    if not isinstance(x, sparse.csr_array) or x.indices.dtype == np.int32:
        return x
    return sparse.csr_array((x.data, x.indices.astype(np.int32), x.indptr.astype(np.int32)), shape=x.shape)
