"""Targets as users write them, and as networks are trained on them: classes, tables of labels, numbers.

The two mixins are what classifiers and regressors add to the estimators of nodes and of graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d
from torch import Tensor
from torch_geometric.data import Data

from demonet.checks import labelled
from demonet.data.ids import warn_of_codes, without_missing
from demonet.data.splits import Split
from demonet.data.values import is_missing
from demonet.errors import DemonetError
from demonet.train.metrics import METRICS, metric_of_classes, positive_class
from demonet.train.objective import Classify, Multilabel, Objective, Regress

if TYPE_CHECKING:
    from demonet.estimators.core import Fitted

Array: TypeAlias = NDArray[Any]
WEIGHTED = "balanced"
"""The metric of a classification with class weights, if none is chosen."""


@dataclass(kw_only=True, eq=False, repr=False)
class Classification(ClassifierMixin):
    """Classes or tables of labels: the classifier's part of an estimator."""

    metric: str | None = None
    positive: Any = None
    class_weight: str | dict[Any, float] | None = None

    def _encode(self, y: Any, num_items: int) -> tuple[Tensor, Array | None]:
        """Targets as the user gives them, as codes or a table, and the classes or labels."""
        y = _without_codes(y)
        _check_y(y, num_items, "one class for each item")
        if np.ndim(y) == 2 and np.shape(y)[1] > 1:
            table = _table(y, num_items, Multilabel())
            return table, np.arange(table.size(1))
        classes, codes = encode_classes(y)
        return torch.from_numpy(codes), classes

    def _objective(self, y: Tensor, classes: Array | None) -> Objective:
        """What to train for, with encoded targets."""
        if y.dim() == 2:
            if self.positive is not None:
                raise DemonetError(f"{self.positive!r} for a table of labels", argument="positive", hint="use None")
            return Multilabel(metric=self.metric or "")
        assert classes is not None
        counts = y[y >= 0].bincount(minlength=len(classes)).numpy()
        metric = self.metric or (metric_of_classes(counts) if self.class_weight is None else WEIGHTED)
        positive = positive_class(metric, classes.tolist(), counts, self.positive)
        return Classify(metric=metric, positive=positive)

    def _own_objective(self, items: Data | Sequence[Data]) -> Objective:
        """The objective for the ``y`` that a Data, or each of several, has: classes or rows of labels."""
        y = items.get("y") if isinstance(items, Data) else items[0].get("y")
        if y is not None and not isinstance(items, Data):
            y = y.view(1, -1)
        return Multilabel() if y is not None and y.dim() == 2 and y.size(1) > 1 else Classify()

    def _own_targets(self, y: Tensor, names: Any) -> Array:
        """The targets of labelled items, classes by name where they have names."""
        values = y.cpu().numpy()
        return values if names is None or values.ndim == 2 else np.asarray(names)[values]

    def _weights(self, y: Tensor, classes: Array | None, split: Split, weight: Array | None) -> Array | None:
        """``[items]`` what each counts: its ``weight`` times that of its class; None if all count the same.

        Classes get their weights from the training and validation items alone.
        """
        if self.class_weight is None:
            return weight
        if y.dim() == 2:
            raise DemonetError(f"class_weight={self.class_weight!r} for a table of labels", hint="use None")
        assert classes is not None
        rows, codes = torch.cat([split.train, split.val]).numpy(), y.numpy()
        own = None if weight is None else weight[rows]
        found = weigh_classes(self.class_weight, classes, codes[rows], own)[codes]  # of unlabelled items any
        return found if weight is None else found * weight

    def _decide(self, outputs: Array, fitted: Fitted) -> Array:
        """Predictions from probabilities."""
        found = fitted.objective.decide(torch.from_numpy(outputs)).numpy()
        if fitted.objective.task == "multilabel":
            return found
        assert fitted.classes is not None
        return fitted.classes[found]

    def _score(self, y: Any, predicted: Array, sample_weight: Any = None) -> float:
        """Accuracy; of tables of labels, the share of rows in which every known label is right."""
        if predicted.ndim == 2:
            table = Multilabel().check(torch.from_numpy(_numbers(y)), len(predicted)).numpy()
            known, right = ~np.isnan(table).all(1), ((predicted == table) | np.isnan(table)).all(1)
        else:
            column = column_or_1d(_without_codes(y))
            known, right = ~_missing(column), predicted == column
        weights = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(np.average(right[known], weights=weights))

    def predict_log_proba(self, X: Any = None, **graph: Any) -> Array:
        """The logarithm of ``predict_proba``, which takes the same arguments; minus infinity for 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, **graph))

    def __sklearn_tags__(self) -> Any:
        """Tables of labels are taken too."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class Regression(RegressorMixin):
    """One or several numbers an item: the regressor's part of an estimator."""

    metric: str | None = None
    loss: str = "mse"

    def _encode(self, y: Any, num_items: int) -> tuple[Tensor, Array | None]:
        _check_y(y, num_items, "one number for each item")
        return _table(y, num_items, Regress()), None

    def _objective(self, y: Tensor, classes: Array | None) -> Objective:
        return Regress(metric=self.metric or "", error=cast(Literal["mse", "mae"], self.loss))

    def _own_objective(self, items: Data | Sequence[Data]) -> Objective:
        return Regress()

    def _own_targets(self, y: Tensor, names: Any) -> Array:
        return y.cpu().numpy()

    def _weights(self, y: Tensor, classes: Array | None, split: Split, weight: Array | None) -> Array | None:
        return weight

    def _decide(self, outputs: Array, fitted: Fitted) -> Array:
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def _score(self, y: Any, predicted: Array, sample_weight: Any = None) -> float:
        """R², the mean over the target columns."""
        table = _numbers(y).reshape(len(predicted), -1)
        weights = None if sample_weight is None else np.asarray(sample_weight)
        return METRICS["r2"].functions["regress"](table, predicted.reshape(table.shape), weights)

    def __sklearn_tags__(self) -> Any:
        """Several target columns are taken too."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _table(y: Any, num_items: int, objective: Objective) -> Tensor:
    """A checked table of targets, of which one at least is known."""
    table = objective.check(torch.from_numpy(_numbers(y)), num_items)
    if not bool(labelled(table).any()):
        raise DemonetError("Input y contains NaN: no item has a target")
    return table


def scattered(y: Tensor, rows: Array, num_items: int) -> Tensor:
    """The targets of all items, -1 or NaN for those not in ``rows``."""
    whole = y.new_full((num_items, *y.shape[1:]), torch.nan if y.is_floating_point() else -1)
    whole[torch.from_numpy(rows)] = y
    return whole


def check_twice(
    y: Tensor, weight: Array | None, whole: Tensor, every: Array | None, rows: Array, ids: Any, classes: Array | None
) -> None:
    """Refuse a node that is listed twice with two targets or weights: the last of them are those of all items."""
    kept = whole[torch.from_numpy(rows)]
    differs = ((y != kept) & ~(y.isnan() & kept.isnan())).view(len(rows), -1).any(1).numpy()
    if differs.any():
        place = int(differs.argmax())
        values: list[Any] = [y[place].tolist(), kept[place].tolist()]
        if y.dim() == 1 and classes is not None:
            values = ["unlabelled" if code < 0 else classes.tolist()[code] for code in values]
        raise DemonetError(f"node {ids[rows[place]]!r} has two targets, {values[1]!r} and {values[0]!r}")
    if weight is not None and every is not None and (differs := weight != every[rows]).any():
        place = int(differs.argmax())
        raise DemonetError(f"node {ids[rows[place]]!r} has two weights, {every[rows[place]]} and {weight[place]}")


def encode_classes(y: Any) -> tuple[Array, NDArray[np.int64]]:
    """The sorted classes, and the class number of each item; -1 for missing ones, which are unlabelled.

    >>> encode_classes(["b", "a", None, "b"])
    (array(['a', 'b'], dtype='<U1'), array([ 1,  0, -1,  1]))
    """
    if isinstance(y, list) and any(_is_gap(value) for value in y):  # beside words, numpy would write NaN as "nan"
        y = np.array([None if _is_gap(value) else value for value in y], dtype=object)
    try:
        y = column_or_1d(y, warn=True)
        missing = _missing(y)
        known = np.array(y[~missing].tolist()) if missing.any() else y
        if not known.size:
            raise DemonetError("Input y contains NaN: no item has a label")
        if known.dtype.kind == "f" and np.isinf(known).any():
            raise DemonetError("Input y contains infinity")
        check_classification_targets(known)
        classes, found = np.unique(known, return_inverse=True)
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, DemonetError) else DemonetError(f"y: {error}") from None
    if len(classes) < 2:
        raise DemonetError(f"the labels have {len(classes)} class", hint="at least 2 classes are needed")
    codes = np.full(len(y), -1, dtype=np.int64)
    codes[~missing] = found
    warn_of_codes(classes.tolist())
    return classes, codes


def weigh_classes(
    class_weight: Any, classes: Array, codes: NDArray[np.int64], weight: Array | None = None
) -> NDArray[np.float64]:
    """``[classes]`` weights: from a dict of class to weight, 1 for the others; or ``"balanced"``, by the items.

    Balanced classes have the same total, and the mean weight of an item stays as it is; a class without an item has 1.

    >>> weigh_classes("balanced", np.array(["a", "b"]), np.array([0, 0, 0, 1])).round(3).tolist()
    [0.667, 2.0]
    """
    if isinstance(class_weight, dict):
        if unknown := set(class_weight) - set(classes.tolist()):
            raise DemonetError(f"class_weight for {sorted(map(repr, unknown))[0]}, which is not a class of y")
        for name, value in class_weight.items():
            if not (isinstance(value, Real) and 0 < float(value) < np.inf):
                raise DemonetError(f"class_weight {value!r} of {name!r}", hint="weights are finite numbers above 0")
        return np.array([class_weight.get(name, 1.0) for name in classes.tolist()], dtype=np.float64)
    count = np.bincount(codes, weight, minlength=len(classes))
    known = count > 0
    return np.where(known, count.sum() / (known.sum() * np.where(known, count, 1)), 1.0)


def check_weights(given: Any, num_items: int) -> Array | None:
    """``[items]`` the weights of items; None if all are 1."""
    if given is None:
        return None
    try:
        found = np.array(given.detach().cpu().numpy() if isinstance(given, Tensor) else given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DemonetError(f"sample_weight: {error}") from None
    if found.shape != (num_items,):
        problem = f"sample_weight of shape {found.shape} for {num_items} items"
        raise DemonetError(problem, hint="one weight for each item, as y has them")
    if (wrong := ~(np.isfinite(found) & (found >= 0))).any():
        place = int(np.flatnonzero(wrong)[0])
        raise DemonetError(f"sample_weight {found[place]} of item {place}", hint="weights are finite and not below 0")
    if not found.any():
        raise DemonetError("all sample weights are zero", hint="an item with weight 0 is not in training")
    return None if (found == 1).all() else found


def narrowed(y: Tensor, classes: Array | None) -> tuple[Tensor, Array | None]:
    """Encoded targets of which some were taken away, and the classes that are left."""
    if not bool(labelled(y).any()):
        raise DemonetError("no item with a weight above zero has a target")
    if classes is None or y.dim() == 2:
        return y, classes
    left, codes = y[y >= 0].unique(return_inverse=True)
    if len(left) < 2:
        raise DemonetError(f"items with a weight above zero have {len(left)} class", hint="at least 2 are needed")
    again = y.clone()
    again[y >= 0] = codes
    return again, classes[left.numpy()]


def class_state(classes: Array | None) -> dict[str, Any] | None:
    """The classes as plain values, for a file."""
    if classes is None:
        return None
    if not all(isinstance(name, str | int | float | bool) for name in classes.tolist()):
        raise DemonetError("only classes that are text, numbers or booleans can be saved")
    return {"dtype": classes.dtype.str, "values": classes.tolist()}


def classes_from_state(state: dict[str, Any] | None) -> Array | None:
    """The inverse of :func:`class_state`."""
    return None if state is None else np.array(state["values"], dtype=np.dtype(state["dtype"]))


def _check_y(y: Any, num_items: int, hint: str) -> None:
    if y is None:
        raise DemonetError("y is None: training requires y to be passed", hint=hint)
    count = np.shape(y)[0] if np.ndim(y) else 0
    if count != num_items:
        raise DemonetError(f"{count} labels for {num_items} items", hint=hint)


def _numbers(y: Any) -> NDArray[np.float64]:
    """A float64 array, None as NaN."""
    try:
        y = y.detach().cpu().numpy() if isinstance(y, Tensor) else y
        y = np.array(y)  # a copy: torch does not take arrays that are read-only
        if y.dtype == object:
            y = np.array([np.nan if is_missing(value) else value for value in y.flat]).reshape(y.shape)
        numbers = y.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DemonetError(f"y: {error}") from None
    if np.isinf(numbers).any():
        raise DemonetError("Input y contains infinity")
    return numbers


def _is_gap(value: Any) -> bool:
    return not isinstance(value, str) and is_missing(value)


def _missing(y: Array) -> NDArray[np.bool_]:
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype.kind not in "OUST":
        return np.zeros(len(y), dtype=bool)
    return np.array([value is None for value in without_missing(y.tolist())], dtype=bool)


def _without_codes(y: Any) -> Any:
    """Class numbers in a tensor as a list, with None for -1; anything else as it is."""
    if not isinstance(y, Tensor) or y.is_floating_point() or y.dim() != 1:
        return y
    return [None if code == -1 else code for code in y.tolist()]
