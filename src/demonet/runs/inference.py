"""Inference: predictions and embeddings of a finished run, for its own graph or another one."""

from __future__ import annotations

import math
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from demonet.data.columns import listed
from demonet.data.graph_set import GraphSet
from demonet.data.values import is_number
from demonet.distributed.store import is_store
from demonet.errors import DemonetError, DemonetWarning, Hint, warn
from demonet.estimators.core import Fitted
from demonet.estimators.explain import fitted_reasons
from demonet.estimators.models import EnsembleModel
from demonet.estimators.reasons import Reason, in_words
from demonet.options import Reading
from demonet.runs.evaluate import shown
from demonet.runs.folder import METRICS, MODEL, load_model_of
from demonet.runs.inputs import Inputs, read_inputs
from demonet.runs.plan import fitting_threads
from demonet.runs.run import Run
from demonet.runs.targets import with_targets
from demonet.schema import Array, check_arrays, values_of
from demonet.train.objective import decided


def predict_run(
    out: str | Path,
    edges: str | Path,
    features: str | Path | None = None,
    labels: str | Path | None = None,
    *,
    rank: str | None = None,
    top: int | None = None,
    reasons: int = 0,
    **reading: Any,
) -> tuple[Inputs, list[str], NDArray[np.float32]]:
    """Predict with a finished run: the inputs as read, the class names, and ``[items, classes]`` probabilities.

    Of a multi-label run, the names and probabilities are those of the labels; of a regression, the names of the target
    columns and the predicted numbers. ``inputs.task`` is the task of the run.

    Args:
        out: The folder of the run.
        edges: The graph that it was trained on, or another one; it is read in the same way.
        features: Its attributes, if the run was trained with attributes; named columns are matched by name.
        labels: A table of labels that became known or were corrected, by id. Members that propagate labels use them
            beside those that they were fitted on; nothing is fitted again.
        rank: The class, label or target column by whose output ``inputs.rows`` are sorted, the largest first.
        top: How many rows to list; without ``rank``, by the positive class or the only target.
        reasons: For how many of the rows, from the first one on, ``inputs.reasons`` say what moved the answer.
        reading: What differs from the :class:`~demonet.runs.Reading` of the run, such as ``source="from"``.
    """
    run, inputs, fitted = _read(out, edges, features, reading, labels)
    column = None if rank is None and top is None else ranked_by(run, rank)
    with fitting_threads(inputs):
        told = _add_labels(run, inputs, fitted) if labels is not None else ""
        with values_of(Path(out) / MODEL, "a model for this graph"):
            outputs = fitted.outputs(inputs.data).astype(np.float32)
            check_arrays({"outputs": outputs}, {"outputs": Array("f", (len(inputs.ids), len(run.class_names)))})
        with values_of(Path(out) / METRICS):
            told = ", ".join(filter(None, (_standing(run, fitted, inputs), told)))
        rows = None if column is None else np.argsort(-outputs[:, column], kind="stable")[:top]
        first = (np.arange(len(outputs)) if rows is None else rows)[:reasons]
        decision = run.decision if run.task == "classify" else ()  # of labels: thresholds, no factors
        explained = decided("classify", outputs[first], decision) if column is None else np.full(len(first), column)
        found = fitted_reasons(fitted, inputs.data, first.tolist(), explained.tolist(), run.columns) if reasons else []
    several = column is None and run.task != "classify" and len(run.class_names) > 1
    named = [run.class_names[place] if several else "" for place in explained.tolist()]
    words = tuple(in_words(why, run.task, of) for why, of in zip(found, named, strict=False))
    return replace(inputs, standing=told, rows=rows, reasons=words, decision=run.decision), run.class_names, outputs


def explain_run(
    out: str | Path,
    edges: str | Path,
    item: str,
    features: str | Path | None = None,
    *,
    output: str | None = None,
    **reading: Any,
) -> list[Reason]:
    """What moved the prediction for one item, the strongest effect first.

    Args:
        out, edges, features, reading: As for :func:`predict_run`.
        item: The id of a node or graph.
        output: The class, label or target column; by default the one with the largest output.
    """
    run, inputs, fitted = _read(out, edges, features, reading)
    if item not in inputs.ids:
        raise DemonetError(f"there is no {run.kind.removesuffix('s')} {item!r}", argument="item", file=edges)
    row = inputs.ids.index(item)
    with fitting_threads(inputs), values_of(Path(out) / MODEL, "a model for this graph"):
        column = int(fitted.outputs(inputs.data)[row].argmax()) if output is None else ranked_by(run, output)
        (found,) = fitted_reasons(fitted, inputs.data, [row], [column], run.columns)
    return found


