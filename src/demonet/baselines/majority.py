"""The commonest class of the training set, for everyone."""

from __future__ import annotations

import torch
from torch import Tensor

from demonet.baselines.base import Baseline, Items
from demonet.data.splits import Split


class Majority(Baseline):
    """The floor under all floors."""

    name = "majority"

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> None:
        self._prediction = torch.full_like(y, int(torch.bincount(y[split.train]).argmax()))

    def predict(self) -> Tensor:
        """The same class for every item."""
        return self._prediction
