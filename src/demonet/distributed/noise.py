"""Dropout that does not depend on the number of processes: what is dropped is a hash of node, column, layer and epoch.

A random number generator gives its numbers in the order in which they are asked for, and so to other nodes when the
graph is cut in another way.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from demonet.nn.conv import DEMOConv
from demonet.nn.dropout import Dropout
from demonet.nn.models import NodeDEMONet
from demonet.nn.prepared import GraphInput
from demonet.ops.backend import is_sparse
from demonet.ops.noise import MASK, STEP, factors_at, mix

_ENTRIES = 2**16  # that are computed at a time, so that they stay in the cache


@dataclass
class Clock:
    """What the factors of an epoch depend on, besides node, column and layer."""

    seed: int = 0
    epoch: int = 0

    def key(self, layer: int, device: torch.device) -> Tensor:
        """The key of the factors of one layer, see :mod:`demonet.ops.noise`."""
        state = torch.zeros(2, dtype=torch.long, device=device)
        for value in (self.seed, self.epoch, layer):
            state = mix((state + torch.tensor([1, 2], device=device) * STEP + value) & MASK)
        return state


def key_dropout(model: NodeDEMONet, graph: GraphInput, nodes: Tensor) -> Clock:
    """Make all dropout of a model a function of the node, and return the clock that it reads.

    Args:
        model: The model.
        graph: The prepared graph.
        nodes: ``[n]`` the number of each node of it, in the order of its rows; the same however the graph is cut.
    """
    clock = Clock()
    places: dict[nn.Module, tuple[int, ...]] = {
        conv.drop: tuple(width for width in conv.halves if width)
        for conv in model.modules()
        if isinstance(conv, DEMOConv)
    }
    if model.stem is not None:
        places[model.stem.drop_entries] = () if is_sparse(graph.x) else (model.in_channels,)
    dropouts = [module for module in model.modules() if isinstance(module, Dropout)]
    for layer, dropout in enumerate(dropouts):
        widths = places.get(dropout, (model.config.hidden,))
        if widths:
            dropout.source = _RowNoise(clock, layer, nodes, widths)
        else:
            dropout.source = _EntryNoise(clock, layer, nodes, graph.x.crow_indices())
    return clock


class _RowNoise:
    """Factors of rows, for each of some matrices side by side: all of the first one come first."""

    def __init__(self, clock: Clock, layer: int, nodes: Tensor, widths: tuple[int, ...]) -> None:
        self._clock, self._layer, self._nodes, self._widths = clock, layer, nodes[:, None], widths

    def __call__(self, size: int, p: float, like: Tensor) -> Tensor:
        key, out = self._clock.key(self._layer, like.device), like.new_empty(size)
        columns = torch.arange(sum(self._widths), device=like.device).split(self._widths)
        parts = out.split([self._nodes.numel() * width for width in self._widths])
        for part, column in zip(parts, columns, strict=True):
            step = max(1, _ENTRIES // column.numel())
            for rows, nodes in zip(part.view(-1, column.numel()).split(step), self._nodes.split(step), strict=True):
                rows.copy_(factors_at(key, nodes, column, p))
        return out


class _EntryNoise:
    """Factors of the entries of sparse rows, by their position in the row."""

    def __init__(self, clock: Clock, layer: int, nodes: Tensor, pointer: Tensor) -> None:
        count = pointer.diff()
        self._clock, self._layer = clock, layer
        self._nodes = nodes.repeat_interleave(count)
        total = torch.arange(self._nodes.numel(), device=nodes.device)
        self._place = total - pointer[:-1].repeat_interleave(count)

    def __call__(self, size: int, p: float, like: Tensor) -> Tensor:
        return factors_at(self._clock.key(self._layer, like.device), self._nodes, self._place, p).to(like.dtype)
