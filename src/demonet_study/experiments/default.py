"""One run of kind ``default``: a method under two rules, on one split.

``strict``: fitted on the training part alone; everything else (settings, epochs, weights of an average) is chosen on
the validation part. ``refit``: what was chosen is kept, and the method is fitted again on the training and validation
part together. The test part is looked at once under each rule. One run has both, as the choice is the same.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from demonet.closedform import KernelMachine
from demonet.closedform.machine import inputs_for
from demonet.data.splits import Split
from demonet.ensemble import EFFORTS, Ensemble
from demonet.errors import DemonetError
from demonet.methods.base import Items, labels
from demonet.methods.network import Network
from demonet.runs.measure import Meter
from demonet_study.experiments.methods import BaselineMethod, load_quietly, method
from demonet_study.ledger.job import Cell, Job, Outcome
from demonet_study.protocol import split_by

Float = NDArray[np.float64]
AUTO, KERNEL = "demonet-auto", "demonet-kernel"
OURS = (AUTO, KERNEL)


@dataclass(frozen=True)
class BothRules:
    """Test accuracy under both rules, accuracy on validation before the refit, and whatever else tables show.

    ``refit`` is None where only ``strict`` is asked for.
    """

    strict: float
    refit: float | None
    validation: float
    extra: Mapping[str, Any] = field(default_factory=dict)


def both_rules(job: Job, device: str = "cpu") -> Outcome:
    """Run ``seed`` of a cell: split ``seed`` and seed ``seed``. Networks and the closed form use the device.

    The value is the test accuracy under ``strict``; ``extra["refit"]`` is that under ``refit``. Further extra values:
    validation accuracy, the hash of the split, the epochs of a network, and for the ensemble the log-loss on the test
    part under both rules, the weight of each member, and the seconds of each fit and refit.
    """
    meter, cell = Meter(), job.cell
    tried = rule_method(cell, device)
    data = tried.read(cell.dataset, device, job.seed)
    split = split_by(cell.split, labels(data), job.seed)
    found = tried.fit(data, split, job.seed)
    extra = {"validation": found.validation, "split": split.hash, **found.extra}
    if found.refit is not None:
        extra["refit"] = found.refit
    return Outcome(found.strict, meter.seconds, meter.peak_memory_mb, extra)


class RuleMethod(ABC):
    """A method with its settings."""

    def read(self, dataset: str, device: str, seed: int) -> Items:
        """Load a data set, or generate the graph of this run."""
        return GENERATED[dataset](seed) if dataset in GENERATED else load_quietly(dataset)

    @abstractmethod
    def fit(self, data: Items, split: Split, seed: int) -> BothRules:
        """Fit under both rules, and score each once."""


class AnyBaseline(RuleMethod):
    """A baseline of :mod:`demonet.methods`; ``options`` are changes to its settings."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._method = cast(BaselineMethod, method(name, options=options))

    def read(self, dataset: str, device: str, seed: int) -> Items:
        """Networks use the device."""
        if dataset in GENERATED:
            return super().read(dataset, device, seed)
        return self._method.read(dataset, device)

    def fit(self, data: Items, split: Split, seed: int) -> BothRules:
        """Fit, and fit again with what was chosen."""
        y, fitted = labels(data), self._method.make().fit(data, split, seed)
        again = fitted.refit(data, split, seed)
        extra = {"epochs": fitted.chosen} if isinstance(fitted, Network) else {}
        return BothRules(fitted.score(split.test, y), again.score(split.test, y), fitted.score(split.val, y), extra)


class Auto(RuleMethod):
    """What ``demonet fit`` does by default: the ensemble. The option is ``effort``."""

    def __init__(self, options: Mapping[str, Any], device: str = "cpu") -> None:
        self._device = device
        self._effort = _only(AUTO, options, "effort").get("effort", "standard")
        if self._effort not in EFFORTS:
            raise DemonetError(f"effort={self._effort!r}", hint=f"expected one of {', '.join(EFFORTS)}")

    def fit(self, data: Items, split: Split, seed: int) -> BothRules:
        """The average of members fitted on the training part, and of the same members after their refit."""
        fitted = Ensemble.fit(data, split, effort=self._effort, seed=seed, device=self._device)
        y, test = labels(data).numpy(), split.test.numpy()
        strict, refit = (np.asarray(proba)[test] for proba in (fitted.strict_proba, fitted.proba))
        rows = [row for row in fitted.candidates if row.status == "fitted"]
        extra = {
            "log_loss": {"strict": _log_loss(strict, y[test]), "refit": _log_loss(refit, y[test])},
            "weights": {row.name: round(row.weight, 6) for row in rows},
            "seconds": {row.name: [round(row.seconds, 3), round(row.refit_seconds, 3)] for row in rows},
            "left_out": {row.name: row.reason for row in fitted.candidates if row.status != "fitted"},
        }
        return BothRules(_accuracy(strict, y[test]), _accuracy(refit, y[test]), fitted.validation["accuracy"], extra)


