"""Neighbour lists: the edges of a graph sorted by target."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor


class NeighbourLists(NamedTuple):
    """The incoming edges of every target, list after list.

    Attributes:
        pointer: ``[targets + 1]``; the list of target ``v`` is ``source[pointer[v] : pointer[v + 1]]``.
        source: ``[edges]``; ascending inside a list, so that the order of the given edges has no effect.
        edge: ``[edges]``; its column in the given ``edge_index``.
    """

    pointer: Tensor
    source: Tensor
    edge: Tensor


def counting_sort(key: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Stable order of the keys ``0 .. size - 1`` in linear time, and where each key's run begins.

    Returns:
        ``order [len(key)]`` and ``pointer [size + 1]``: key ``k`` is at ``order[pointer[k] : pointer[k + 1]]``.
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
    """Sort edges by target and, inside a target, by source; parallel edges keep their given order."""
    by_source, _ = counting_sort(source, num_sources)
    by_target, pointer = counting_sort(target[by_source], num_targets)
    edge = by_source[by_target]
    return NeighbourLists(pointer, source[edge], edge)


def ranges(start: Tensor, count: Tensor) -> Tensor:
    """``start[0], start[0] + 1, ...`` (``count[0]`` numbers), then the same for ``start[1]``, and so on."""
    total = int(count.sum())
    before = count.cumsum(0) - count
    shift = torch.repeat_interleave(start - before, count, output_size=total)
    return shift + torch.arange(total, device=start.device)
