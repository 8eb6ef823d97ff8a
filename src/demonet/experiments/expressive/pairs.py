"""Pairs of subtrees for the paper's three properties, and how often a layer maps a pair to the same vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray

from demonet.experiments.expressive.convolutions import Convolution
from demonet.experiments.expressive.partitions import alike
from demonet.experiments.expressive.subtrees import Subtree, forest


@dataclass(frozen=True)
class Pairs:
    """Pairs of subtrees that a property concerns.

    Attributes:
        name: The property.
        should_agree: Whether the two of a pair should be mapped alike, or apart.
        subtrees: All subtrees, the same list for every property.
        left: The first of each pair, a place in the list of subtrees.
        right: The second.
        alone: Whether the two differ in that one thing alone.
    """

    name: str
    should_agree: bool
    subtrees: list[Subtree]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    alone: NDArray[np.bool_]

    @classmethod
    def of(
        cls, name: str, should_agree: bool, subtrees: list[Subtree], found: Sequence[tuple[int, int, bool]]
    ) -> Pairs:
        """From a list of (left, right, alone)."""
        table = np.array(found, dtype=np.int64).reshape(-1, 3)
        return cls(name, should_agree, subtrees, table[:, 0], table[:, 1], table[:, 2].astype(bool))

    def names(self, pair: int) -> tuple[str, str]:
        """The two subtrees of a pair as text."""
        return str(self.subtrees[self.left[pair]]), str(self.subtrees[self.right[pair]])


def property_pairs(subtrees: Sequence[Subtree]) -> list[Pairs]:
    """The pairs of each property among the subtrees.

    * seed-oriented: the seeds' colours differ; alone, if all else is equal.
    * degree-aware: the seeds' degrees differ; alone, if the seeds' colours are equal and the neighbours are of the same
      kinds (colour and degree), only more of them.
    * order-free: the neighbours' order differs and nothing else.
    * subtree-only: seed and multiset of neighbours are equal, in different graphs. The paper has no name for it: its
      lemma takes for granted that a layer is a function of the subtree.
    """
    trees = list(enumerate(subtrees))
    seed = [
        (i, j, a.colours[1:] == b.colours[1:] and a.edges == b.edges)
        for (i, a), (j, b) in combinations(trees, 2)
        if a.seed != b.seed
    ]
    degree = [
        (i, j, a.seed == b.seed and a.kinds == b.kinds)
        for (i, a), (j, b) in combinations(trees, 2)
        if a.degree != b.degree
    ]
    context = [
        (i, j, True) for (i, a), (j, b) in combinations(trees, 2) if a.seed == b.seed and a.neighbours == b.neighbours
    ]
    reordered = [(i, other) for i, tree in trees for other in tree.reordered()]
    order = [(i, len(trees) + place, True) for place, (i, _) in enumerate(reordered)]
    every = [*subtrees, *(other for _, other in reordered)]
    return [
        Pairs.of("seed-oriented", False, every, seed),
        Pairs.of("degree-aware", False, every, degree),
        Pairs.of("order-free", True, every, order),
        Pairs.of("subtree-only", True, every, context),
    ]


def collision_shares(
    convolution: Convolution, pairs: Sequence[Pairs], *, num_colours: int, draws: int, seed: int = 0
) -> list[NDArray[np.float64]]:
    """For each property, the share of ``draws`` draws of the weights in which the layer maps each pair alike."""
    x, edge_index, seeds = forest(pairs[0].subtrees, num_colours)
    counts = [np.zeros(len(p.left), dtype=np.int64) for p in pairs]
    for draw in range(seed, seed + draws):
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(draw)
            out = convolution.build(num_colours, draw).double()(x, edge_index)[seeds].numpy()
        for count, p in zip(counts, pairs, strict=True):
            count += alike(out, p.left, p.right)
    return [count / draws for count in counts]
