"""LayoutUnion: many graphs laid out once; layouts of batches are assembled without sorting edges again. merged: the
layout of a batch whose graphs have theirs."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from itertools import accumulate, pairwise
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
        self._distinct, self._value = torch.unique(layout.key, dim=0, return_inverse=True)

    def take(self, batches: Sequence[Tensor]) -> list[LayoutBatch]:
        """The batches of the graphs with those numbers, in that order; no graph is in two of them.

        All are assembled in one pass, because a call takes longer than the arithmetic for one batch.
        """
        whole, device = self.layout, self.layout.key.device
        graphs, each = torch.cat(list(batches)), [len(batch) for batch in batches]
        number = torch.repeat_interleave(torch.tensor(each, device=device), output_size=graphs.numel())
        count, edge_count = self._nodes[graphs], self._edges[graphs]
        total = torch.zeros(2, len(each), dtype=torch.long, device=device)
        total.index_add_(1, number, torch.stack([count, edge_count]))
        first = total.cumsum(1) - total  # row and edge with which every batch begins
        sizes, edge_sizes = total.tolist()

        rows = ranges(self._first_node[graphs], count)
        rows = rows if whole.rank is None else whole.rank[rows]
        owner = torch.repeat_interleave(count, output_size=rows.numel())
        part = number[owner]
        order = torch.sort(part * (whole.num_nodes + 1) + self._run[rows], stable=True).indices
        rows, owner = rows[order], owner[order]
        begin = first[0][part]  # of each row's batch; sorting leaves rows in their batch
        here = torch.arange(rows.numel(), device=device) - begin
        rank = torch.empty_like(order).index_copy_(0, order, here)
        first_graph = number.new_tensor(each).cumsum(0) - number.new_tensor(each)
        batch = owner - first_graph[part]

        place = rows.new_empty(whole.num_nodes).index_copy_(0, rows, here)
        length = self._length[rows]
        entry = ranges(whole.pointer[rows].long(), length)
        edge_begin = torch.repeat_interleave(first[1][part], length, output_size=entry.numel())
        position = entry.new_empty(whole.num_edges)
        position.index_copy_(0, entry, torch.arange(entry.numel(), device=device) - edge_begin)
        shift = edge_count.cumsum(0) - edge_count - self._first_edge[graphs]  # shift of each graph's edges
        shift = torch.repeat_interleave(shift[owner], length, output_size=entry.numel()) - edge_begin

        index = whole.neighbours.dtype
        neighbours = place[whole.neighbours[entry]].to(index).split_with_sizes(edge_sizes)
        edge = (self._edge[entry] + shift).to(index).split_with_sizes(edge_sizes)
        pointer = _pointers(length, sizes, index)
        back_pointer, back_neighbours, back = pointer, neighbours, entry
        if not whole.is_undirected:
            back_length = self._back_length[rows]
            back = ranges(whole.back_pointer[rows].long(), back_length)
            back_pointer = _pointers(back_length, sizes, index)
            back_neighbours = place[whole.back_neighbours[back]].to(index).split_with_sizes(edge_sizes)
        back_entry = position[whole.back_entry[back]].to(index).split_with_sizes(edge_sizes)

        degrees, offsets = self._groups(rows, part, len(each))
        edges = ranges(self._first_edge[graphs], edge_count).split_with_sizes(edge_sizes)
        by_row = (order - begin, rank, whole.key[rows], rows, batch)
        parts = zip(*(values.split_with_sizes(sizes) for values in by_row), strict=True)
        found = []
        for i, (order_, rank_, key_, rows_, batch_) in enumerate(parts):
            layout = DegreeLayout(
                order=order_,
                rank=rank_,
                key=key_,
                degrees=degrees[i],
                offsets=offsets[i],
                pointer=pointer[i],
                neighbours=neighbours[i],
                edge=edge[i],
                back_pointer=back_pointer[i],
                back_neighbours=back_neighbours[i],
                back_entry=back_entry[i],
                by=whole.by,
            )
            found.append(LayoutBatch(layout, rows_, batch_, edges[i]))
        return found

    def _groups(self, rows: Tensor, part: Tensor, count: int) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        """For each of ``count`` batches, the distinct keys of its rows, and where the rows of each begin and end."""
        value = self._value[rows]
        changes = (part * len(self._distinct) + value).diff() != 0
        starts = F.pad(changes, (1, 0), value=True).nonzero()[: rows.numel(), 0]
        groups = torch.bincount(part[starts], minlength=count).tolist()
        ends = F.pad(starts, (0, 1), value=rows.numel())
        offsets = [ends[first : last + 1] - ends[first] for first, last in pairwise([0, *accumulate(groups)])]
        return self._distinct[value[starts]].split_with_sizes(groups), offsets


def _pointers(length: Tensor, sizes: list[int], dtype: torch.dtype) -> list[Tensor]:
    """Where the lists of every batch begin and end, from the lengths of all of them."""
    ends = F.pad(length.cumsum(0), (1, 0)).to(dtype)
    bounds = [0, *accumulate(sizes)]
    return [ends[start : end + 1] - ends[start] for start, end in pairwise(bounds)]


_last: tuple[list[weakref.ref[DegreeLayout]], DegreeLayout] | None = None


def merged(layouts: Sequence[DegreeLayout]) -> DegreeLayout:
    """The layout of a batch of graphs, from the list of theirs that PyG's ``DataLoader`` makes.

    Its edges are sorted once for each batch: the last result is kept for the next layer.
    """
    global _last
    if not layouts or not all(isinstance(layout, DegreeLayout) for layout in layouts):
        raise DemonetError(f"a list of {len(layouts)} graphs", hint="pass an edge_index or the layouts of a batch")
    last = _last  # another thread may replace it
    if last is not None and [ref() for ref in last[0]] == list(layouts):
        return last[1]
    edges, first = [], 0
    for layout in layouts:
        target = torch.repeat_interleave(layout.pointer.diff().long(), output_size=layout.num_edges)
        pairs = torch.stack([layout.neighbours.long(), target])
        pairs = pairs if layout.order is None else layout.order[pairs]
        given = pairs if layout.edge is None else torch.empty_like(pairs).index_copy_(1, layout.edge.long(), pairs)
        edges.append(given + first)
        first += layout.num_nodes
    found = DegreeLayout.from_edge_index(torch.cat(edges, 1), first, by=layouts[0].by)
    _last = [weakref.ref(layout) for layout in layouts], found
    return found