def embed_run(
    out: str | Path, edges: str | Path, features: str | Path | None = None, **reading: Any
) -> tuple[Inputs, NDArray[np.float32]]:
    """Embed with a finished run: the inputs as read, and ``[items, width]`` embeddings.

    The arguments are those of :func:`predict_run`.
    """
    _, inputs, fitted = _read(out, edges, features, reading)
    with fitting_threads(inputs), values_of(Path(out) / MODEL, "a model for this graph"):
        return inputs, fitted.embed(inputs.data)


def _read(
    out: str | Path,
    edges: str | Path,
    features: str | Path | None,
    changes: dict[str, Any],
    labels: str | Path | None = None,
) -> tuple[Run, Inputs, Fitted]:
    """The run, what it predicts for, and its model; nodes that occur in tables alone are among them."""
    run, estimator = load_model_of(out)
    fitted = estimator.fitted_
    changes = {name: value for name, value in changes.items() if value is not None}
    nodes = run.kind == "nodes" and not is_store(edges)
    reading = replace(Reading(**run.config["reading"]), **{"items": run.kind, "add_isolated": nodes} | changes)
    given, table = (None if name is None else str(name) for name in (labels, features))

    def check(label: Any) -> str | None:
        if run.task == "classify" and str(label) not in run.class_names:
            return f"{label!r} is not a class of the run: {listed(run.class_names)}"
        finite = is_number(str(label)) and math.isfinite(float(label))
        return None if run.task == "classify" or finite else f"{label!r} is not a finite number"

    inputs = read_inputs(str(edges), given, table, reading, fitted.columns, check_label=check)
    if inputs.kind != run.kind:
        raise DemonetError(f"the file has {inputs.kind}, but the run was trained on {run.kind}", file=edges)
    same_file = inputs.checksums.get("edges") == run.config["asked"].get("edges file")
    _match_edges(run, inputs, fitted, edges, decided=same_file or "directed" in changes)
    inputs = replace(_match_columns(run, inputs, Path(features or edges)), task=run.task)
    return run, replace(inputs, known=(run.y, run.part) if same_file and inputs.ids == run.ids else None), fitted