class Kernel(RuleMethod):
    """DEMO-Net in closed form. The option ``degree`` is the arm of the study of the degree-specific part.

    ``"best"``: s_d is chosen together with all other settings. ``"none"``: s_d = 0. ``"shuffled"``: as ``"best"``, but
    the degrees that kappa compares are those of random other nodes, over all graphs. Every arm makes its own search,
    so none of them has settings that were chosen for another. The arms are compared under ``strict``; ``"none"`` and
    ``"shuffled"`` are not fitted again.
    """

    def __init__(self, options: Mapping[str, Any], device: str = "cpu") -> None:
        self._device = device
        self._arm = _only(KERNEL, options, "degree").get("degree", "best")
        if self._arm not in ARMS:
            raise DemonetError(f"degree={self._arm!r}", hint=f"expected one of {', '.join(ARMS)}")

    def fit(self, data: Items, split: Split, seed: int) -> BothRules:
        """Settings by leave-one-out and validation; after that, noise and link are fitted again with the rest."""
        machine = KernelMachine(degree=self._arm != "none", device=self._device, seed=seed)
        y = labels(data).numpy()
        train, val, test = (part.numpy() for part in (split.train, split.val, split.test))
        view = self._view(data, train, seed)
        machine.fit_views(view.take(train), y[train], view.take(val), y[val])
        strict, validation = (_right(machine, view.take(part), y[part]) for part in (test, val))
        settings = [setting for setting, _ in machine.members_]
        refit = None
        if self._arm == "best":
            both = split.joined().train.numpy()
            view = self._view(data, both, seed)
            again = KernelMachine(machine.task_, settings=settings, device=self._device, seed=seed)
            again.fit_views(view.take(both), y[both])
            refit = _right(again, view.take(test), y[test])
        # A graph kernel without its pooled part (WL and structure alone) does not read the other fields.
        share = float(np.mean([s.degree if getattr(s, "pooled", 1.0) else 0.0 for s in settings]))
        extra = {"degree": share, "task": machine.task_}
        return BothRules(strict, refit, validation, extra)

    def _view(self, data: Items, known: NDArray[np.int64], seed: int) -> Any:
        inputs = inputs_for(data)
        view = inputs.fit(data if isinstance(data, Data) else [data[i] for i in known]).transform(data)
        return view.shuffled(seed) if self._arm == "shuffled" else view


ARMS = ("best", "none", "shuffled")


def rule_method(cell: Cell, device: str = "cpu") -> RuleMethod:
    """The method of a cell: one of :data:`OURS`, or a baseline."""
    options = json.loads(cell.options)
    if cell.method in OURS:
        return Auto(options, device) if cell.method == AUTO else Kernel(options, device)
    return AnyBaseline(cell.method, options)


def flip(seed: int) -> Data:
    """A graph whose rule changes with the degree."""
    from demonet.data.synthetic import flip_graph

    return flip_graph(seed)


GENERATED: dict[str, Callable[[int], Data]] = {"flip": flip}


def _only(name: str, options: Mapping[str, Any], known: str) -> Mapping[str, Any]:
    for option in options:
        if option != known:
            raise DemonetError(f"{name} has no option {option!r}", hint=f"expected {known}")
    return options


def _right(machine: KernelMachine, view: Any, y: NDArray[np.int64]) -> float:
    """The accuracy of a machine on the items of a view."""
    return _accuracy(machine.link_.log_probabilities(machine.decision_of(view)), y)


def _accuracy(scores: Float, y: NDArray[np.int64]) -> float:
    return float((scores.argmax(1) == y).mean())


def _log_loss(probability: Float, y: NDArray[np.int64]) -> float:
    return float(-np.log(np.maximum(probability[np.arange(len(y)), y], 1e-12)).mean())
