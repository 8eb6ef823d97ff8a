r"""Collisions of DEMO-Net's layer on real-valued attributes.

The layer is linear in the aggregate of the neighbours, :math:`\hat W_d \, a`. With one-hot colours ``a`` counts them,
so it is the multiset. With real numbers different multisets may have equal sums, and no matrix of
any degree changes a sum of zero. Hence two neighbourhoods collide in every draw of the weights exactly when

.. math:: a = a' \quad\text{and}\quad (d = d' \;\text{ or }\; a = 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import combinations, combinations_with_replacement
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from demonet.degree import DegreeTasks
from demonet.errors import DemonetError
from demonet.nn import DEMOConv
from demonet.nn.conv import Scheme
from demonet_study.experiments.expressive.convolutions import WIDTH, collision_shares, tally

Aggregation = Literal["sum", "mean"]
Multiset = tuple[int, ...]

VALUES = (-1, 0, 1, 2, 3, 4)
KINDS = {
    "both zero": "both aggregates are zero",
    "same degree": "equal aggregates that are not zero, equal degrees",
    "other degree": "equal aggregates that are not zero, different degrees: only the degree's matrix tells them apart",
    "apart": "different aggregates",
}
NAMED: tuple[tuple[Multiset, Multiset], ...] = (
    ((0,), (0, 0)),
    ((), (0,)),
    ((), (-1, 1)),
    ((0,), (-1, 1)),
    ((1, 4), (2, 3)),
    ((-1, 3), (0, 2)),
    ((1,), (0, 1)),
    ((2,), (1, 1)),
    ((1,), (1, 1)),
    ((1,), (2,)),
)


@dataclass(frozen=True)
class RealCollision:
    """How often neighbourhoods of numbers collide under DEMO-Net's layer."""

    scheme: str  # the layer's scheme; "shared" is the layer without its degree-specific term
    aggregation: str  # "sum" (the paper's) or "mean"
    kind: str  # the kind of pairs, a key of KINDS
    left: str  # a neighbourhood, or "any" for all pairs of this kind
    right: str  # the other neighbourhood
    pairs: int
    always: int  # of these, how many collide in every draw of the weights
    sometimes: int  # how many collide in some draws and not in others
    share: float  # the share of draws in which a pair collides, on average over the pairs


def multisets() -> list[Multiset]:
    """Every multiset of at most three of the values, small ones first."""
    return [m for size in range(4) for m in combinations_with_replacement(VALUES, size)]


def kind(left: Multiset, right: Multiset, aggregation: Aggregation) -> str:
    """The kind of a pair, a key of :data:`KINDS`."""
    # Fractions are compared without division, which is exact for integers.
    scales = (max(len(right), 1), max(len(left), 1)) if aggregation == "mean" else (1, 1)
    if sum(left) * scales[0] != sum(right) * scales[1]:
        return "apart"
    if sum(left) == 0:
        return "both zero"
    return "same degree" if len(left) == len(right) else "other degree"


def real_collisions(*, draws: int = 100, seed: int = 0) -> list[RealCollision]:
    """The named pairs, and all pairs of :func:`multisets` by kind, for each scheme and aggregation.

    ``seed`` is that of the first draw of the weights; each draw has the next.
    """
    if draws < 1:
        raise DemonetError(f"draws={draws}: at least 1 is needed")
    every = multisets()
    left, right = np.array(list(combinations(range(len(every)), 2))).T
    number = {pair: place for place, pair in enumerate(combinations(every, 2))}
    tasks, graph = DegreeTasks.exact(torch.arange(max(map(len, every)) + 1)), _stars(every)
    rows: list[RealCollision] = []
    for aggregation in get_args(Aggregation):
        kinds = np.array([kind(*pair, aggregation) for pair in number])
        for scheme in ("weight", "hash", "smooth", "shared"):
            layer = partial(_layer, tasks, scheme, aggregation)
            (share,) = collision_shares(layer, graph, [(left, right)], range(seed, seed + draws))
            for pair in NAMED:
                place = np.array([number[pair]])
                rows.append(_row(scheme, aggregation, kinds[place[0]], _text(pair[0]), _text(pair[1]), share[place]))
            rows += [_row(scheme, aggregation, name, "any", "any", share[kinds == name]) for name in KINDS]
    return rows


def _layer(tasks: DegreeTasks, scheme: str, aggregation: Aggregation, draw: int) -> torch.nn.Module:
    """With a scale of zero the degree-specific matrices vanish, and only the shared one is left."""
    name: Scheme = "weight" if scheme == "shared" else scheme
    scale = 0.0 if scheme == "shared" else 1.0
    return DEMOConv(
        1, 2 * WIDTH, tasks, scheme=name, aggr=aggregation, combine="concat", hash_seed=draw, degree_scale=scale
    )


def _stars(every: list[Multiset]) -> tuple[Tensor, Tensor, Tensor]:
    """A seed with the attribute 1 for each multiset, followed by all neighbours; edges to the seeds; the seeds."""
    seeds = torch.arange(len(every))
    seed = seeds.repeat_interleave(torch.tensor([len(m) for m in every]))
    values = torch.tensor([value for m in every for value in m], dtype=torch.float64)
    x = torch.cat([torch.ones(len(every), dtype=torch.float64), values])[:, None]
    return x, torch.stack([len(every) + torch.arange(len(seed)), seed]), seeds


def _row(scheme: str, aggregation: str, name: str, left: str, right: str, share: NDArray[np.float64]) -> RealCollision:
    return RealCollision(scheme, aggregation, str(name), left, right, len(share), *tally(share), float(share.mean()))


def _text(multiset: Multiset) -> str:
    return "{" + ", ".join(map(str, multiset)) + "}"