def ranked_by(run: Run, rank: str | None) -> int:
    """The output that items are ranked by: a class, label or target; by default the positive one, or the only one."""
    names = run.class_names
    rank = rank or run.config.get("positive") or (names[0] if len(names) == 1 else None)
    if rank is None:
        example = Hint("name it: {rank}", rank=names[0])
        raise DemonetError("a ranking by which class?", argument="rank", hint=example)
    if rank not in names:
        near = get_close_matches(rank, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the run has {listed(names)}"
        raise DemonetError(f"{rank!r} is not a class, label or target of the run", argument="rank", hint=hint)
    return names.index(rank)


def _add_labels(run: Run, inputs: Inputs, fitted: Fitted) -> str:
    """Add labels that were read to those that the model knows, and say how many."""
    data, file = inputs.data, inputs.files.get("labels")
    known = fitted.model.known_targets(data)
    if known is None or not isinstance(data, Data):
        problem = "the labels make no difference: no part of this model looks at known labels near a node"
        warn(DemonetWarning(problem, argument="labels", file=file, hint="fit with them"))
        return ""
    if run.task == "classify":
        code = np.array([*(run.class_names.index(str(name)) for name in inputs.names), -1])
        new = code[data.y.numpy()]
        given = new >= 0
    else:
        found, _ = with_targets(inputs, run.task)
        if sorted(found.names) != sorted(run.class_names):
            raise DemonetError(f"labels {listed(found.names)}, the run has {listed(run.class_names)}", file=file)
        new = data.y.numpy()[:, [found.names.index(name) for name in run.class_names]].reshape(known.shape)
        given = ~np.isnan(new)
    changed = int((given & ~np.isclose(known, new)).sum())
    data.known_targets = torch.from_numpy(np.where(given, new, known))
    return f"{int(given.sum()):,} labels given, {changed:,} of them new or corrected"


def _standing(run: Run, fitted: Fitted, inputs: Inputs) -> str:
    """How many nodes of the fitted graph the prediction recognised, and which test score holds for another graph.

    Empty if it makes no difference to the model.
    """
    model = fitted.model
    if not isinstance(model, EnsembleModel) or not model.ensemble.left_out:
        return ""
    if model.ensemble.recognised is not None:
        return f"{model.ensemble.recognised:,} of them in the fitted graph, so its weights of candidates apply"
    scores = [run.metrics["inductive"]["refit"]["test_metric"], run.metrics["test_metric"]]
    if None in scores:
        return "another graph than the fitted one"
    return "another graph than the fitted one: expect test {} {}, not {}".format(run.metric.title, *map(shown, scores))


def _match_edges(run: Run, inputs: Inputs, fitted: Fitted, file: str | Path, *, decided: bool) -> None:
    """Refuse graphs without nodes; edges that are directed or weighted otherwise than in training are told.

    ``decided`` says whether it was said of this very file how its edges are read.
    """
    for name, graph in zip([""] if run.kind == "nodes" else inputs.ids, inputs.graphs, strict=True):
        if not graph.num_nodes:
            raise DemonetError(f"graph {name!r} has no nodes" if name else "the graph has no nodes", file=file)
    directed, kinds = run.config["estimator"].get("directed"), ("undirected", "directed")
    if directed not in (None, inputs.directed):
        now, then = kinds[inputs.directed], kinds[not inputs.directed]
        hint = Hint("{directed} reads them as in training", directed=directed)
        warn(DemonetWarning(f"the edges are {now}, those of training were {then}", file=file, hint=hint))
    elif not decided and inputs.told_directed not in (None, inputs.directed):
        told, read = kinds[bool(inputs.told_directed)], kinds[inputs.directed]
        warn(DemonetWarning(f"its edges are {told}, and read as {read}, as those of training were", file=file))
    fitted.match_numbers(inputs.graphs, inputs.weighted, file, inputs.files.get("features"))


def _match_columns(run: Run, inputs: Inputs, file: Path) -> Inputs:
    """Put the columns of the attributes in the order of training; other columns are an error.

    A node label of a graph set that training did not have counts as none of the others.
    """
    trained, given = run.config["sizes"]["attributes"], inputs.graphs[0].x
    if trained and given is None:
        names = f": {listed(run.columns)}" if run.columns else ""
        raise DemonetError(f"missing, the run was trained with {trained} attributes{names}", argument="features")
    if not trained and given is not None:
        raise DemonetError("not allowed, the run was trained without attributes", argument="features", file=file)
    if run.columns is None or inputs.columns is None or run.columns == inputs.columns:
        return inputs
    missing = [name for name in run.columns if name not in inputs.columns]
    unknown = [name for name in inputs.columns if name not in run.columns]
    if run.kind == "graphs":
        numbers = [name for name in missing if name.startswith("attribute ")]
        if numbers:
            hint = Hint("{features} reads them", features="attributes")
            raise DemonetError(f"training had the node attributes {listed(numbers)}", file=file, hint=hint)
        if unknown:
            count = sum(
                int(graph.x[:, inputs.columns.index(name)].sum()) for graph in inputs.graphs for name in unknown
            )
            problem = f"node labels that training did not have count as none: {listed(unknown)} ({count} nodes)"
            warn(DemonetWarning(problem, file=file))
    elif unknown or missing:
        named = (("missing", missing), ("not in training", unknown))
        problems = [f"{what}: {listed(names)}" for what, names in named if names]
        raise DemonetError(f"the attributes differ from training ({'; '.join(problems)})", file=file)
    else:
        warn(DemonetWarning("columns reordered as in training", file=file))
    return replace(inputs, data=_with_columns(inputs, run.columns), columns=run.columns)


def _with_columns(inputs: Inputs, columns: list[str]) -> Data | GraphSet:
    """The same graphs with these columns; a node label that does not occur is a column of zeros."""
    given = {name: place for place, name in enumerate(inputs.columns or [])}
    places = [given.get(name, -1) for name in columns]
    for graph in inputs.graphs:
        graph.x = torch.cat([graph.x, graph.x.new_zeros(len(graph.x), 1)], 1)[:, places]
    return inputs.data
