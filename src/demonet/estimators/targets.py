"""Classes of any type, as the user writes them, and the numbers 0, 1, 2, ... that a network is trained on."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d
from torch import Tensor

from demonet.errors import DemonetError


def encode_targets(y: Any, num_items: int) -> tuple[np.ndarray, np.ndarray]:
    """The classes in order, and the number of each item's class.

    >>> encode_targets(["b", "a", "b"], 3)
    (array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))
    """
    if y is None:
        raise DemonetError("y is None: training requires y to be passed", hint="one class for each item")
    try:
        y = column_or_1d(y, warn=True)
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise DemonetError("Input y contains NaN or infinity", hint="leave unlabelled items out")
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, DemonetError) else DemonetError(f"y: {error}") from None
    if len(y) != num_items:
        raise DemonetError(f"{len(y)} labels for {num_items} items", hint="one label for each item")
    if len(classes) < 2:
        raise DemonetError(f"the labels have {len(classes)} class", hint="at least 2 classes are needed")
    return classes, codes.astype(np.int64)


def weigh_classes(class_weight: Any, classes: np.ndarray, codes: np.ndarray) -> Tensor | None:
    """``[classes]`` weights: None, ``"balanced"`` (n / (classes * count)), or as a dict from class to weight says."""
    if class_weight is None:
        return None
    try:
        weights = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    except ValueError as error:
        raise DemonetError(f"class_weight: {error}") from None
    if isinstance(class_weight, dict) and (strangers := set(class_weight) - set(classes.tolist())):
        raise DemonetError(f"class_weight for {sorted(map(repr, strangers))[0]}, which no label is")
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise DemonetError(f"class_weight={class_weight!r}", hint="weights are numbers above 0")
    return torch.tensor(weights, dtype=torch.float32)


def class_state(classes: np.ndarray) -> dict[str, Any]:
    """The classes as plain values, for a file."""
    if not all(isinstance(name, str | int | float | bool) for name in classes.tolist()):
        raise DemonetError("only classes that are text, numbers or booleans can be saved")
    return {"dtype": classes.dtype.str, "values": classes.tolist()}


def classes_from_state(state: dict[str, Any]) -> np.ndarray:
    """What :func:`class_state` described."""
    return np.array(state["values"], dtype=np.dtype(state["dtype"]))
