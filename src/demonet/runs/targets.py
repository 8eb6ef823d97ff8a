"""The targets of a run: whether labels are classes, 0/1 labels or numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from demonet.data.values import is_number, measures
from demonet.errors import DemonetError, Hint
from demonet.runs.inputs import Inputs
from demonet.train.metrics import Task

_REASONS = {
    "classify": "labels are whole numbers that repeat; {task} treats them as numbers",
    "beside": "graphs have labels; {task} uses their attributes",
    "multilabel": "several columns of 0 and 1; {task} treats them as numbers",
    "regress": "labels are numbers; {task} treats them as classes",
}
_OTHER = {"classify": "regress", "multilabel": "regress", "regress": "classify"}


def with_targets(inputs: Inputs, task: str = "auto") -> tuple[Inputs, Hint]:
    """The inputs with targets for a task in ``y``, and a line that says what the task is and why.

    ``"auto"`` decides by the labels:

    - One column of numbers is a regression, if a number has a fractional part, or if there are more than 20 distinct
      numbers and these are more than half of all. Empty cells and NaN are unlabelled.
    - Several columns of numbers are a multi-label classification if all are 0 or 1, and a regression of several targets
      otherwise. Empty cells are unknown.
    - Anything else is a classification, by the first column of labels. So are TU folders with labels of graphs;
      ``"regress"`` uses their graph attributes. A few words in one column of numbers that measure are an error.
    """
    table = inputs.labels
    if table is not None and table.error is not None and len(table.names) == 1 and task in ("auto", "regress"):
        raise table.error
    if table is not None and (table.values is None or (table.beside_classes and task != "regress")):
        table = None
    numbers = _column(inputs) if table is None else table.values
    reason, other = "", {}
    if task == "auto" and numbers is None:
        task, reason = "classify", " (labels are classes)"
    elif task == "auto":
        assert numbers is not None
        task = _detect(numbers)
        beside = inputs.labels is not None and inputs.labels.beside_classes
        reason, other = f" ({_REASONS['beside' if beside else task]})", {"task": _OTHER[task]}
    if inputs.labels is not None and inputs.labels.error is not None and len(inputs.labels.names) > 1:
        why = f"only the first column of labels is used: {inputs.labels.error}"
        if numbers is None:
            why = f"of the {len(inputs.labels.names)} columns beside the ids, {inputs.labels.names[0]!r} has the labels"
        reason += "; " + why.replace("{", "{{").replace("}", "}}")
    line = Hint(f"task: {task}{reason}", **other)
    if task == "classify":
        return inputs, line
    if task == "multilabel":
        _check_labels(inputs, table.values if table is not None else None)
        numbers = None if numbers is None else np.where(numbers == -1, np.nan, numbers)
    if numbers is None:
        name = next((name for name in inputs.names if not _is_number(name)), None)
        problem = "no item has a label" if name is None else f"label {name!r} is not a number"
        raise DemonetError(problem, argument="task", file=inputs.files.get("labels"))
    names = [inputs.label_name or "target"] if table is None else table.names
    _put(inputs.data, torch.from_numpy(numbers))
    return replace(inputs, task=cast(Task, task), names=names), line


def _is_number(name: Any) -> bool:
    if isinstance(name, str):
        return is_number(name) and abs(float(name)) != np.inf
    return isinstance(name, int | float) and not isinstance(name, bool)


def _column(inputs: Inputs) -> NDArray[np.float64] | None:
    """``[items, 1]`` the labels as numbers; None if they are not."""
    y = inputs.data.y
    if y is None or not inputs.names or not all(map(_is_number, inputs.names)):
        return None
    values = np.array([*map(float, inputs.names), np.nan])
    return values[y.numpy()][:, None]  # -1, unlabelled, is the last


def _detect(numbers: NDArray[np.float64]) -> str:
    """The task of columns of numbers."""
    known = numbers[~np.isnan(numbers)]
    if numbers.shape[1] > 1:
        return "multilabel" if np.isin(known, (0, 1)).all() else "regress"
    return "regress" if measures(known) else "classify"


def _check_labels(inputs: Inputs, values: NDArray[np.float64] | None) -> None:
    """Refuse labels that are not a table of 0 and 1."""
    file = inputs.files.get("labels")
    if values is None or values.shape[1] < 2:
        if inputs.labels is not None and inputs.labels.error is not None:
            raise inputs.labels.error
        hint = "a table of ids and two or more columns of 0 and 1, empty for unknown"
        raise DemonetError("'multilabel' needs more than one column of labels", argument="task", file=file, hint=hint)
    bad = np.argwhere(~(np.isnan(values) | np.isin(values, (-1, 0, 1))))
    if bad.size:
        row, column = bad[0]
        assert inputs.labels is not None
        where = f"{inputs.kind.removesuffix('s')} {inputs.ids[row]!r}, column {inputs.labels.names[column]!r}"
        hint = "0, 1, or empty for unknown"
        raise DemonetError(f"label {values[row, column]:g} of {where}", argument="task", file=file, hint=hint)


def _put(data: Any, y: Tensor) -> None:
    if isinstance(data, Data):
        data.y = y
        return
    for graph, row in zip(data, y, strict=True):
        graph.y = row[None]
