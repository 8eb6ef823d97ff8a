"""The estimated time of a fit, from the size of a problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch_geometric.data import Data


@dataclass(frozen=True)
class Size:
    """What the cost of a method depends on: thousands of nodes, of edges (both directions), of graphs; attributes.

    ``largest`` is the number of nodes of the largest graph, in thousands; ``epochs`` the limit of epochs of networks.
    """

    nodes: float
    edges: float
    graphs: float
    attributes: int
    largest: float
    epochs: int

    @classmethod
    def of(cls, graphs: Sequence[Data], epochs: int) -> Size:
        """The size of a problem."""
        nodes = [int(graph.num_nodes or 0) / 1000 for graph in graphs]
        edges = sum(graph.edge_index.size(1) for graph in graphs) / 1000
        attributes = 0 if graphs[0].x is None else int(graphs[0].x.size(1))
        return cls(sum(nodes), edges, len(nodes) / 1000, attributes, max(nodes), epochs)


@dataclass(frozen=True)
class Cost:
    """Processor seconds of one fit: a sum of terms in the quantities of :class:`Size`.

    Measured on Brazil, USA, MUTAG, Flickr and a generated graph of 2,000 nodes; without terms, next to nothing.

    Attributes:
        fixed: For any problem.
        unit: For a thousand edges, or a thousand nodes with 16 attributes; for networks, in 1,000 epochs.
        nodes: For the square of a thousand nodes.
        product: For a thousand nodes times a thousand edges.
        graphs: For the square of a thousand graphs.
        dense: For a thousand graphs, times the square of a thousand nodes of the largest.
    """

    fixed: float = 0.0
    unit: float = 0.0
    nodes: float = 0.0
    product: float = 0.0
    graphs: float = 0.0
    dense: float = 0.0

    def __call__(self, size: Size) -> float:
        """The estimate; right within a factor of about three."""
        units = size.edges + size.nodes * (1 + size.attributes / 16)
        return (
            self.fixed
            + self.unit * units * min(1.0, size.epochs / 1000)
            + self.nodes * size.nodes**2
            + self.product * size.nodes * size.edges
            + self.graphs * size.graphs**2
            + self.dense * size.graphs * size.largest**2
        )
