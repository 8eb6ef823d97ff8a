"""PATCHY-SAN of Niepert et al. (ICML'16): nodes in canonical order, receptive fields, 1-d convolution."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse.csgraph import shortest_path
from torch import Tensor, nn
from torch_geometric.data import Data

from demonet.baselines import settings_networks as settings
from demonet.baselines.labelling import canonical_order, wl_ranks
from demonet.baselines.network import Classifier, Network
from demonet.data.features import adjacency


class PatchySan(Network):
    """The first ``width`` nodes of a graph, the ``field`` nodes nearest to each, all in canonical order."""

    name = "patchy-san"
    kinds = ("graphs",)
    defaults = settings.PATCHY_SAN
    chosen: settings.PatchySettings

    def _width(self, seen: list[Data]) -> int:
        return self.chosen.width or max(1, round(float(np.mean([int(graph.num_nodes or 0) for graph in seen]))))

    def _module(self, in_channels: int, num_classes: int, seen: list[Data], *, graphs: bool) -> Classifier:
        return PatchyNetwork(in_channels, num_classes, self._width(seen), self.chosen)

    def _layout(self, graphs: list[Data], seen: list[Data]) -> list[Data]:
        fields = receptive_fields(graphs, self._width(seen), self.chosen.field)
        return [Data(x=_read(graph.x, field)[None]) for graph, field in zip(graphs, fields, strict=True)]

    def _inputs(self, data: Data) -> tuple[Any, ...]:
        return (data.x,)


def _read(x: Tensor, fields: np.ndarray) -> Tensor:
    """``[features, width * field]``: the features of the nodes of all fields, zeros where there is none."""
    nodes = torch.from_numpy(fields).flatten().to(x.device)
    return (x[nodes.clamp(min=0)] * (nodes >= 0)[:, None]).T.contiguous()


def receptive_fields(graphs: list[Data], width: int, field: int) -> np.ndarray:
    """``[graphs, width, field]`` the nodes of each receptive field, -1 where a graph has too few.

    Nodes stand by 1-WL rank, and by number where that leaves a tie. The field of a node holds it and those nearest to
    it, by distance, then by rank; its sub-graph is put into canonical order, distance and rank first.
    """
    fields = np.full((len(graphs), width, field), -1)
    ranks = np.zeros((len(graphs), width, field), dtype=np.int64)
    links = np.zeros((len(graphs), width, field, field), dtype=np.int64)
    for number, graph in enumerate(graphs):
        arcs, n = adjacency(graph, weighted=False), int(graph.num_nodes or 0)
        rank = wl_ranks(arcs)
        roots = rank.argsort(kind="stable")[:width]
        distance = shortest_path(arcs, unweighted=True, indices=roots)
        place = np.where(np.isinf(distance), n, distance).astype(np.int64) * (n + 1) + rank
        near = place.argsort(axis=1, kind="stable")[:, :field]
        found = np.where(np.isinf(np.take_along_axis(distance, near, 1)), -1, near)
        size = found.shape[1]
        fields[number, : len(roots), :size] = found
        ranks[number, : len(roots), :size] = np.take_along_axis(place, near, 1)
        dense = arcs.toarray() != 0
        links[number, : len(roots), :size, :size] = dense[near[:, :, None], near[:, None, :]]
    shape = (-1, field)
    missing = fields == -1
    links[missing] = 0
    links.swapaxes(2, 3)[missing] = 0
    ranks[missing] = np.iinfo(np.int64).max
    order = canonical_order(links.reshape(-1, field, field), ranks.reshape(shape))
    return np.take_along_axis(fields.reshape(shape), order, 1).reshape(fields.shape)


class PatchyNetwork(Classifier):
    """A convolution over each field, one over several fields, a dense layer with dropout, the scores."""

    def __init__(self, in_channels: int, num_classes: int, width: int, chosen: settings.PatchySettings) -> None:
        super().__init__()
        first, second = chosen.filters
        reach = min(chosen.reach, width)
        self.first = nn.Conv1d(in_channels, first, chosen.field, stride=chosen.field)
        self.second = nn.Conv1d(first, second, reach)
        self.dense = nn.Linear(second * (width - reach + 1), chosen.hidden)
        self.head = nn.Linear(chosen.hidden, num_classes)
        self.dropout = chosen.dropout

    def embed(self, x: Tensor) -> Tensor:
        """The dense layer."""
        h = F.relu(self.second(F.relu(self.first(x))))
        return F.relu(self.dense(h.flatten(1)))

    def forward(self, x: Tensor) -> Tensor:
        """Scores."""
        return self.head(F.dropout(self.embed(x), self.dropout, self.training))
