"""``demonet-kernel``: DEMO-Net in closed form, a kernel machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet.closedform import KernelMachine
from demonet.closedform.machine import inputs_for
from demonet.data.splits import Split
from demonet.errors import DemonetError
from demonet.methods.base import Items, Method, Predicted, Settings, register
from demonet.methods.cost import Cost

ARMS = ("best", "none", "shuffled")


@dataclass(frozen=True)
class KernelSettings(Settings):
    """Settings of the machine.

    Attributes:
        degree: ``"best"``: s_d is chosen together with all other settings. ``"none"``: s_d = 0. ``"shuffled"``: as
            ``"best"``, but the degrees that kappa compares are those of random other nodes, over all graphs.
        device: Where the machine is fitted.
    """

    degree: str = "best"
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.degree not in ARMS:
            raise DemonetError(f"degree={self.degree!r}", hint=f"expected one of {', '.join(ARMS)}")


@register
class Kernel(Method):
    """Ridge regression on the degree-specific kernel; leave-one-out and validation choose its settings.

    ``machine`` is the fitted :class:`~demonet.kernels.KernelMachine`; ``chosen`` are its task and its settings.
    """

    name = "demonet-kernel"
    group = "DEMO-Net"
    cost = Cost(0.5, 0.2)
    at_any_size = True
    defaults = KernelSettings("this project")
    settings: KernelSettings
    machine: KernelMachine

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> Predicted:
        options: dict[str, Any] = {"degree": self.settings.degree != "none", "device": self.settings.device}
        if self.chosen is not None:
            options |= {"task": self.chosen[0], "settings": self.chosen[1]}
        known, (train, val) = y.numpy(), (part.numpy() for part in (split.train, split.val))
        view = self._view(data, train, seed)
        judges = (view.take(val), known[val]) if val.size else ()
        self.machine = KernelMachine(seed=seed, **options).fit_views(view.take(train), known[train], *judges)
        if self.chosen is None:
            self.chosen = self.machine.task_, [setting for setting, _ in self.machine.members_]
        scores = torch.from_numpy(self.machine.link_.log_probabilities(self.machine.decision_of(view)))
        return scores.argmax(1), torch.nn.functional.pad(scores.exp(), (0, int(y.max()) + 1 - scores.size(1)))

    def _view(self, data: Items, known: np.ndarray, seed: int) -> Any:
        inputs = inputs_for(data)
        view = inputs.fit(data if isinstance(data, Data) else [data[i] for i in known]).transform(data)
        return view.shuffled(seed) if self.settings.degree == "shuffled" else view
