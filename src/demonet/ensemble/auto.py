"""``demonet-auto``: the ensemble, which is what ``demonet fit`` fits by default."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from demonet.data.splits import Split
from demonet.ensemble.ensemble import EFFORTS, Ensemble
from demonet.errors import DemonetError
from demonet.methods.base import Conditions, Items, Method, Predicted, Settings, register
from demonet.methods.cost import Cost
from demonet.methods.model import TASKS
from demonet.train.metrics import Metric


@dataclass(frozen=True)
class AutoSettings(Settings):
    """``effort`` and ``device`` of the ensemble; ``both``: whether ``fit`` prepares :meth:`Auto.refit`."""

    effort: str = "standard"
    device: str = "cpu"
    both: bool = True

    def __post_init__(self) -> None:
        if self.effort not in EFFORTS:
            raise DemonetError(f"effort={self.effort!r}", hint=f"expected one of {', '.join(EFFORTS)}")


@register
class Auto(Method):
    """A weighted average of kernel machines, forests, networks and others; validation chooses the weights.

    ``ensemble`` is the fitted :class:`~demonet.ensemble.Ensemble`; ``chosen`` are the weights of its candidates.
    """

    name = "demonet-auto"
    group = "DEMO-Net"
    tasks = TASKS
    cost = Cost(1.0, 0.3)
    at_any_size = True
    defaults = AutoSettings("this project")
    settings: AutoSettings
    ensemble: Ensemble

    @classmethod
    def under(cls, conditions: Conditions) -> Self:
        """With the effort, and without the refit."""
        return cls(effort=conditions.effort, both=False)

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> Predicted:
        self.ensemble = self._ensemble(data, split, seed, refit=self.settings.both)
        self.chosen = {row.name: row.weight for row in self.ensemble.candidates}
        return self._outputs(self.ensemble.strict_outputs)

    def refit(self, data: Items, split: Split, seed: int = 0) -> Self:
        """A copy whose members are fitted on the training and validation part together, with the same weights."""
        again = copy.copy(self)
        if not self.settings.both:
            again.ensemble = self._ensemble(data, split, seed, refit=True)
        again._predicted = again._outputs(again.ensemble.fitted_outputs)
        return again

    def _ensemble(self, data: Items, split: Split, seed: int, *, refit: bool) -> Ensemble:
        effort: Any = self.settings.effort
        options: dict[str, Any] = {"effort": effort, "seed": seed, "device": self.settings.device, "refit": refit}
        if self.metric is not None:
            options |= {"metric": self.metric.name, "positive": self.metric.positive}
        return Ensemble.fit(data, split, task=self.task, **options)

    def decision(self, metric: Metric, y: Tensor, split: Split) -> tuple[float, ...]:
        """That of the ensemble, for the metric that it was fitted with."""
        return self.ensemble.decision

    def _outputs(self, found: Any) -> Predicted:
        outputs = torch.from_numpy(np.asarray(found))
        return (outputs.argmax(1) if self.task == "classify" else outputs), outputs
