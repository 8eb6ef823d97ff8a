"""``majority``: the most frequent class of the training part."""

from __future__ import annotations

import torch
from torch import Tensor

from demonet.baselines.base import Baseline, Items, Settings, register
from demonet.data.splits import Split


@register
class Majority(Baseline):
    """Predicts the most frequent class of the training part for every item."""

    name = "majority"
    defaults = Settings("simple baseline of this project")

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> Tensor:
        return torch.full_like(y, int(torch.bincount(y[split.train]).argmax()))
