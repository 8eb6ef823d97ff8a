"""Co-training and self-training together (Li et al., AAAI'18): what both of them would add."""

from __future__ import annotations

from torch import Tensor

from demonet.baselines.co_training import NOBODY, CoTrained


class Intersection(CoTrained):
    """Nodes that the walks and the network are both sure of, with the same class."""

    name = "intersection"

    def _join(self, walks: Tensor, network: Tensor) -> Tensor:
        return walks.masked_fill(walks != network, NOBODY)
