"""Graphs to time on, each from a few numbers and a seed, so that another process can make the same one."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet.data import FeatureMap, load, synthetic
from demonet.degree.count import count_degree
from demonet.errors import DemonetError

WIDTH, CLASSES = 64, 16
KINDS = ("uniform", "pairs", "power-law", "degrees")


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph on its device, with constant features and labels.

    Attributes:
        edge_index: ``[2, arcs]``, both arcs of every edge.
        x: ``[n, width]`` float32.
        y: ``[n]`` classes.
        degree: ``[n]``.
    """

    edge_index: Tensor
    x: Tensor
    y: Tensor
    degree: Tensor

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.x.size(0)

    @property
    def num_arcs(self) -> int:
        """Number of arcs: twice the edges."""
        return self.edge_index.size(1)

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return int(self.y.max()) + 1


@dataclass(frozen=True)
class GraphSpec:
    """What graph to make.

    Attributes:
        kind: ``"uniform"``, distinct edges drawn uniformly (the paper's running-time figure, with 2n of them);
            ``"pairs"``, the same with repeats kept, made on the device itself, for the largest; ``"power-law"``, with a
            ``hub``; ``"degrees"``, with exactly ``distinct`` different degrees; or a set of the paper by its name.
        nodes: Number of nodes.
        edges: Number of edges; 2n unless said.
        hub: Degree of the hub of a power law; n / 10 unless said.
        distinct: How many different degrees there are.
        seed: Of edges, features and labels.
    """

    kind: str = "uniform"
    nodes: int = 0
    edges: int = 0
    hub: int = 0
    distinct: int = 0
    seed: int = 0

    def state(self) -> dict[str, Any]:
        """The fields as plain values, for another process."""
        return asdict(self)

    @property
    def name(self) -> str:
        """What tables call it."""
        if self.kind == "power-law":
            return f"power-law, hub {self.hub or self.nodes // 10}"
        return f"{self.distinct} degrees" if self.kind == "degrees" else self.kind

    def make(self, device: torch.device | str = "cpu") -> Graph:
        """The graph on that device, with features of width 64 and 16 classes, or those of the paper's set."""
        if self.kind not in KINDS:
            return _paper_set(self.kind, device)
        if self.nodes < 2:
            raise DemonetError(f"a {self.kind} graph of {self.nodes} nodes", hint="at least 2")
        device = torch.device(device)
        generator = torch.Generator(device).manual_seed(self.seed)
        edges = self.edges or 2 * self.nodes
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
        y[0] = CLASSES - 1  # so that the labels of a tiny graph name every class too
        return Graph(edge_index, x, y, count_degree(edge_index, self.nodes))


def random_pairs(n: int, edges: int, generator: torch.Generator) -> Tensor:
    """``[2, 2 * edges]``: ends drawn uniformly, never a loop; on a large sparse graph hardly a pair comes twice."""
    source = torch.randint(n, (edges,), generator=generator, device=generator.device)
    step = torch.randint(1, n, (edges,), generator=generator, device=generator.device)
    target = (source + step) % n
    return torch.stack([torch.cat([source, target]), torch.cat([target, source])])


def degree_sequence(n: int, arcs: int, distinct: int) -> Tensor:
    """``[n]`` degrees that sum to ``arcs`` and take exactly the values 1 to ``distinct``.

    Half of the arcs go to equally many nodes of each degree; the other nodes share what is left as evenly as they can.

    >>> degree_sequence(10, 24, 3)
    tensor([1, 2, 3, 1, 2, 3, 3, 3, 3, 3])
    """
    copies = max(1, arcs // 2 // (distinct * (distinct + 1) // 2)) if distinct > 0 else 0
    ladder = torch.arange(1, distinct + 1).repeat(copies)
    others, rest = n - ladder.numel(), arcs - int(ladder.sum())
    if distinct < 1 or others < 1 or not others <= rest <= distinct * others or arcs % 2:
        raise DemonetError(f"{n} nodes with {arcs} arcs cannot have the degrees 1 to {distinct}")
    even = torch.full((others,), rest // others)
    even[: rest % others] += 1
    return torch.cat([ladder, even])


def configuration(degree: Tensor, generator: torch.Generator) -> Tensor:
    """The configuration model: half-arcs paired at random, loops and repeats kept, so that degrees are exact."""
    nodes = torch.arange(degree.numel(), device=generator.device)
    halves = torch.repeat_interleave(nodes, degree.to(generator.device))
    pairs = halves[torch.randperm(halves.numel(), generator=generator, device=generator.device)].view(2, -1)
    return torch.cat([pairs, pairs.flip(0)], dim=1)


def node_set(name: str, **options: Any) -> Data:
    """A set of the paper whose items are the nodes of one graph; the options are those of :func:`~demonet.load`."""
    data = load(name, **options)
    if not isinstance(data, Data):
        raise DemonetError(f"{name} is a set of graphs", hint="the bench trains on nodes of one graph")
    return data


def _paper_set(name: str, device: torch.device | str) -> Graph:
    """A node set of the paper, its attributes (one-hot degrees where it has none) as dense features."""
    data = node_set(name)
    x = FeatureMap("degree-onehot" if data.x is None else "attributes").fit_transform(data)
    x = x.to_dense() if x.layout != torch.strided else x
    degree = count_degree(data.edge_index, x.size(0))
    return Graph(*(tensor.to(device) for tensor in (data.edge_index, x, data.y, degree)))
