"""A fitted model as one tensor file: weights, feature map, tasks, objective, classes, parameters. No pickle.

The graph is not in the file: it may be large, and the user has it.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from torch import Tensor

from demonet.data.columns import Columns
from demonet.data.splits import Split
from demonet.errors import DemonetError, DemonetWarning
from demonet.estimators.closed_form import MODELS
from demonet.estimators.core import Fitted, two_nodes
from demonet.estimators.network import NetworkModel
from demonet.estimators.targets import class_state, classes_from_state
from demonet.tensorfile import read_tensors, write_tensors
from demonet.train.objective import objective_from_state

FORMAT = "demonet-model-3"
_PARTS = ("train", "val", "test")


def save_model(path: str | Path, fitted: Fitted) -> None:
    """Write a model atomically."""
    state, arrays = fitted.model.state()
    tensors = {f"model.{name}": value for name, value in arrays.items()}
    tensors |= {f"split.{part}": getattr(fitted.split, part) for part in _PARTS}
    facts = {
        "estimator": fitted.estimator,
        "parameters": fitted.parameters,
        "kind": fitted.model.name,
        "model": state,
        "objective": fitted.objective.state(),
        "classes": class_state(fitted.classes),
        "num_attributes": fitted.num_attributes,
        "columns": None if fitted.columns is None else fitted.columns.state(),
        "weighted": fitted.weighted,
        "split": {"name": fitted.split.name, "seed": fitted.split.seed},
    }
    write_tensors(path, FORMAT, tensors, facts)


def load_model(path: str | Path, estimator: str, items: str) -> Fitted:
    """Read a model; a file that is damaged, incomplete, of another format or class is refused.

    Args:
        path: The file.
        estimator: The name of the class of its estimator.
        items: ``"nodes"`` or ``"graphs"``.
    """
    tensors, facts, _ = read_tensors(path, FORMAT)
    try:
        if facts["estimator"] != estimator:
            raise DemonetError(f"a {facts['estimator']}, not a {estimator}", file=path, hint="load it with its class")
        fitted = _assemble(facts, tensors)
        _try(fitted, items)
    except DemonetError as error:
        raise error if error.file is not None else DemonetError(f"does not hold a model: {error}", file=path) from None
    except (RuntimeError, KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise DemonetError(f"does not hold a model: {error!r}", file=path) from error
    return fitted


def _assemble(facts: dict[str, Any], tensors: dict[str, Tensor]) -> Fitted:
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "split": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = tensor
    classes, objective = classes_from_state(facts["classes"]), objective_from_state(facts["objective"])
    if (classes is None) != (objective.task == "regress"):
        raise DemonetError(f"classes do not match the task {objective.task!r}")
    if facts["kind"] == NetworkModel.name:
        model: Any = NetworkModel.from_state(facts["model"], parts["model"], objective)
    else:
        model = MODELS[facts["kind"]].from_state(facts["model"], parts["model"])
    columns = None if facts["columns"] is None else Columns.from_state(facts["columns"])
    if columns is not None and len(columns.names) != int(facts["num_attributes"]):
        raise DemonetError(f"{len(columns.names)} columns for {facts['num_attributes']} attributes")
    weighted = facts["weighted"]
    if weighted is not None and not isinstance(weighted, bool):
        raise DemonetError(f"weighted is {weighted!r}")
    split = facts["split"]
    return Fitted(
        estimator=facts["estimator"],
        parameters=facts["parameters"],
        model=model,
        objective=objective,
        classes=classes,
        num_attributes=int(facts["num_attributes"]),
        split=Split(split["name"], split["seed"], **{part: parts["split"][part] for part in _PARTS}),
        columns=columns,
        weighted=weighted,
    )


def _try(fitted: Fitted, items: str) -> None:
    """Run the model on a graph of two nodes, so that a missing part is found when the model is loaded."""
    if fitted.model.needs_fitted_graph:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemonetWarning)  # that this is another graph
        fitted.model.outputs(two_nodes(items, fitted.num_attributes))
