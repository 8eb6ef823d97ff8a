"""All small subtrees, and their pairs for the paper's three properties.

Subtrees are coloured graphs with a seed, up to renumbering, also with their neighbours reordered. A convolution sees a
seed and its neighbours, but some also use the neighbours' degrees or nodes two steps away. So a subtree includes the
whole small graph that it is taken from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations, permutations, product
from string import ascii_lowercase

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from demonet_study.experiments.expressive.convolutions import Convolution, collision_shares

Edges = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Subtree:
    """A connected coloured graph whose node 0 is the seed."""

    colours: tuple[int, ...]  # the colour of each node, the seed's first
    edges: Edges  # pairs of nodes, the smaller first
    order: tuple[int, ...]  # the order of the seed's neighbours

    @classmethod
    def of(cls, colours: tuple[int, ...], edges: Edges) -> Subtree:
        """The subtree with the seed's neighbours in ascending order."""
        return cls(colours, edges, tuple(v for u, v in edges if u == 0))

    @property
    def seed(self) -> int:
        """The seed's colour."""
        return self.colours[0]

    @property
    def degree(self) -> int:
        """The seed's degree."""
        return len(self.order)

    @cached_property
    def neighbours(self) -> tuple[int, ...]:
        """The multiset of the neighbours' colours."""
        return tuple(sorted(self.colours[u] for u in self.order))

    @cached_property
    def kinds(self) -> frozenset[tuple[int, int]]:
        """The set, not the multiset, of (colour, degree) of the neighbours."""
        ends = [v for edge in self.edges for v in edge]
        return frozenset((self.colours[u], ends.count(u)) for u in self.order)

    def reordered(self) -> list[Subtree]:
        """The same subtree with the seed's neighbours in every other order."""
        return [Subtree(self.colours, self.edges, order) for order in permutations(self.order)][1:]

    def __str__(self) -> str:
        """Colours of nodes 0, 1, ... as letters, then the edges; those of the seed in their order."""
        rest = [edge for edge in self.edges if edge[0] != 0]
        return " ".join(
            ["".join(ascii_lowercase[c] for c in self.colours)]
            + [f"{u}{v}" for u, v in [*((0, v) for v in self.order), *rest]]
        )


def all_subtrees(max_nodes: int, num_colours: int) -> list[Subtree]:
    """All connected graphs of at most ``max_nodes`` nodes, with every seed and colouring, each once.

    Small ones come first; lone seeds, which the paper's text does not cover, come last.
    """
    found: dict[tuple[tuple[int, ...], Edges], None] = {}
    for n in range(1, max_nodes + 1):
        pairs = list(combinations(range(n), 2))
        graphs = [edges for size in range(n - 1, len(pairs) + 1) for edges in combinations(pairs, size)]
        for edges in filter(lambda edges: _is_connected(n, edges), graphs):
            for colours in product(range(num_colours), repeat=n):
                found[_canonical(colours, edges)] = None
    return sorted((Subtree.of(*key) for key in found), key=lambda tree: tree.degree == 0)


def forest(subtrees: Sequence[Subtree], num_colours: int) -> tuple[Tensor, Tensor, Tensor]:
    """All subtrees as a graph: one-hot colours ``[n, colours]`` (float64), edges sorted by target, the seeds' rows."""
    colours: list[int] = []
    edges: list[tuple[int, int]] = []
    seeds: list[int] = []
    for tree in subtrees:
        first = len(colours)
        seeds.append(first)
        colours += tree.colours
        edges += [(first + u, first) for u in tree.order]
        for v in range(1, len(tree.colours)):
            edges += [(first + a + b - v, first + v) for a, b in tree.edges if v in (a, b)]
    x = torch.eye(num_colours, dtype=torch.float64)[torch.tensor(colours)]
    return x, torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t().contiguous(), torch.tensor(seeds)


def _is_connected(n: int, edges: Edges) -> bool:
    graph = nx.empty_graph(n)
    graph.add_edges_from(edges)
    return bool(nx.is_connected(graph))


def _canonical(colours: tuple[int, ...], edges: Edges) -> tuple[tuple[int, ...], Edges]:
    """The smallest of all numberings that start with the seed."""
    numberings = []
    for rest in permutations(range(1, len(colours))):
        new = (0, *rest)
        painted = tuple(colour for _, colour in sorted(zip(new, colours, strict=True)))
        joined = ((min(new[u], new[v]), max(new[u], new[v])) for u, v in edges)
        numberings.append((painted, tuple(sorted(joined))))
    return min(numberings)


@dataclass(frozen=True)
class Pairs:
    """Pairs of subtrees that a property concerns."""

    name: str
    should_agree: bool  # whether the two subtrees of a pair should have the same vector
    subtrees: list[Subtree]  # all subtrees, the same list for every property
    left: NDArray[np.int64]  # the index of the first subtree of each pair
    right: NDArray[np.int64]  # the index of the second
    alone: NDArray[np.bool_]  # whether the two differ in nothing else

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
    * subtree-only: seed and multiset of neighbours are equal, in different graphs. The paper does not name it: its
      lemma assumes that a layer is a function of the subtree.
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


def pair_shares(
    convolution: Convolution, pairs: Sequence[Pairs], *, num_colours: int, draws: int, seed: int = 0
) -> list[NDArray[np.float64]]:
    """For each property, the share of ``draws`` draws of the weights in which the layer maps each pair alike."""
    build, graph = partial(convolution.build, num_colours), forest(pairs[0].subtrees, num_colours)
    return collision_shares(build, graph, [(p.left, p.right) for p in pairs], range(seed, seed + draws))
