"""KeptLayout: many graphs laid out once, of which any batch is put together without sorting arcs again."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from demonet.degree.layout import DegreeLayout
from demonet.degree.lists import ranges


class Taken(NamedTuple):
    """A batch taken out of the kept graphs.

    Attributes:
        layout: The batch, laid out as :meth:`DegreeLayout.from_edge_index` lays it out: equal in every number.
        rows: ``[n]`` where each of its rows stands in the union.
        batch: ``[n]`` the graph of each row.
        arcs: ``[m]`` where each of its arcs stands in the union's ``edge_index``.
    """

    layout: DegreeLayout
    rows: Tensor
    batch: Tensor
    arcs: Tensor


class KeptLayout:
    """The layout of the disjoint union of many graphs, and where each of them stands in it.

    Inside one graph, nodes stand in the same order in every layout that holds it: by degree, then by their number. So a
    batch needs its rows merged by degree, but its lists only renumbered.

    Args:
        layout: The union, its nodes and arcs graph after graph.
        num_nodes: ``[graphs]`` nodes of each graph.
        num_arcs: ``[graphs]`` arcs of each graph.
    """

    def __init__(self, layout: DegreeLayout, num_nodes: Tensor, num_arcs: Tensor) -> None:
        self.layout, self._nodes, self._arcs = layout, num_nodes, num_arcs
        self._first_node, self._first_arc = num_nodes.cumsum(0) - num_nodes, num_arcs.cumsum(0) - num_arcs
        self._length = layout.pointer.diff().long()
        self._back_length = layout.back_pointer.diff().long()
        # Rows that no sort key tells apart have one number; the union's rows are sorted by it.
        keys = torch.cat([self._length[:, None], layout.key.view(layout.num_nodes, -1)], 1)
        changes = (keys.diff(dim=0) != 0).any(1).long()
        self._run = F.pad(changes.cumsum(0), (1, 0)) if layout.num_nodes else self._length

    def take(self, graphs: Tensor) -> Taken:
        """The batch of the graphs with those numbers, in that order."""
        whole = self.layout
        count, arc_count = self._nodes[graphs], self._arcs[graphs]
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
        position = entry.new_empty(whole.num_arcs)
        position.index_copy_(0, entry, torch.arange(entry.numel(), device=entry.device))
        moved = (arc_count.cumsum(0) - arc_count - self._first_arc[graphs])[batch]  # how far each graph's arcs move

        index = whole.neighbours.dtype
        pointer = F.pad(length.cumsum(0), (1, 0)).to(index)
        neighbours = place[whole.neighbours[entry]].to(index)
        arc = (whole.arc[entry] + torch.repeat_interleave(moved, length)).to(index)
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
            arc=arc,
            back_pointer=back_pointer,
            back_neighbours=back_neighbours,
            back_entry=back_entry,
            by=whole.by,
        ).ready()
        return Taken(layout, rows, batch, ranges(self._first_arc[graphs], arc_count))
