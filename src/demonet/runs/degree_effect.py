"""Does the degree matter on this graph? What the degree-specific term of the kernel machine is worth, for a page."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from demonet.errors import DemonetError
from demonet.estimators.checked import Estimator
from demonet.estimators.closed_form import EnsembleModel
from demonet.kernels import DegreeEffect
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
        try:
            member, weight = model.machine_member()
        except DemonetError:
            return {"skipped": f"the kernel machine has no weight in the ensemble; {advice}"}
        row = next(row for row in model.ensemble.candidates if row.name == member.name)
        if 2 * row.estimate > MOST_SECONDS[effort]:
            return {"skipped": f"it would take about {2 * row.estimate:.0f} seconds; {advice}"}
    elif items > MOST_ITEMS:
        return {"skipped": f"with {items:,} labelled items it would take minutes; {advice}"}
    else:
        weight = 1.0
    effect = estimator.degree_effect(seed)
    return {**asdict(effect), "weight": weight, "verdict": verdict(effect)}


def verdict(effect: DegreeEffect) -> str:
    """One sentence: whether the degree-specific term helps, by the intervals of the loss against both other arms."""
    regression = "R²" if effect.regression else "accuracy"
    with_it, without = shown(effect.accuracy["degree"]), shown(effect.accuracy["none"])
    numbers = f"{regression} {with_it} with the degree-specific term, {without} without it"
    losses = [effect.gain[arm]["loss"] for arm in ("none", "shuffled")]
    if all(high < 0 for _, _, high in losses):
        return f"Yes, the degree matters here: {numbers}, and shuffled degrees are worse, too."
    if losses[0][2] < 0:
        return f"Perhaps: {numbers}, but shuffled degrees do nearly as well."
    if losses[0][1] > 0:
        return f"No, the degree-specific term does harm here: {numbers}."
    return f"It is not shown that the degree matters here: {numbers}; the difference may be chance."
