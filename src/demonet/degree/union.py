"""LayoutUnion: many graphs laid out once; layouts of batches are assembled without sorting edges again."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from demonet.degree.layout import DegreeLayout
from demonet.degree.lists import ranges
from demonet.errors import DemonetError


class LayoutBatch(NamedTuple):
    """A batch of the graphs in a union.

    Attributes:
        layout: The batch, laid out as :meth:`DegreeLayout.from_edge_index` lays it out: equal in every number.
        rows: ``[n]`` the row of the union that each of its rows is.
        batch: ``[n]`` the graph of each row.
        edges: ``[m]`` the column of the union's ``edge_index`` that each of its edges is.
    """

    layout: DegreeLayout
    rows: Tensor
    batch: Tensor
    edges: Tensor


class LayoutUnion:
    """The layout of the disjoint union of many graphs, and the rows and edges of each.

    In every layout that contains a graph, its nodes are in the same order: by degree, then by number. So a
    batch needs its rows merged by degree, but its lists only renumbered.

    Args:
        layout: The union, nodes and edges graph after graph.
        num_nodes: ``[graphs]`` nodes of each graph.
        num_edges: ``[graphs]`` edges of each graph.
    """

    def __init__(self, layout: DegreeLayout, num_nodes: Tensor, num_edges: Tensor) -> None:
        if layout.edge is None:
            raise DemonetError("the edges of a union are in list order", hint="keep them graph after graph")
        self.layout, self._nodes, self._edges, self._edge = layout, num_nodes, num_edges, layout.edge
        self._first_node, self._first_edge = num_nodes.cumsum(0) - num_nodes, num_edges.cumsum(0) - num_edges
        self._length = layout.pointer.diff().long()
        self._back_length = layout.back_pointer.diff().long()
        # Rows with equal sort keys have one number; the union's rows are sorted by it.
        keys = torch.cat([self._length[:, None], layout.key.view(layout.num_nodes, -1)], 1)
        changes = (keys.diff(dim=0) != 0).any(1).long()
        self._run = F.pad(changes.cumsum(0), (1, 0)) if layout.num_nodes else self._length

    def take(self, graphs: Tensor) -> LayoutBatch:
        """The batch of the graphs with those numbers, in that order."""
        whole = self.layout
        count, edge_count = self._nodes[graphs], self._edges[graphs]
        rows = ranges(self._first_node[graphs], count)
        rows = rows if whole.rank is None else whole.rank[rows]
        order = torch.sort(self._run[rows], stable=True).indices
        rows = rows[order]
        here = torch.arange(order.numel(), device=order.device)
        rank = torch.empty_like(order).index_copy_(0, order, here)
        batch = torch.repeat_interleave(count)[order]

        place = rows.new_empty(whole.num_nodes).index_copy_(0, rows, here)
        length = self._length[rows]
        entry = ranges(whole.pointer[rows].long(), length)
        position = entry.new_empty(whole.num_edges)
        position.index_copy_(0, entry, torch.arange(entry.numel(), device=entry.device))
        shift = (edge_count.cumsum(0) - edge_count - self._first_edge[graphs])[batch]  # shift of each graph's edges

        index = whole.neighbours.dtype
        pointer = F.pad(length.cumsum(0), (1, 0)).to(index)
        neighbours = place[whole.neighbours[entry]].to(index)
        edge = (self._edge[entry] + torch.repeat_interleave(shift, length)).to(index)
        if whole.is_undirected:
            back_pointer, back_neighbours, back = pointer, neighbours, entry
        else:
            back_length = self._back_length[rows]
            back = ranges(whole.back_pointer[rows].long(), back_length)
            back_pointer = F.pad(back_length.cumsum(0), (1, 0)).to(index)
            back_neighbours = place[whole.back_neighbours[back]].to(index)
        back_entry = position[whole.back_entry[back]].to(index)

        key = whole.key[rows]
        degrees, counts = torch.unique_consecutive(key, return_counts=True, dim=0)
        layout = DegreeLayout(
            order=order,
            rank=rank,
            key=key,
            degrees=degrees,
            offsets=F.pad(counts.cumsum(0), (1, 0)),
            pointer=pointer,
            neighbours=neighbours,
            edge=edge,
            back_pointer=back_pointer,
            back_neighbours=back_neighbours,
            back_entry=back_entry,
            by=whole.by,
        )
        return LayoutBatch(layout, rows, batch, ranges(self._first_edge[graphs], edge_count))
