"""Choosing on the validation part: every floor is a few scikit-learn models of which the best there is kept."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from demonet.data.splits import Split

Rows = Any  # a row an item: a float64 array, or a scipy CSR array where most features are zero


@dataclass(frozen=True)
class Choice:
    """A fitted model, and the share of the validation part that it gets right (0 where there is no such part)."""

    model: Any
    accuracy: float

    def predict(self, x: Rows) -> Tensor:
        """The class of each row."""
        return torch.from_numpy(np.asarray(self.model.predict(small_indices(x))).astype(np.int64))


def choose(models: Sequence[Any], x: Rows, y: Tensor, split: Split, untuned: Any) -> Choice:
    """Fit every model on the training rows and keep the best on the validation rows, the first of equals.

    Args:
        models: Unfitted scikit-learn classifiers, the plainest first.
        x: A row an item, dense or sparse.
        y: ``[items]`` classes; those outside the training and validation parts are not looked at.
        split: Who is trained on and who chooses.
        untuned: The classifier for a split without a validation part.
    """
    x = small_indices(x)
    train, val = split.train.numpy(), split.val.numpy()
    learned, asked = y.cpu().numpy()[train], y.cpu().numpy()[val]
    if np.unique(learned).size == 1:  # most classifiers refuse a single class; there is one thing to say about it
        models, untuned = [DummyClassifier()], DummyClassifier()
    rows, best = x[train], None
    for model in models if val.size else [untuned]:
        with warnings.catch_warnings():  # a regression that is not at its optimum yet is a candidate like another
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(rows, learned)
        accuracy = float(np.mean(model.predict(x[val]) == asked)) if val.size else 0.0
        if best is None or accuracy > best.accuracy:
            best = Choice(model, accuracy)
    if best is None:
        raise ValueError("there is no model to choose from")
    return best


def small_indices(x: Rows) -> Rows:
    """Sparse rows with the 32-bit indices that scikit-learn's solvers want; dense rows as they are."""
    if not isinstance(x, sparse.csr_array) or x.indices.dtype == np.int32:
        return x
    return sparse.csr_array((x.data, x.indices.astype(np.int32), x.indptr.astype(np.int32)), shape=x.shape)
