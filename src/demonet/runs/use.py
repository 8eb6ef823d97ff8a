"""A finished run on a graph: the one that it was trained on, or another."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from demonet.data.graph_set import GraphSet
from demonet.errors import DemonetError, DemonetWarning
from demonet.runs.folder import MODEL
from demonet.runs.inputs import Inputs, read_inputs
from demonet.runs.run import Run
from demonet.runs.settings import Reading
from demonet.runs.store import load_run
from demonet.runs.threads import fitting_threads
from demonet.runs.trial import embedding, load_estimator, probabilities

SHOWN = 8  # columns named in an error


def predict_run(
    out: str | Path, edges: str | Path, features: str | Path | None = None
) -> tuple[Inputs, list[str], NDArray[np.float32]]:
    """What was read, the names of the classes, and ``[items, classes]`` probabilities.

    Args:
        out: The folder of a finished run.
        edges: The graph that it was trained on, or another; read in the same way.
        features: Its attributes, where the run has some; columns are found by their names where they have names.
    """
    run, inputs = _prepared(out, edges, features)
    with fitting_threads(inputs):
        found = probabilities(load_estimator(Path(out) / MODEL, inputs), inputs)
    return inputs, run.class_names, found.astype(np.float32)


def embed_run(
    out: str | Path, edges: str | Path, features: str | Path | None = None
) -> tuple[Inputs, NDArray[np.float32]]:
    """What was read, and ``[items, width]`` embeddings; the arguments are those of :func:`predict_run`."""
    _, inputs = _prepared(out, edges, features)
    with fitting_threads(inputs):
        return inputs, embedding(load_estimator(Path(out) / MODEL, inputs), inputs)


def _prepared(out: str | Path, edges: str | Path, features: str | Path | None) -> tuple[Run, Inputs]:
    run = load_run(out)
    reading = replace(Reading(**run.config["reading"]), task=run.kind)
    inputs = read_inputs(str(edges), None, None if features is None else str(features), reading)
    if inputs.kind != run.kind:
        raise DemonetError(f"{inputs.kind} in this file, where the run classifies {run.kind}", file=edges)
    return run, _aligned(run, inputs, Path(features or edges))


def _aligned(run: Run, inputs: Inputs, file: Path) -> Inputs:
    """The columns of the attributes in the order of training; refused where they are not the same ones."""
    trained, given = run.config["sizes"]["attributes"], inputs.graphs[0].x
    if trained and given is None:
        shown = f": {_shown(run.columns)}" if run.columns else ""
        raise DemonetError(f"the run was trained with {trained} attributes a node{shown}", hint="--features names them")
    if not trained and given is not None:
        raise DemonetError("the run was trained without attributes", file=file, hint="leave --features out")
    if run.columns is None or inputs.columns is None or run.columns == inputs.columns:
        return inputs
    missing = [name for name in run.columns if name not in inputs.columns]
    strange = [name for name in inputs.columns if name not in run.columns]
    if strange or (missing and run.kind == "nodes"):
        named = (("missing", missing), ("not in training", strange))
        problems = [f"{what}: {_shown(names)}" for what, names in named if names]
        what = "attributes" if run.kind == "nodes" else "node labels"
        raise DemonetError(f"other {what} than in training ({'; '.join(problems)})", file=file)
    if run.kind == "nodes":
        warnings.warn(f"{file}: columns put in the order of training", DemonetWarning, stacklevel=2)
    return replace(inputs, data=_in_order(inputs, run.columns), columns=run.columns)


def _in_order(inputs: Inputs, wanted: list[str]) -> Data | GraphSet:
    """The same graphs with these columns; a node label that is nowhere in a set of graphs is a column of zeros."""
    given = {name: place for place, name in enumerate(inputs.columns or [])}
    for graph in inputs.graphs:
        rows = graph.x.new_zeros(graph.x.size(0), len(wanted))
        for column, name in enumerate(wanted):
            if name in given:
                rows[:, column] = graph.x[:, given[name]]
        graph.x = rows
    return inputs.data


def _shown(names: list[str]) -> str:
    rest = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(repr(name) for name in names[:SHOWN]) + rest
