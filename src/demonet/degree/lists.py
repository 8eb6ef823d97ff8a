"""Neighbour lists: the arcs of a graph, sorted so that every node's neighbours stand together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor


class NeighbourLists(NamedTuple):
    """The incoming arcs of every target, list after list.

    Attributes:
        pointer: ``[targets + 1]``; the list of target ``v`` is ``source[pointer[v] : pointer[v + 1]]``.
        source: ``[arcs]``; ascending inside a list, so that the order in which arcs were given leaves no trace.
        arc: ``[arcs]``; where each of them stood in the ``edge_index`` it came from.
    """

    pointer: Tensor
    source: Tensor
    arc: Tensor


def counting_sort(key: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Stable order of the keys ``0 .. size - 1`` in linear time, and where each key's run begins.

    Returns:
        ``order [len(key)]`` and ``pointer [size + 1]``: key ``k`` stands at ``order[pointer[k] : pointer[k + 1]]``.
    """
    if key.device.type == "cpu":
        # One row per item, its key as the only column: turning rows into columns is SciPy's counting sort.
        count = key.numel()
        incidence = sp.csr_array((np.ones(count, dtype=bool), key.numpy(), np.arange(count + 1)), shape=(count, size))
        columns = incidence.tocsc()
        return torch.from_numpy(columns.indices).long(), torch.from_numpy(columns.indptr).long()
    order = torch.sort(key, stable=True).indices
    pointer = torch.zeros(size + 1, dtype=torch.long, device=key.device)
    torch.cumsum(torch.bincount(key, minlength=size), 0, out=pointer[1:])
    return order, pointer


def neighbour_lists(source: Tensor, target: Tensor, num_sources: int, num_targets: int) -> NeighbourLists:
    """Sort arcs by target and, inside a target, by source; parallel arcs keep their given order."""
    by_source, _ = counting_sort(source, num_sources)
    by_target, pointer = counting_sort(target[by_source], num_targets)
    arc = by_source[by_target]
    return NeighbourLists(pointer, source[arc], arc)


def ranges(start: Tensor, count: Tensor) -> Tensor:
    """``start[0], start[0] + 1, ...``, ``count[0]`` of them, then those from ``start[1]`` on, and so forth."""
    total = int(count.sum())
    before = count.cumsum(0) - count
    shift = torch.repeat_interleave(start - before, count, output_size=total)
    return shift + torch.arange(total, device=start.device)
