r"""Batches of nodes with their true degrees, and whole graphs block by block of rows.

A convolution of some targets needs the rows of their neighbours alone. The neighbours of a node may be sampled: its
list is in degree order, it is cut into k strata of equal length, and one neighbour is drawn uniformly from each. Every
neighbour is drawn k / d times on average, so the sum of the sample times d / k has the sum over all d neighbours as its
mean; and a sample has neighbours of low and of high degree in the shares that they have in the list. The task of a node
is chosen by its degree in the whole graph, never by the size of the sample.

The sums of the first convolution involve no parameter. They are known for all nodes, so that a model of K convolutions
needs the neighbours of K - 1 hops.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from demonet.degree.lists import ranges
from demonet.errors import DemonetError
from demonet.nn.conv import DEMOConv
from demonet.nn.convolve import slice_rows
from demonet.nn.edges import Block, Factors, part_of
from demonet.nn.prepared import GraphInput, prepare, take_rows
from demonet.ops.reference import aggregate_scale

ROWS = 65_536  # of a whole graph that are computed at once
WHOLE_SHARE = 0.25  # a batch of nodes that reads more than this share of the rows is evaluated with the whole graph


@dataclass(frozen=True, eq=False)
class NodeBatch:
    """Some nodes, with all that a model needs to compute their scores: pass it in place of ``x``, without edges; or
    :attr:`blocks` to the convolutions of a module of your own (:class:`NeighbourSampler`).

    A model in evaluation mode computes many rows block by block.

    Attributes:
        x: ``[rows, F]`` the features of the nodes that the first convolution is computed for, or reads.
        neighbourhood: ``[rows, F]`` the sums of the first convolution, over all neighbours; None if it reads sums.
        blocks: One for every convolution, the first one first.
    """

    x: Tensor
    neighbourhood: Tensor | None
    blocks: tuple[Block, ...]
    rows: int = field(default=ROWS, compare=False)

    def num_targets(self, number: int) -> int:
        """How many targets a convolution has."""
        return len(self.blocks[number].degree)

    def parts(self, number: int, conv: DEMOConv) -> Iterator[Block]:
        """The targets of a convolution, block by block."""
        return iter(self._parts[number])

    @cached_property
    def _parts(self) -> list[list[Block]]:
        return [
            [block.part(start, min(start + self.rows, len(block.degree)))
             for start in range(0, len(block.degree), self.rows)]
            for block in self.blocks
        ]  # fmt: skip


@dataclass(eq=False)
class WholeGraph:
    """A prepared graph whose scores are computed block by block of rows, layer by layer: exact, in less memory.

    Pass it to a model in evaluation mode in place of ``x``, without edges.

    Attributes:
        graph: The graph.
        rows: Rows of a block.
        once: Whether the features may be forgotten after the first layer, so that a model can be called once.
    """

    graph: GraphInput
    rows: int = field(default=ROWS, compare=False)
    once: bool = field(default=False, compare=False)

    def forget_features(self) -> None:
        """Free the memory of the features."""
        self.graph = replace(self.graph, x=self.graph.x.new_empty(0), neighbourhood=None)

    @property
    def x(self) -> Tensor:
        """The features of all rows."""
        return self.graph.x

    @property
    def neighbourhood(self) -> Tensor | None:
        """The sums of the first convolution; None if it reads them."""
        return self.graph.neighbourhood

    def num_targets(self, number: int) -> int:
        """How many targets a convolution has: all rows."""
        return self.graph.layout.num_nodes

    def parts(self, number: int, conv: DEMOConv) -> Iterator[Block]:
        """The targets of a convolution, which are all rows, block by block, with all of their neighbours."""
        layout = self.graph.sorted_layout
        found = whole_factors(self.graph, conv)
        for start in range(0, layout.num_nodes, self.rows):
            stop = min(start + self.rows, layout.num_nodes)
            pointer = layout.pointer[start : stop + 1].long()
            entries = slice(int(pointer[0]), int(pointer[-1]))
            rows = slice(start, stop)
            yield Block(
                rows,
                layout.key[rows],
                pointer - pointer[0],
                layout.neighbours[entries].long(),
                Factors(part_of(found.weight, entries), part_of(found.scale, rows), part_of(found.own, rows)),
            )


def whole_factors(graph: GraphInput, conv: DEMOConv) -> Factors:
    """What a convolution multiplies the edges, sums and own rows of a whole graph by, edges in list order."""
    layout = graph.sorted_layout
    found = conv.factors(layout, graph.edge_weight, graph.x.dtype)
    if found.scale is None:
        scale = aggregate_scale(layout.pointer, conv.aggr, torch.float64)
        ones = torch.ones(layout.num_nodes, dtype=torch.float64, device=layout.key.device)
        found = found._replace(scale=ones if scale is None else scale)
    return found


class NeighbourSampler:
    """Batches of the nodes of a graph for a model.

    ``NodeDEMONet`` and ``DEMONet`` take a batch in place of ``x``, without edges. A module of one's own passes a block
    to each of its convolutions::

        h = batch.x
        for conv, block in zip(self.convs, batch.blocks):
            h = conv(h, block).relu()

    Args:
        model: The model, whose convolutions decide how many hops are needed: all
            :class:`~demonet.DEMOConv` in it, in the order of ``model.modules()``.
        graph: The graph: a ``Data`` with ``x`` and ``edge_index``, or what ``NodeDEMONet.prepare`` returned.
        neighbours: How many neighbours of a node are drawn for each convolution; all of them if None.
    """

    def __init__(self, model: nn.Module, graph: GraphInput | Data, neighbours: int | None = None) -> None:
        if neighbours is not None and neighbours < 1:
            raise DemonetError(f"neighbours={neighbours}", hint="at least 1, or None for all")
        self.convs = [module for module in model.modules() if isinstance(module, DEMOConv)]
        if not self.convs:
            raise DemonetError(f"{type(model).__name__} has no DEMOConv", hint="nothing would be sampled")
        if isinstance(graph, Data):
            graph = prepare(self.convs[0], graph.x, graph.edge_index, edge_weight=graph.edge_weight, sums=False)
        for conv in self.convs:
            conv.tasks.see(graph.layout.degrees)
        self.graph, self.neighbours = graph, neighbours
        self._known: dict[tuple[str, str], Factors] = {}
        self._place = torch.full((graph.layout.num_nodes,), -1, device=graph.layout.key.device)

    def evaluation(self, nodes: Tensor) -> NodeBatch | WholeGraph:
        """What gives distinct nodes their exact scores: all that the layers read, or the graph where that is much."""
        exact, most = copy.copy(self), self.graph.layout.num_nodes * WHOLE_SHARE
        exact.neighbours = None
        return exact._batch(nodes, None, most) or WholeGraph(self.graph)

    def batch(self, nodes: Tensor, generator: torch.Generator | None = None) -> NodeBatch:
        """The batch of distinct nodes, by their index in the graph."""
        found = self._batch(nodes, generator, math.inf)
        assert found is not None
        return found

    def _batch(self, nodes: Tensor, generator: torch.Generator | None, most: float) -> NodeBatch | None:
        """The batch, or None if it would read more rows than ``most``."""
        graph = self.graph
        layout, known = graph.layout, graph.neighbourhood is not None
        rows = nodes if layout.rank is None else layout.rank[nodes]
        blocks = []
        for conv in reversed(self.convs[1:] if known else self.convs):
            block, rows = self._draw(rows, conv, generator)
            blocks.append(block)
            if rows.numel() > most:
                return None
        if known:
            blocks.append(Block(slice(0, rows.numel()), layout.key[rows]))
        sums = None if graph.neighbourhood is None else take_rows(graph.neighbourhood, rows)
        return NodeBatch(take_rows(graph.x, rows), sums, tuple(reversed(blocks)))

    def _draw(self, rows: Tensor, conv: DEMOConv, generator: torch.Generator | None) -> tuple[Block, Tensor]:
        """The sampled lists of these rows, and the rows that are read: these, then the others."""
        layout, whole = self.graph.layout, self._factors(conv)
        degree, entry, drawn = self.sample(rows, generator)
        found = layout.neighbours[entry].long()
        self._place[rows] = torch.arange(rows.numel(), device=rows.device)
        others = found[self._place[found] < 0].unique()
        self._place[others] = torch.arange(rows.numel(), rows.numel() + others.numel(), device=rows.device)
        local, read = self._place[found], torch.cat([rows, others])
        self._place[read] = -1
        pointer = torch.nn.functional.pad(drawn.cumsum(0), (1, 0))
        assert whole.scale is not None
        more = torch.where(drawn > 0, degree.to(torch.float64) / drawn.clamp(min=1), 1.0)
        scale = (whole.scale[rows] * more).to(self.graph.x.dtype)
        drawn_factors = Factors(part_of(whole.weight, entry), scale, part_of(whole.own, rows))
        return Block(slice(0, rows.numel()), layout.key[rows], pointer, local, drawn_factors), read

    def _factors(self, conv: DEMOConv) -> Factors:
        key = conv.aggr, conv.combine
        if key not in self._known:
            self._known[key] = whole_factors(self.graph, conv)
        return self._known[key]

    def sample(self, rows: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor, Tensor]:
        """For some rows: the length of each list, the entries that were drawn, list after list, and how many."""
        start = self.graph.layout.pointer[rows].long()
        degree = self.graph.layout.pointer[rows + 1].long() - start
        if self.neighbours is None:
            return degree, ranges(start, degree), degree
        drawn = degree.clamp(max=self.neighbours)
        number = ranges(torch.zeros_like(drawn), drawn)
        each = {"output_size": number.numel()}
        begin, size, strata = (values.repeat_interleave(drawn, **each) for values in (start, degree, drawn))
        chance = torch.rand(number.numel(), dtype=torch.float64, device=rows.device, generator=generator)
        place = ((number + chance) * size / strata).long()
        place = torch.where(size <= self.neighbours, number, torch.minimum(place, size - 1))
        return degree, begin + place, drawn


def row_blocks(x: Tensor, rows: int) -> Iterator[Tensor]:
    """All rows, so many at a time."""
    for start in range(0, x.size(0), rows):
        yield slice_rows(x, slice(start, min(start + rows, x.size(0))))


def put_together(parts: Iterable[Tensor], rows: int) -> Tensor:
    """All rows from consecutive parts, which are not kept beside them."""
    out, start = torch.empty(0), 0
    for part in parts:
        if not start:
            out = part.new_empty(rows, *part.shape[1:])
        out[start : start + len(part)] = part
        start += len(part)
    return out
