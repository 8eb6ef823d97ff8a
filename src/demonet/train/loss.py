"""The loss of every network here: cross-entropy, by the items' weights where they have some."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from demonet.ops import backend
from demonet.train.problem import Part


def part_loss(scores: Tensor, part: Part) -> Tensor:
    """Mean cross-entropy of the items of a part, by their weights where they have some."""
    if part.weight is None:
        return cross_entropy(scores, part.y)
    return F.cross_entropy(scores, part.y, reduction="none") @ part.weight / part.weight.sum()


def cross_entropy(scores: Tensor, y: Tensor) -> Tensor:
    """``F.cross_entropy``; many items of few classes go class by class on a CPU, three times as fast."""
    limits = backend.current()
    few = scores.size(1) < limits.vector_classes
    if scores.device.type == "cpu" and few and scores.size(0) >= limits.class_major_rows:
        return F.cross_entropy(scores.t()[None], y[None])
    return F.cross_entropy(scores, y)
