"""Does the degree matter on this graph? What the degree-specific term of the kernel machine is worth, for a page."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from demonet.closedform import DegreeEffect
from demonet.estimators.checked import Estimator
from demonet.estimators.closed_form import EnsembleModel
from demonet.runs.evaluate import shown

# Seconds that the diagnosis may take by the estimate of the kernel machine; it costs about two more fits.
MOST_SECONDS = {"quick": 10.0, "standard": 60.0, "best": 600.0}
MOST_ITEMS = 4000  # labelled items up to which a kernel machine alone is diagnosed


def degree_facts(estimator: Estimator, effort: str, items: int, seed: int) -> dict[str, Any]:
    """``degree_effect`` of ``metrics.json``: the effect with its verdict, or the reason why it was ``skipped``.

    Args:
        estimator: Fitted with ``model="auto"`` or ``"kernel"``.
        effort: Bounds what an ensemble spends on it.
        items: Labelled items that it was fitted on.
        seed: Of the shuffled degrees.
    """
    model, advice = estimator.model_, "DEMONetClassifier(model='kernel') and degree_effect() measure it"
    if isinstance(model, EnsembleModel):
        row = model.machine_row()
        if row is None:
            return {"skipped": f"no kernel machine was fitted; {advice}"}
        weight = row.weight
        if 2 * row.estimate > MOST_SECONDS[effort]:
            return {"skipped": f"it would take about {2 * row.estimate:.0f} seconds; {advice}"}
    elif items > MOST_ITEMS:
        return {"skipped": f"with {items:,} labelled items it would take minutes; {advice}"}
    else:
        weight = 1.0
    effect = estimator.degree_effect(seed)
    plain = json.loads(json.dumps(asdict(effect)))  # lists in place of tuples, as they are read back
    return {**plain, "weight": weight, "verdict": verdict(effect)}


def verdict(effect: DegreeEffect) -> str:
    """One sentence: whether the degree-specific term helps, by the intervals of the loss against both other arms."""
    title = "R²" if effect.regression else "accuracy"
    arms = {"degree": "with the degree-specific term", "none": "without it", "shuffled": "with shuffled degrees"}
    numbers = ", ".join(f"{shown(effect.accuracy[arm])} {name}" for arm, name in arms.items())
    (_, low, high), (_, _, shuffled) = (effect.gain[arm]["loss"] for arm in ("none", "shuffled"))
    if high < 0 and shuffled < 0:
        return f"Yes, nodes of different degrees need weights of their own: {title} {numbers}."
    if high < 0:
        return f"Perhaps: {title} {numbers}, but it is not shown that the true degrees are needed."
    if low > 0:
        return f"No, weights of their own for each degree do harm: {title} {numbers}."
    return f"Not shown: {title} {numbers}; the differences may be chance."
