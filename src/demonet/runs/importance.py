"""What matters to the model of a run, and what moved its first answers: two parts of its metrics."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from demonet.data.rows import to_rows
from demonet.data.splits import Split
from demonet.estimators.core import Fitted
from demonet.estimators.explain import fitted_reasons
from demonet.estimators.reasons import Column, Go, Predict, columns_of, in_words, shuffles, unlimited
from demonet.options import Effort
from demonet.runs.diagnosis import metric_of_items
from demonet.runs.evaluate import percentiles
from demonet.runs.inputs import Inputs
from demonet.runs.run import first_items, parts_of
from demonet.train.metrics import Metric, Task
from demonet.train.objective import value_of

Array = NDArray[Any]
# Predictions with other edges and repetitions of each permutation, by effort; fewer for graphs larger than SMALL.
PREDICTIONS: dict[Effort, float] = {"quick": 6, "standard": 40, "best": 300}
REPEATS: dict[Effort, int] = {"quick": 2, "standard": 3, "best": 5}
SMALL = 2000  # nodes, edges and hundreds of attribute values
SAME = 3  # predictions with the same edges that cost less than one with others
DRAWS = 60  # of the bootstrap over items
EXPLAINED = 10  # items of a run that have reasons


def affordable(inputs: Inputs, effort: Effort) -> float:
    """How many predictions with other edges may be made, by the effort and the size of the graphs."""
    values = sum(0 if graph.x is None else graph.x.numel() // 100 for graph in inputs.graphs)
    size = sum(int(graph.num_nodes or 0) for graph in inputs.graphs) + inputs.num_edges + values
    return PREDICTIONS[effort] * min(1.0, (SMALL / size) ** 0.5)


def importance_facts(
    predict: Predict,
    inputs: Inputs,
    split: Split,
    metric: Metric,
    effort: Effort,
    seed: int,
    *,
    edges: bool = True,
    go: Go = unlimited,
) -> list[dict[str, Any]]:
    """What the metric loses on validation items without the structure, the degree, or a column.

    Each row has a ``name``, a ``kind``, the loss (``value``, above 0 where the metric gets worse) and its 95 %
    ``interval``, a bootstrap over items and permutations. ``structure`` is the whole place of an item in the graph,
    ``degree`` the part of it that is lost beyond a change of places among items of similar degree, which is
    ``neighbours``. See :func:`~demonet.estimators.reasons.shuffles`.

    Args:
        predict: Of a model that has not seen the validation items.
        inputs, split: The problem.
        metric: Of the run.
        effort: Bounds the number of predictions; columns that look most useful come first.
        seed: Of the permutations.
        edges: Whether the model has an answer for other edges.
        go: Asked before each of them is shuffled.
    """
    rows, y, task = split.val.numpy(), inputs.data.y.numpy(), inputs.task
    count = affordable(inputs, effort)
    repeats = max(1, min(REPEATS[effort], int(count) // 2))
    if len(rows) < 2 or count < 1:
        return []
    columns = _screened(inputs, split, int(SAME * count) // repeats)
    total = 2 * edges + len(columns) + (len(columns) > 1)
    if not go(0, total):
        return []
    base, y = predict(inputs.data, rows), y[rows]
    generator, sign = np.random.default_rng(seed), 1 if metric.larger_is_better else -1
    draws = [generator.integers(0, len(rows), len(rows)) for _ in range(DRAWS)]
    before = _values(metric, task, y, base, [slice(None), *draws])
    found: dict[str, dict[str, Any]] = {}
    shuffled = shuffles(predict, inputs.data, rows, columns, repeats=repeats, seed=seed, edges=edges)
    for _, each in zip(takewhile(lambda done: not done or go(done, total), range(total)), shuffled, strict=False):
        parts = [[slice(None), *draws[number::repeats]] for number in range(repeats)]
        of_repeats = [_values(metric, task, y, *pair) for pair in zip(each.outputs, parts, strict=True)]
        value = np.mean([values[0] for values in of_repeats])
        after = [of_repeats[place % repeats][1 + place // repeats] for place in range(len(draws))]
        drawn = sign * (np.array(before[1:]) - after)
        found[each.name] = {"kind": each.kind, "value": sign * (before[0] - value), "drawn": drawn}
    if "neighbours" in found:
        whole, near = found["structure"], found["neighbours"]
        value, drawn = whole["value"] - near["value"], whole["drawn"] - near["drawn"]
        found["degree"] = {"kind": "degree", "value": value, "drawn": drawn}
    return [
        {"name": name, "kind": row["kind"], "value": float(row["value"]), "interval": percentiles(row["drawn"])}
        for name, row in found.items()
        if np.isfinite(row["value"])
    ]


def _values(metric: Metric, task: Task, y: Array, outputs: Array, parts: Sequence[Any]) -> list[float]:
    """The metric of some parts of the items; NaN where it is not defined."""
    each = metric_of_items(metric.name, outputs, y) if task == "classify" and not metric.decision else None
    if each is not None:
        return [float(each[rows].mean()) for rows in parts]
    found = (value_of(metric, task, y[rows], outputs[rows]) for rows in parts)
    return [np.nan if value is None else value for value in found]


def _screened(inputs: Inputs, split: Split, most: int) -> list[Column]:
    """The columns; of more than ``most``, those that are most correlated with the targets of the training part."""
    first = inputs.graphs[0]
    columns = columns_of(first, inputs.columns)
    if len(columns) <= most or not isinstance(inputs.data, Data):
        return columns[: max(most, 0)]
    train = split.train.numpy()
    y = inputs.data.y.numpy()[train]
    targets = np.eye(len(inputs.names))[y] if inputs.task == "classify" else np.nan_to_num(y)
    rows = to_rows(first.x)[train]
    targets = targets - targets.mean(0)
    product = np.abs(rows.T @ targets).max(1)
    second = np.asarray((rows * rows if isinstance(rows, np.ndarray) else rows.power(2)).sum(0)).ravel()
    strength = product / np.sqrt(np.maximum(second, 1e-12))
    order = sorted(columns, key=lambda column: -float(strength[column.slots].max()))
    return order[: max(most, 0)]


def reason_facts(
    fitted: Fitted,
    inputs: Inputs,
    split: Split,
    outputs: Array,
    column: int | None,
    effort: Effort,
    go: Go = unlimited,
) -> dict[str, Any]:
    """In words, what moved the answers for the items at the top of the page's list, by the index of the item.

    Args:
        fitted: The model that is saved.
        inputs: The problem.
        split: The parts; items without a label come first, then tested ones.
        outputs: ``[items, outputs]`` of the model.
        column: The output to rank by; None for the most confident answers.
        effort: Bounds the number of predictions.
        go: Asked before each of them.
    """
    score = outputs.max(1) if column is None else outputs[:, column]
    rows = first_items(score[:, None], parts_of(split, len(outputs)), EXPLAINED)
    explained = outputs[rows].argmax(1) if column is None else np.full(len(rows), column)
    given = fitted, inputs.data, rows.tolist(), explained.tolist(), inputs.columns
    found = fitted_reasons(*given, budget=affordable(inputs, effort), go=go)
    return {str(row): in_words(why).split("; ") for row, why in zip(rows, found, strict=True) if why}
