"""The degree layout of a part: its own nodes sorted by degree, with lists that also read rows of the halo."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from demonet.degree.count import By, check_by
from demonet.degree.layout import DegreeLayout
from demonet.degree.lists import counting_sort, neighbour_lists
from demonet.distributed.partition import Part


def part_layout(part: Part, by: By = "in") -> DegreeLayout:
    """The layout of the own nodes of a part.

    It has as many rows as there are own nodes. Its lists read more: first the own rows in degree order, then the halo.
    So it is for layers that are given the sums over neighbours, see :attr:`demonet.nn.prepared.GraphInput.fill`.

    Args:
        part: The part; ``edge`` of the layout is the index of an edge in its lists.
        by: Which degree decides the task.
    """
    check_by(by)
    own, reads = part.nodes.numel(), part.nodes.numel() + part.halo.numel()
    incoming, outgoing = part.pointer.diff().long(), part.outgoing.long()
    order = torch.arange(own)
    # The same order as that of DegreeLayout.from_edge_index: the last sort decides first.
    for degree in {"in": [incoming], "out": [incoming, outgoing], "pair": [outgoing, incoming]}[by]:
        order = order[counting_sort(degree[order], int(degree.max()) + 1 if own else 1)[0]]
    rank = torch.empty_like(order)
    rank[order] = torch.arange(own)
    row = torch.cat([rank, torch.arange(own, reads)])
    source, target = row[part.neighbours.long()], torch.repeat_interleave(rank, incoming)
    forward = neighbour_lists(source, target, reads, own)
    backward = neighbour_lists(torch.repeat_interleave(forward.pointer.diff()), forward.source, own, reads)
    key = {"in": incoming, "out": outgoing, "pair": torch.stack([incoming, outgoing], 1)}[by][order]
    degrees, counts = torch.unique_consecutive(key, return_counts=True, dim=0)
    small = max(reads, source.numel()) < 2**31

    def compact(tensor: Tensor) -> Tensor:
        return tensor.int() if small else tensor

    return DegreeLayout(
        order=order,
        rank=rank,
        key=key,
        degrees=degrees,
        offsets=F.pad(counts.cumsum(0), (1, 0)),
        pointer=compact(forward.pointer),
        neighbours=compact(forward.source),
        edge=compact(forward.edge),
        back_pointer=compact(backward.pointer),
        back_neighbours=compact(backward.source),
        back_entry=compact(backward.edge),
        by=by,
    )
