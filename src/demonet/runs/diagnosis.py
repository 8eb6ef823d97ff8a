"""What a run tells of its model besides the test: candidates, residuals, reasons, and whether the degree matters."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from demonet.closedform import DegreeEffect
from demonet.closedform.link import shares
from demonet.data.splits import Split
from demonet.ensemble import Ensemble
from demonet.estimators.core import Fitted
from demonet.estimators.explain import fitted_reasons
from demonet.estimators.importance import affordable
from demonet.estimators.models import EnsembleModel
from demonet.estimators.reasons import Go, in_words, unlimited
from demonet.options import Effort
from demonet.runs.evaluate import interval_of, metric_range, shown
from demonet.runs.inputs import Inputs
from demonet.runs.run import first_items, parts_of
from demonet.train.metrics import METRICS, Metric, Task, metric_of_items, percentiles
from demonet.train.objective import value_of

RESAMPLES = 100  # of the bootstrap, for each candidate
LOSSES = {"classify": "log-loss", "multilabel": "log-loss", "regress": "rmse"}  # what the weights are chosen by
# Seconds that the diagnosis may take by the estimate of the kernel machine; it costs about two more fits.
ARMS = 3  # machines that are compared
MOST_SECONDS = {"quick": 10.0, "standard": 60.0, "best": 600.0}
MOST_COLUMNS = 3  # attributes for each target that residuals are told by
MOST_ITEMS = 4000  # labelled items up to which a kernel machine alone is diagnosed
EXPLAINED = 10  # items that have reasons


def candidate_facts(ensemble: Ensemble, table: list[dict[str, Any]], y: NDArray[Any], metric: Metric) -> dict[str, Any]:
    """``candidates``, ``gain`` and ``judged`` of ``metrics.json``, from an ensemble that was fitted, not loaded.

    A candidate's ``score`` and ``interval`` are in the metric of the run, on the items that the weights were chosen on:
    ``judged`` says how many, and whether by ``"validation"`` or by ``"cross-validation"``. The weights were chosen
    there, so the ``gain`` of the average over the best candidate, in that metric and in the loss, flatters. The loss is
    that with the weights of classes, if they have some.
    """
    assert ensemble.judged is not None
    assert ensemble.judged_items is not None
    judged, y, task = ensemble.judged, y[ensemble.judged_items], ensemble.objective.task
    scores = {name: value_of(metric, task, y, rows) for name, rows in judged.items()}
    rows = []
    for row in table:
        known = row["name"] in judged
        interval = interval_of(metric, task, y, judged[row["name"]], RESAMPLES) if known else None
        rows.append({**row, "score": scores.get(row["name"]), "interval": interval})
    weight = {row["name"]: row["weight"] for row in table}
    average = np.tensordot([weight[name] for name in judged], np.stack(list(judged.values())), 1)
    return {
        "candidates": rows,
        "gain": {
            metric.name: _gain(judged, average, y, metric, task),
            LOSSES[task]: _gain(judged, average, y, METRICS[LOSSES[task]], task, ensemble.judged_weight),
        },
        "judged": {"items": len(y), "by": "cross-validation" if ensemble.folds else "validation"},
    }


def _gain(
    judged: dict[str, Any], average: Any, y: Any, metric: Metric, task: Task, weight: NDArray[Any] | None = None
) -> dict[str, Any] | None:
    """The average beside the best candidate; the difference is above 0 where the average is better."""
    sign = 1 if metric.larger_is_better else -1
    scores = {name: value_of(metric, task, y, rows, weight) for name, rows in judged.items()}
    known = {name: score for name, score in scores.items() if score is not None}
    whole = value_of(metric, task, y, average, weight)
    if not known or whole is None:
        return None
    best = max(known, key=lambda name: sign * known[name])
    each = [metric_of_items(metric.name, outputs, y) if y.ndim == 1 else None for outputs in (average, judged[best])]
    if weight is not None:
        each = [None if values is None else values * shares(weight) for values in each]
    generator, differences = np.random.default_rng(0), []
    for _ in range(2 * RESAMPLES):
        rows = generator.integers(0, len(y), len(y))
        if each[0] is not None and each[1] is not None:
            differences.append(sign * float((each[0] - each[1])[rows].mean()))
            continue
        pair = [value_of(metric, task, y[rows], outputs[rows]) for outputs in (average, judged[best])]
        if None not in pair:
            differences.append(sign * (pair[0] - pair[1]))  # type: ignore[operator]
    low, high = metric_range(metric)
    bounds = percentiles(differences)
    return {
        "best": best,
        "best_score": known[best],
        "ensemble_score": whole,
        "difference": sign * (whole - known[best]),
        "interval": bounds and [min(max(bound, low - high), high - low) for bound in bounds],
    }


def residual_facts(inputs: Inputs, outputs: NDArray[Any], split: Split) -> list[dict[str, Any]]:
    """``residuals`` of ``metrics.json``: for each target the attributes whose values its residuals follow most.

    Test nodes are sorted by an attribute into at most five groups of equal size, with ``values`` (the ends of a group),
    ``count`` and ``quartiles`` of the residuals. ``follows`` is the share of the residuals' variance between groups. An
    attribute with the groups of an earlier one, such as the other of two categories, is left out; so are sparse ones.
    """
    x, y, test = inputs.graphs[0].x, inputs.data.y.numpy(), split.test.numpy()
    if x is None or x.layout != torch.strided or not test.size:
        return []
    names = inputs.columns or [f"attribute {place}" for place in range(x.shape[1])]
    found = []
    for target, residual in zip(inputs.names, (y - outputs).T, strict=True):
        rows = test[~np.isnan(residual[test])]
        values, spread = residual[rows], float(np.var(residual[rows])) if rows.size else 0.0
        told: list[dict[str, Any]] = []
        known: list[set[bytes]] = []
        for name, column in zip(names, x[rows].numpy().T, strict=True):
            cuts = np.unique(np.quantile(column, np.linspace(0, 1, 6)[1:-1])) if rows.size else np.zeros(0)
            place = np.searchsorted(cuts, column, side="left")
            groups = [place == number for number in np.unique(place)]
            marks = {group.tobytes() for group in groups}
            if len(groups) < 2 or not spread or marks in known:
                continue
            known.append(marks)
            between = sum(group.sum() * (values[group].mean() - values.mean()) ** 2 for group in groups)
            parts = [
                {
                    "values": [float(column[group].min()), float(column[group].max())],
                    "count": int(group.sum()),
                    "quartiles": np.percentile(values[group], [25, 50, 75]).tolist(),
                }
                for group in groups
            ]
            share = float(between / rows.size / spread)
            told.append({"target": str(target), "column": str(name), "follows": share, "groups": parts})
        found += sorted(told, key=lambda one: -one["follows"])[:MOST_COLUMNS]
    return found


def reason_facts(
    fitted: Fitted,
    inputs: Inputs,
    split: Split,
    outputs: NDArray[Any],
    column: int | None,
    effort: Effort,
    go: Go = unlimited,
) -> dict[str, Any]:
    """In words, what moved the answers for the items at the top of the page's list, by the index of the item.

    Items without a label come first, then tested ones; they are ranked by a ``column`` of the outputs, or without one
    by the most confident answer, or by each label or target. The effort bounds the number of predictions.
    """
    parts, several = parts_of(split, len(outputs)), column is None and inputs.task != "classify"
    explained: dict[int, int] = {}
    if several:
        columns = range(min(EXPLAINED, outputs.shape[1]))
        for place in columns:
            rows = first_items(outputs[:, [place]], parts, EXPLAINED // len(columns))
            explained = dict.fromkeys(rows.tolist(), place) | explained
    else:
        score = outputs.max(1) if column is None else outputs[:, column]
        rows = first_items(score[:, None], parts, EXPLAINED)
        tops = outputs[rows].argmax(1) if column is None else np.full(len(rows), column)
        explained = dict(zip(rows.tolist(), tops.tolist(), strict=True))
    given = fitted, inputs.data, list(explained), list(explained.values()), inputs.columns
    found = fitted_reasons(*given, budget=affordable(inputs.data, effort), go=go)
    names = (str(inputs.names[place]) if several else "" for place in explained.values())
    told = (in_words(why, inputs.task, of) for why, of in zip(found, names, strict=True))
    return {str(row): words.split("; ") for row, words in zip(explained, told, strict=True) if words}


def degree_facts(fitted: Fitted, effort: str, items: int, seed: int, left: float = math.inf) -> dict[str, Any]:
    """``degree_effect`` of ``metrics.json``: the effect with its verdict, or the reason why it was ``skipped``.

    It is measured with so many labelled ``items``, as far as the effort and the seconds that are ``left`` allow.
    """
    model, advice = fitted.model, f"{fitted.estimator}(model='kernel') and degree_effect() measure it"
    if isinstance(model, EnsembleModel):
        row = model.machine_row()
        if row is None:
            return {"skipped": f"no kernel machine was fitted; {advice}"}
        weight = row.weight
        if 2 * row.estimate > MOST_SECONDS[effort]:
            return {"skipped": f"it would take about {2 * row.estimate:.0f} seconds; {advice}"}
        if ARMS * row.seconds > left:
            return {"skipped": f"it would exceed the time limit; {advice}"}
    elif items > MOST_ITEMS:
        return {"skipped": f"with {items:,} labelled items it would take minutes; {advice}"}
    else:
        weight = 1.0
    effect = model.degree_effect(seed)
    plain = json.loads(json.dumps(asdict(effect)))  # lists in place of tuples, as they are read back
    return {**plain, "weight": weight, "verdict": verdict(effect)}


def verdict(effect: DegreeEffect) -> str:
    """One sentence: whether the degree-specific term helps, by the intervals of the loss against both other arms.

    The numbers in it are those that decided: losses, of which the smaller is better.
    """
    title = "squared error" if effect.regression else "log-loss"
    arms = {"degree": "with the degree-specific term", "none": "without it", "shuffled": "with shuffled degrees"}
    numbers = ", ".join(f"{shown(effect.loss[arm])} {name}" for arm, name in arms.items())
    (_, low, high), (_, _, shuffled) = (effect.gain[arm]["loss"] for arm in ("none", "shuffled"))
    told = f"{title} {numbers} (smaller is better)"
    if high < 0 and shuffled < 0:
        return f"Yes, nodes of different degrees need weights of their own: {told}."
    if high < 0:
        return f"Perhaps: {told}, but it is not shown that the true degrees are needed."
    if low > 0:
        return f"No, weights of their own for each degree do harm: {told}."
    return f"Not shown: {told}; what the term gains over the machine without it may be chance."
