"""The candidates of an ensemble in the metric of a run, and what their average gained over the best of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from demonet.ensemble import Ensemble
from demonet.runs.evaluate import interval_of, metric_range, value_of
from demonet.train.metrics import METRICS, Metric

RESAMPLES = 100  # of the bootstrap, for each candidate


def candidate_facts(
    ensemble: Ensemble, table: list[dict[str, Any]], y: NDArray[np.int64], metric: Metric
) -> dict[str, Any]:
    """``candidates``, ``gain`` and ``judged`` of ``metrics.json``.

    A candidate's ``score`` and ``interval`` are in the metric of the run, on the items that the weights were chosen on:
    ``judged`` says how many, and whether by ``"validation"`` or by ``"cross-validation"``. The weights were chosen
    there, so the ``gain`` of the average over the best candidate, in that metric and in log-loss, flatters.

    Args:
        ensemble: Fitted, not loaded.
        table: Its candidates, as the estimator lists them.
        y: ``[items]`` classes.
        metric: The metric of the run.
    """
    assert ensemble.judged is not None
    assert ensemble.judged_items is not None
    judged, y = ensemble.judged, y[ensemble.judged_items]
    scores = {name: value_of(metric, "classify", y, rows) for name, rows in judged.items()}
    rows = []
    for row in table:
        known = row["name"] in judged
        interval = interval_of(metric, "classify", y, judged[row["name"]], RESAMPLES) if known else None
        rows.append({**row, "score": scores.get(row["name"]), "interval": interval})
    weight = {row["name"]: row["weight"] for row in table}
    average = np.tensordot([weight[name] for name in judged], np.stack(list(judged.values())), 1)
    return {
        "candidates": rows,
        "gain": {each.name: _gain(judged, average, y, each) for each in (metric, METRICS["log-loss"])},
        "judged": {"items": len(y), "by": "cross-validation" if ensemble.folds else "validation"},
    }


def _gain(judged: dict[str, Any], average: Any, y: Any, metric: Metric) -> dict[str, Any] | None:
    """The average beside the best candidate; the difference is above 0 where the average is better."""
    sign = 1 if metric.larger_is_better else -1
    scores = {name: value_of(metric, "classify", y, rows) for name, rows in judged.items()}
    known = {name: score for name, score in scores.items() if score is not None}
    whole = value_of(metric, "classify", y, average)
    if not known or whole is None:
        return None
    best = max(known, key=lambda name: sign * known[name])
    each = [_of_items(metric.name, outputs, y) for outputs in (average, judged[best])]
    generator, differences = np.random.default_rng(0), []
    for _ in range(2 * RESAMPLES):
        rows = generator.integers(0, len(y), len(y))
        if each[0] is not None and each[1] is not None:
            differences.append(sign * float((each[0] - each[1])[rows].mean()))
            continue
        pair = [value_of(metric, "classify", y[rows], outputs[rows]) for outputs in (average, judged[best])]
        if None not in pair:
            differences.append(sign * (pair[0] - pair[1]))  # type: ignore[operator]
    low, high = metric_range(metric)
    bounds = [float(bound) for bound in np.percentile(differences, [2.5, 97.5])] if differences else None
    return {
        "best": best,
        "best_score": known[best],
        "ensemble_score": whole,
        "difference": sign * (whole - known[best]),
        "interval": bounds and [min(max(bound, low - high), high - low) for bound in bounds],
    }


def _of_items(metric: str, outputs: NDArray[Any], y: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """``[items]`` what a metric is the mean of; None if it is no mean over items."""
    if metric == "accuracy":
        return (outputs.argmax(1) == y).astype(np.float64)
    if metric == "log-loss":
        least = np.finfo(outputs.dtype).eps  # as scikit-learn has it
        return -np.log(np.clip(outputs[np.arange(len(y)), y], least, 1 - least))
    return None
