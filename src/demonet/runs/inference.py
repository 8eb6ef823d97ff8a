"""Inference: predictions and embeddings of a finished run, for its own graph or another one."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from demonet.data.graph_set import GraphSet
from demonet.errors import DemonetError, DemonetWarning
from demonet.estimators.checked import embed_checked, load_checked, predict_checked
from demonet.runs.folder import MODEL, load_run
from demonet.runs.inputs import Inputs, read_inputs
from demonet.runs.plan import fitting_threads
from demonet.runs.run import Run
from demonet.runs.settings import Reading

_SHOWN = 8  # columns named in an error


def predict_run(
    out: str | Path, edges: str | Path, features: str | Path | None = None
) -> tuple[Inputs, list[str], NDArray[np.float32]]:
    """Predict with a finished run: the inputs as read, the class names, and ``[items, classes]`` probabilities.

    Of a multi-label run, the names and probabilities are those of the labels; of a regression, the names of the target
    columns and the predicted numbers. ``inputs.task`` is the task of the run.

    Args:
        out: The folder of the run.
        edges: The graph that it was trained on, or another one; it is read in the same way.
        features: Its attributes, if the run was trained with attributes; named columns are matched by name.
    """
    run, inputs = _read(out, edges, features)
    with fitting_threads(inputs):
        outputs = predict_checked(load_checked(Path(out) / MODEL, run.kind, run.task), inputs.data)
    return inputs, run.class_names, outputs.astype(np.float32)


def embed_run(
    out: str | Path, edges: str | Path, features: str | Path | None = None
) -> tuple[Inputs, NDArray[np.float32]]:
    """Embed with a finished run: the inputs as read, and ``[items, width]`` embeddings.

    The arguments are those of :func:`predict_run`.
    """
    run, inputs = _read(out, edges, features)
    with fitting_threads(inputs):
        return inputs, embed_checked(load_checked(Path(out) / MODEL, run.kind, run.task), inputs.data)


def _read(out: str | Path, edges: str | Path, features: str | Path | None) -> tuple[Run, Inputs]:
    run = load_run(out)
    reading = replace(Reading.from_config(run.config["reading"]), items=run.kind)
    inputs = read_inputs(str(edges), None, None if features is None else str(features), reading)
    if inputs.kind != run.kind:
        raise DemonetError(f"the file has {inputs.kind}, but the run was trained on {run.kind}", file=edges)
    return run, replace(_match_columns(run, inputs, Path(features or edges)), task=run.task)


def _match_columns(run: Run, inputs: Inputs, file: Path) -> Inputs:
    """Put the columns of the attributes in the order of training; other columns are an error."""
    trained, given = run.config["sizes"]["attributes"], inputs.graphs[0].x
    if trained and given is None:
        names = f": {_shown(run.columns)}" if run.columns else ""
        raise DemonetError(f"missing, the run was trained with {trained} attributes{names}", argument="features")
    if not trained and given is not None:
        raise DemonetError("not allowed, the run was trained without attributes", argument="features", file=file)
    if run.columns is None or inputs.columns is None or run.columns == inputs.columns:
        return inputs
    missing = [name for name in run.columns if name not in inputs.columns]
    unknown = [name for name in inputs.columns if name not in run.columns]
    if unknown or (missing and run.kind == "nodes"):
        named = (("missing", missing), ("not in training", unknown))
        problems = [f"{what}: {_shown(names)}" for what, names in named if names]
        what = "attributes" if run.kind == "nodes" else "node labels"
        raise DemonetError(f"the {what} differ from training ({'; '.join(problems)})", file=file)
    if run.kind == "nodes":
        warnings.warn(DemonetWarning("columns reordered as in training", file=file), stacklevel=2)
    return replace(inputs, data=_with_columns(inputs, run.columns), columns=run.columns)


def _with_columns(inputs: Inputs, columns: list[str]) -> Data | GraphSet:
    """The same graphs with these columns; a node label that does not occur is a column of zeros."""
    given = {name: position for position, name in enumerate(inputs.columns or [])}
    for graph in inputs.graphs:
        rows = graph.x.new_zeros(graph.x.size(0), len(columns))
        for position, name in enumerate(columns):
            if name in given:
                rows[:, position] = graph.x[:, given[name]]
        graph.x = rows
    return inputs.data


def _shown(names: list[str]) -> str:
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(repr(name) for name in names[:_SHOWN]) + rest
