r"""A score taken apart: what comes from the seed, from the shared weights and from the degree's own (Eq. 5-7).

Every convolution is a sum of three terms: :math:`W_0 x_v` (seed), :math:`W_g a_v` (shared) and :math:`W_d a_v` (the
degree's own), with :math:`a_v` the aggregated neighbourhood. A network without one of them is the same network with
that term set to zero in every convolution.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from demonet.nn.conv import DEMOConv
from demonet.nn.models import NodeDEMONet
from demonet.nn.weights import DegreeWeights

PARTS = frozenset({"seed", "shared", "own"})


@dataclass(frozen=True)
class ScoreParts:
    r"""A score as a sum: ``score = rest + seed + shared + own + interaction``.

    Attributes:
        score: Of one class for one node, before the softmax.
        rest: What is left with all three terms at zero: biases, norms and skips.
        seed, shared, own: What the score loses when that term alone is set to zero, :math:`f(\text{all}) -
            f(\text{all but it})`.
        interaction: What the three have only together. In one linear layer there is none.
    """

    score: float
    rest: float
    seed: float
    shared: float
    own: float
    interaction: float


def network_parts(model: NodeDEMONet, inputs: tuple[Tensor, ...], row: int, column: int) -> ScoreParts:
    """The parts over the whole network: each term is set to zero in all convolutions at once."""
    whole, rest = (_score(model, kept, inputs, row, column) for kept in (PARTS, frozenset[str]()))
    lost = {part: whole - _score(model, PARTS - {part}, inputs, row, column) for part in sorted(PARTS)}
    return ScoreParts(whole, rest, **lost, interaction=whole - rest - sum(lost.values()))


def last_layer_parts(model: NodeDEMONet, inputs: tuple[Tensor, ...], row: int, column: int) -> ScoreParts | None:
    """The exact parts in a degree-specific last layer, which is linear: the layers before it stay whole.

    None where the head is not degree-specific.
    """
    if not isinstance(model.head, DEMOConv):
        return None
    whole = _score(model, PARTS, inputs, row, column)
    alone = {part: _score(model, frozenset({part}), inputs, row, column, head_only=True) for part in sorted(PARTS)}
    rest = _score(model, frozenset(), inputs, row, column, head_only=True)
    own = {part: value - rest for part, value in alone.items()}
    return ScoreParts(whole, rest, **own, interaction=whole - rest - sum(own.values()))


@torch.no_grad()
def _score(
    model: NodeDEMONet,
    kept: frozenset[str],
    inputs: tuple[Tensor, ...],
    row: int,
    column: int,
    *,
    head_only: bool = False,
) -> float:
    """The score with only some of the terms, in double precision so that differences mean something."""
    model = copy.deepcopy(model).double().eval()
    for conv in (model.head,) if head_only else model.modules():
        if isinstance(conv, DEMOConv):
            if "seed" not in kept:
                conv.seed.weight.zero_()
            conv.weights = cast(DegreeWeights, _Kept(conv.weights, shared="shared" in kept, own="own" in kept))
    doubled = (value.double() if value.is_floating_point() else value for value in inputs)
    return float(model(*doubled)[row, column])


class _Kept(nn.Module):
    """The shared product, the degree's own, both or neither, of any scheme."""

    is_open = False

    def __init__(self, weights: DegreeWeights, *, shared: bool, own: bool) -> None:
        super().__init__()
        self.weights, self.shared, self.own = weights, shared, own
        self.in_channels = weights.in_channels

    def by_row(self, a: Tensor, degree: Tensor) -> Tensor:
        """Each row of ``a`` times what is kept of the matrix of its degree."""
        shared = a @ self.weights.shared
        own = self.weights.by_row(a, degree) - shared
        return self.shared * shared + self.own * own
