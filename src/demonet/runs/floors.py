"""Simple baselines (floors) on the same test items: the registered methods that ask for it (``beside_fit``).

One rule for the model and its floors. *Strict*: fitted on the training part, settings chosen on validation. *Refit*:
fitted again on training and validation items with these settings.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from torch_geometric.data import Data

from demonet import methods
from demonet.data.splits import Split
from demonet.errors import DemonetWarning
from demonet.estimators.reasons import Go, unlimited
from demonet.runs.inputs import Inputs
from demonet.train.metrics import METRICS, Metric
from demonet.train.objective import value_of
from demonet.train.recipes import family_of

FLOOR_NAMES = {"degree-knn": "degree only", "attribute-lr": "attributes only", "attribute-ridge": "attributes only"}
"""What people read instead of the names of methods."""


def floor_scores(
    inputs: Inputs, split: Split, metric: Metric, go: Go = unlimited
) -> dict[str, dict[str, dict[str, float]]]:
    """By rule: ``floors``, the test metric of each by name, and for classes ``floors_auc``; empty without a test part.

    The metric is also what validation chooses settings by and, where it needs one, a decision. The area under the ROC
    curve tells how good an order is. It is for classes of unequal size, where accuracy is not.
    """
    measured = {"floors": metric} | ({"floors_auc": METRICS["auc"]} if inputs.task == "classify" else {})
    found: dict[str, Any] = {rule: {key: {} for key in measured} for rule in ("strict", "refit")}
    if not split.test.numel():
        return found
    items = inputs.data if isinstance(inputs.data, Data) else list(inputs.data)
    attributes = inputs.graphs[0].x is not None
    test, y = split.test.numpy(), inputs.data.y.numpy()
    family, task = family_of(items), inputs.task
    beside = [each for each in methods.every() if each.beside_fit]
    beside = [each for each in beside if each.applies(family, attributes=attributes, task=task)]
    for done, method in enumerate(beside):
        if not go(done, len(beside)):
            break
        with warnings.catch_warnings():  # the plan has told what there is to say about the split
            warnings.simplefilter("ignore", DemonetWarning)
            fitted = method().fit(items, split, task=inputs.task, metric=metric)
        judged = {"floors": replace(metric, decision=fitted.decision(metric, inputs.data.y, split))}
        for rule, one in {"strict": fitted, "refit": fitted.refit(items, split)}.items():
            outputs = one.predict_proba().numpy()[test]
            for key, each in (measured | judged).items():
                value = value_of(each, inputs.task, y[test], outputs)
                if value is not None:
                    found[rule][key][method.name] = value
    return found
