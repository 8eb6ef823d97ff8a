"""Small graphs of every shape, drawn by hypothesis or made by hand."""

from __future__ import annotations

from typing import NamedTuple

import torch
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data


class Graph(NamedTuple):
    """Arcs from row 0 to row 1, and how many nodes there are."""

    edge_index: Tensor
    num_nodes: int

    @property
    def data(self) -> Data:
        return Data(edge_index=self.edge_index, num_nodes=self.num_nodes)


def from_arcs(num_nodes: int, arcs, *, undirected: bool = False) -> Graph:
    """A graph from pairs ``(source, target)``; undirected, each pair is listed both ways, a loop once."""
    arcs = list(arcs)
    if undirected:
        arcs += [(v, u) for u, v in arcs if u != v]
    return Graph(torch.tensor(arcs, dtype=torch.long).reshape(-1, 2).t().contiguous(), num_nodes)


def drawn_by_seed(num_nodes: int, num_arcs: int, seed: int = 0, *, undirected: bool = True) -> Graph:
    """A larger graph: arcs between random nodes, loops and parallel arcs included."""
    generator = torch.Generator().manual_seed(seed)
    arcs = torch.randint(0, num_nodes, (num_arcs, 2), generator=generator).tolist()
    return from_arcs(num_nodes, arcs, undirected=undirected)


def features(num_nodes: int, width: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Normal features that are the same for the same seed."""
    return torch.randn(num_nodes, width, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@st.composite
def graphs(draw, *, min_nodes: int = 1, max_nodes: int = 7) -> Graph:
    """A graph with isolated nodes, a hub, repeated degrees, parallel arcs and loops, directed or not.

    One node and no edge are drawn too.
    """
    num_nodes = draw(st.integers(min_nodes, max_nodes))
    if num_nodes == 0:
        return from_arcs(0, [])
    node = st.integers(0, num_nodes - 1)
    arcs = draw(st.lists(st.tuples(node, node), max_size=2 * num_nodes))
    if num_nodes > 2 and draw(st.booleans()):
        hub = draw(node)
        arcs += [(leaf, hub) for leaf in range(num_nodes) if leaf != hub]
    return from_arcs(num_nodes, arcs, undirected=draw(st.booleans()))


seeds = st.integers(0, 2**31 - 1)
