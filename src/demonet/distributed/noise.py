"""Dropout that does not depend on the number of processes: what is dropped is a hash of node, column, layer and epoch.

A random number generator gives its numbers in the order in which they are asked for, and so to other nodes when the
graph is cut in another way.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from demonet.nn.conv import DEMOConv
from demonet.nn.dropout import Dropout, noise_of
from demonet.nn.hashing import mix
from demonet.nn.models import NodeDEMONet
from demonet.nn.prepared import GraphInput
from demonet.ops.backend import is_sparse

_STEP = 0x1E3779B97F4A7C15
_WORDS = 2**14  # 64-bit numbers that are mixed at a time, so that they stay in the cache


@dataclass
class Clock:
    """What the factors of an epoch depend on, besides node, column and layer."""

    seed: int = 0
    epoch: int = 0


def key_dropout(model: NodeDEMONet, graph: GraphInput, nodes: Tensor) -> Clock:
    """Make all dropout of a model a function of the node, and return the clock that it reads.

    Args:
        model: The model.
        graph: The prepared graph.
        nodes: ``[n]`` the number of each node of it, in the order of its rows; the same however the graph is cut.
    """
    clock = Clock()
    places: dict[nn.Module, tuple[int, ...]] = {
        conv.drop: (conv.seed.out_channels, conv.weights.width)
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
        self._clock, self._layer, self._nodes, self._widths = clock, layer, nodes, widths

    def __call__(self, size: int, p: float, like: Tensor) -> Tensor:
        out = like.new_empty(size)
        parts = out.split([self._nodes.numel() * width for width in self._widths])
        for number, (part, width) in enumerate(zip(parts, self._widths, strict=True)):
            words = -(-width // 4)  # each serves four columns
            word = torch.arange(words, device=like.device) * _STEP
            rows = part.view(-1, width)
            step = max(1, _WORDS // words)
            for start in range(0, rows.size(0), step):
                stream = _streams(self._clock, self._layer, number, self._nodes[start : start + step])
                bits = mix(stream[:, None] + word).view(torch.int16)[:, :width]
                rows[start : start + step] = noise_of(bits, p, like.dtype)
        return out


class _EntryNoise:
    """Factors of the entries of sparse rows, by their position in the row."""

    def __init__(self, clock: Clock, layer: int, nodes: Tensor, pointer: Tensor) -> None:
        count = pointer.diff()
        self._clock, self._layer = clock, layer
        self._nodes = nodes.repeat_interleave(count)
        total = torch.arange(self._nodes.numel(), device=nodes.device)
        self._place = (total - pointer[:-1].repeat_interleave(count)) * _STEP

    def __call__(self, size: int, p: float, like: Tensor) -> Tensor:
        bits = mix(_streams(self._clock, self._layer, 0, self._nodes) + self._place).view(torch.int16)[::4]
        return noise_of(bits, p, like.dtype)


def _streams(clock: Clock, layer: int, number: int, nodes: Tensor) -> Tensor:
    """The start of the random numbers of each node."""
    state = torch.zeros((), dtype=torch.long, device=nodes.device)
    for value in (clock.seed, clock.epoch, layer, number):
        state = mix(state + (value + 1) * _STEP % 2**63)
    return mix(state ^ (nodes * 0x2545F4914F6CDD1D))
