"""One run of kind ``default``: a method under two rules, on one split.

``strict``: fitted on the training part alone; everything else (settings, epochs, weights of an average) is chosen on
the validation part. ``refit``: what was chosen is kept, and the method is fitted again on the training and validation
part together. The test part is looked at once under each rule. One run has both, as the choice is the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from demonet import methods
from demonet.data.splits import Split
from demonet.ensemble.auto import Auto
from demonet.methods.base import Method, labels
from demonet.methods.closed_form import ARMS, Kernel
from demonet.runs.measure import Meter
from demonet_study.experiments.methods import method, read
from demonet_study.ledger.job import Cell, Job, Outcome
from demonet_study.protocol import split_by

__all__ = ["ARMS", "AUTO", "GENERATED", "KERNEL", "both_rules", "rule_method"]

AUTO, KERNEL = Auto.name, Kernel.name


def both_rules(job: Job, device: str = "cpu") -> Outcome:
    """Run ``seed`` of a cell: split ``seed`` and seed ``seed``. Networks and the closed form use the device.

    The value is the test accuracy under ``strict``; ``extra["refit"]`` is that under ``refit``. Further extra values:
    validation accuracy, the hash of the split, the epochs of a network, and for the ensemble the log-loss on the test
    part under both rules, the weight of each member, and the seconds of each fit and refit.
    """
    meter, cell = Meter(), job.cell
    made = rule_method(cell, device)
    data = GENERATED[cell.dataset](job.seed) if cell.dataset in GENERATED else read(made, cell.dataset, device)
    y = labels(data)
    split = split_by(cell.split, y, job.seed)
    fitted = made.fit(data, split, job.seed)
    extra: dict[str, Any] = {"validation": fitted.score(split.val, y), "split": split.hash}
    if isinstance(fitted, Kernel):
        settings = fitted.chosen["settings"]
        # A graph kernel without its pooled part (WL and structure alone) does not read the other fields.
        extra["degree"] = float(np.mean([s["degree"] if s.get("pooled", 1.0) else 0.0 for s in settings]))
        extra["task"] = fitted.chosen["task"]
    if isinstance(fitted, Kernel) and fitted.settings.degree != "best":  # the arms are compared under strict alone
        return Outcome(fitted.score(split.test, y), meter.seconds, meter.peak_memory_mb, extra)
    again = fitted.refit(data, split, job.seed)
    extra["refit"] = again.score(split.test, y)
    if isinstance(fitted, Auto):
        rows = [row for row in fitted.ensemble.candidates if row.status == "fitted"]
        extra |= {
            "validation": fitted.ensemble.validation["score"],
            "log_loss": {"strict": _log_loss(fitted, y, split), "refit": _log_loss(again, y, split)},
            "weights": {row.name: round(row.weight, 6) for row in rows},
            "seconds": {row.name: [round(row.seconds, 3), round(row.refit_seconds, 3)] for row in rows},
            "left_out": {row.name: row.reason for row in fitted.ensemble.candidates if row.status != "fitted"},
        }
    elif fitted.history is not None:
        extra["epochs"] = fitted.chosen
    return Outcome(fitted.score(split.test, y), meter.seconds, meter.peak_memory_mb, extra)


def rule_method(cell: Cell, device: str = "cpu") -> Method:
    """The unfitted method of a cell."""
    options = json.loads(cell.options)
    if hasattr(methods.get(cell.method).defaults, "device"):
        options["device"] = device
    return method(cell.method, cell.preset, options)


def flip(seed: int) -> Data:
    """A graph whose rule changes with the degree."""
    from demonet.data.synthetic import flip_graph

    return flip_graph(seed)


GENERATED: dict[str, Callable[[int], Data]] = {"flip": flip}


def _log_loss(fitted: Method, y: Tensor, split: Split) -> float:
    probability = fitted.predict_proba()[split.test].gather(1, y[split.test, None]).numpy()
    return float(-np.log(np.maximum(probability, 1e-12)).mean())
