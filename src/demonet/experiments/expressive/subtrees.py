"""Every small subtree there is: coloured graphs with a seed, up to renumbering, and the same with neighbours reordered.

A convolution sees a seed and its neighbours, but some also see the neighbours' degrees or two steps far. So a subtree
comes with the whole small graph that it was taken from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations, product
from string import ascii_lowercase

import networkx as nx
import torch
from torch import Tensor

Edges = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Subtree:
    """A connected coloured graph whose node 0 is the seed.

    Attributes:
        colours: The colour of each node, the seed's first.
        edges: Pairs of nodes, the smaller first.
        order: The order in which the seed meets its neighbours.
    """

    colours: tuple[int, ...]
    edges: Edges
    order: tuple[int, ...]

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
        """Colours of nodes 0, 1, ... as letters, then the edges; the seed's own in the order in which it meets them."""
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
    arcs: list[tuple[int, int]] = []
    seeds: list[int] = []
    for tree in subtrees:
        first = len(colours)
        seeds.append(first)
        colours += tree.colours
        arcs += [(first + u, first) for u in tree.order]
        for v in range(1, len(tree.colours)):
            arcs += [(first + a + b - v, first + v) for a, b in tree.edges if v in (a, b)]
    x = torch.eye(num_colours, dtype=torch.float64)[torch.tensor(colours)]
    return x, torch.tensor(arcs, dtype=torch.long).reshape(-1, 2).t().contiguous(), torch.tensor(seeds)


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
