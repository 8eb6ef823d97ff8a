"""Counting degrees: the one place where it is done."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from demonet.errors import DemonetError

By = Literal["in", "out", "pair"]


def check_by(by: str) -> None:
    """Raise for anything but ``"in"``, ``"out"`` and ``"pair"``."""
    if by not in ("in", "out", "pair"):
        raise DemonetError(f"by={by!r} is not one of 'in', 'out', 'pair'")


def count_degree(edge_index: Tensor, num_nodes: int, by: By = "in") -> Tensor:
    """The degree of every node: ``[n]`` incoming or outgoing edges, or ``[n, 2]`` the pair of both.

    >>> count_degree(torch.tensor([[0, 1, 2], [2, 2, 0]]), 4, by="pair").tolist()
    [[1, 1], [0, 1], [2, 1], [0, 0]]
    """
    zero = torch.zeros(num_nodes, dtype=torch.long, device=edge_index.device)
    source, target = edge_index[0].long(), edge_index[1].long()
    one = torch.ones_like(target)
    if by == "in":
        return zero.index_add(0, target, one)
    if by == "out":
        return zero.index_add(0, source, one)
    return torch.stack([zero.index_add(0, target, one), zero.index_add(0, source, one)], 1)
