"""Co-training and self-training together (Li et al., AAAI'18): what either of them would add."""

from __future__ import annotations

import torch
from torch import Tensor

from demonet.baselines.co_training import NOBODY, CoTrained


class Union(CoTrained):
    """Nodes that the walks or the network are sure of; one for which they name different classes is left out."""

    name = "union"

    def _join(self, walks: Tensor, network: Tensor) -> Tensor:
        either = torch.where(walks == NOBODY, network, walks)
        disagree = (walks != NOBODY) & (network != NOBODY) & (walks != network)
        return either.masked_fill(disagree, NOBODY)
