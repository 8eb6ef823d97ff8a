"""What matters to a model: what its metric loses without the structure, the degree, or a column."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import numpy as np
from torch_geometric.data import Data

from demonet.data.rows import to_rows
from demonet.estimators.reasons import Array, Column, Go, Predict, columns_of, shuffles, unlimited
from demonet.options import Effort
from demonet.train.metrics import Metric, Task, metric_of_items, percentiles
from demonet.train.objective import value_of

# Predictions with other edges and repetitions of each permutation, by effort; fewer for graphs larger than SMALL.
PREDICTIONS: dict[Effort, float] = {"quick": 6, "standard": 40, "best": 300}
REPEATS: dict[Effort, int] = {"quick": 2, "standard": 3, "best": 5}
SMALL = 2000  # nodes, edges and hundreds of attribute values
SAME = 3  # predictions with the same edges that cost less than one with others
DRAWS = 60  # of the bootstrap over items


def affordable(items: Any, effort: Effort) -> float:
    """How many predictions with other edges may be made, by the effort and the size of a graph or of graphs."""
    graphs = [items] if isinstance(items, Data) else items
    values = sum(0 if graph.x is None else graph.x.numel() // 100 for graph in graphs)
    size = sum(int(graph.num_nodes or 0) + graph.edge_index.size(1) for graph in graphs) + values
    return PREDICTIONS[effort] * min(1.0, (SMALL / size) ** 0.5)


def importance_facts(
    predict: Predict,
    items: Any,
    y: Array,
    parts: tuple[Array, Array],
    metric: Metric,
    task: Task,
    effort: Effort,
    seed: int,
    *,
    names: Sequence[str] | None = None,
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
        items, y, task: The graph or the graphs, the encoded targets of all items, and what these are.
        parts: Training items, by which columns look useful, and validation items.
        metric: What is lost.
        effort: Bounds the number of predictions; columns that look most useful come first.
        seed: Of the permutations.
        names: Of attributes, if the graph has none.
        edges: Whether the model has an answer for other edges.
        go: Asked before each of them is shuffled.
    """
    (train, rows), count = parts, affordable(items, effort)
    repeats = max(1, min(REPEATS[effort], int(count) // 2))
    if len(rows) < 2 or count < 1:
        return []
    columns = _screened(items, names, y, train, int(SAME * count) // repeats)
    total = 2 * edges + len(columns) + (len(columns) > 1)
    if not go(0, total):
        return []
    base, y = predict(items, rows), y[rows]
    generator, sign = np.random.default_rng(seed), 1 if metric.larger_is_better else -1
    draws = [generator.integers(0, len(rows), len(rows)) for _ in range(DRAWS)]
    before = _values(metric, task, y, base, [slice(None), *draws])
    found: dict[str, dict[str, Any]] = {}
    shuffled = shuffles(predict, items, rows, columns, repeats=repeats, seed=seed, edges=edges)
    for _, each in zip(takewhile(lambda done: not done or go(done, total), range(total)), shuffled, strict=False):
        drawn_parts = [[slice(None), *draws[number::repeats]] for number in range(repeats)]
        of_repeats = [_values(metric, task, y, *pair) for pair in zip(each.outputs, drawn_parts, strict=True)]
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


def _screened(items: Any, names: Sequence[str] | None, y: Array, train: Array, most: int) -> list[Column]:
    """The columns; of more than ``most``, those that are most correlated with the targets of the training part."""
    first = items if isinstance(items, Data) else items[0]
    columns = columns_of(first, names)
    if len(columns) <= most or not isinstance(items, Data):
        return columns[: max(most, 0)]
    y = y[train]
    targets = np.eye(int(y.max()) + 1)[y] if y.ndim == 1 else np.nan_to_num(y)
    rows = to_rows(first.x)[train]
    targets = targets - targets.mean(0)
    product = np.abs(rows.T @ targets).max(1)
    second = np.asarray((rows * rows if isinstance(rows, np.ndarray) else rows.power(2)).sum(0)).ravel()
    strength = product / np.sqrt(np.maximum(second, 1e-12))
    order = sorted(columns, key=lambda column: -float(strength[column.slots].max()))
    return order[: max(most, 0)]
