"""Graphs to time on; each is specified by a few numbers and a seed, so that another process can make the same one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet.data import load, synthetic
from demonet.degree.count import count_degree
from demonet.errors import DemonetError
from demonet.features import FeatureMap

WIDTH, CLASSES = 64, 16
KINDS = ("uniform", "pairs", "power-law", "degrees")


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph on its device, with constant features and labels."""

    edge_index: Tensor  # [2, edges], both directions of every edge
    x: Tensor  # [n, width] float32
    y: Tensor  # [n] classes
    degree: Tensor  # [n]

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.x.size(0)

    @property
    def num_arcs(self) -> int:
        """Number of directed edges."""
        return self.edge_index.size(1)

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return int(self.y.max()) + 1


@dataclass(frozen=True)
class GraphSpec:
    """The specification of a graph."""

    # "uniform", distinct edges drawn uniformly (as in the paper's running-time figure); "pairs", the same with repeated
    # edges, made on the device, for large graphs; "power-law", with a hub; "degrees", with exactly distinct different
    # degrees; or the name of a data set. All but data sets have two undirected edges for each node.
    kind: str = "uniform"
    nodes: int = 0
    hub: int = 0  # degree of the hub of a power law; n / 10 by default
    distinct: int = 0
    seed: int = 0  # seed of edges, features and labels

    @property
    def name(self) -> str:
        """The name in tables."""
        if self.kind == "power-law":
            return f"power-law, hub {self.hub or self.nodes // 10}"
        return f"{self.distinct} degrees" if self.kind == "degrees" else self.kind

    def make(self, device: torch.device | str = "cpu") -> Graph:
        """The graph on a device, with features of width 64 and 16 classes, or those of the data set."""
        if self.kind not in KINDS:
            return _paper_set(self.kind, device)
        if self.nodes < 2:
            raise DemonetError(f"a {self.kind} graph of {self.nodes} nodes", hint="at least 2")
        device = torch.device(device)
        generator = torch.Generator(device).manual_seed(self.seed)
        edges = 2 * self.nodes
        if self.kind == "uniform":
            edge_index = synthetic.uniform_random(self.nodes, edges, self.seed).edge_index
        elif self.kind == "power-law":
            edge_index = synthetic.power_law(self.nodes, edges, self.hub or None, self.seed).edge_index
        elif self.kind == "pairs":
            edge_index = random_pairs(self.nodes, edges, generator)
        else:
            edge_index = configuration(degree_sequence(self.nodes, 2 * edges, self.distinct), generator)
        edge_index = edge_index.to(device)
        x = torch.randn(self.nodes, WIDTH, generator=generator, device=device)
        y = torch.randint(CLASSES, (self.nodes,), generator=generator, device=device)
        y[0] = CLASSES - 1  # so that a tiny graph has the same number of classes
        return Graph(edge_index, x, y, count_degree(edge_index, self.nodes))


def random_pairs(n: int, edges: int, generator: torch.Generator) -> Tensor:
    """``[2, 2 * edges]``: ends drawn uniformly, without loops; on a large sparse graph, few edges are repeated."""
    source = torch.randint(n, (edges,), generator=generator, device=generator.device)
    step = torch.randint(1, n, (edges,), generator=generator, device=generator.device)
    target = (source + step) % n
    return torch.stack([torch.cat([source, target]), torch.cat([target, source])])


def degree_sequence(n: int, edges: int, distinct: int) -> Tensor:
    """``[n]`` degrees that sum to ``edges`` (both directions) and have exactly the values 1 to ``distinct``.

    Half of the edges go to equally many nodes of each degree; the rest is distributed evenly over the other nodes.

    >>> degree_sequence(10, 24, 3)
    tensor([1, 2, 3, 1, 2, 3, 3, 3, 3, 3])
    """
    copies = max(1, edges // 2 // (distinct * (distinct + 1) // 2)) if distinct > 0 else 0
    ladder = torch.arange(1, distinct + 1).repeat(copies)
    others, rest = n - ladder.numel(), edges - int(ladder.sum())
    if distinct < 1 or others < 1 or not others <= rest <= distinct * others or edges % 2:
        raise DemonetError(f"{n} nodes with {edges} edges cannot have the degrees 1 to {distinct}")
    even = torch.full((others,), rest // others)
    even[: rest % others] += 1
    return torch.cat([ladder, even])


def configuration(degree: Tensor, generator: torch.Generator) -> Tensor:
    """The configuration model: half-edges paired at random; loops and repeats stay, so that degrees are exact."""
    nodes = torch.arange(degree.numel(), device=generator.device)
    halves = torch.repeat_interleave(nodes, degree.to(generator.device))
    pairs = halves[torch.randperm(halves.numel(), generator=generator, device=generator.device)].view(2, -1)
    return torch.cat([pairs, pairs.flip(0)], dim=1)


def node_set(name: str, **options: Any) -> Data:
    """A data set for node classification; the options are those of :func:`~demonet.data.load`."""
    data = load(name, **options)
    if not isinstance(data, Data):
        raise DemonetError(f"{name} is a set of graphs", hint="choose a data set for node classification")
    return data


def _paper_set(name: str, device: torch.device | str) -> Graph:
    """A data set with its attributes, or one-hot degrees if it has none, as dense features."""
    data = node_set(name)
    x = FeatureMap("degree-onehot" if data.x is None else "attributes").fit_transform(data)
    x = x.to_dense() if x.layout != torch.strided else x
    degree = count_degree(data.edge_index, x.size(0))
    return Graph(*(tensor.to(device) for tensor in (data.edge_index, x, data.y, degree)))
