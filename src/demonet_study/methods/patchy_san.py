"""``patchy-san``: PATCHY-SAN of Niepert et al. (ICML'16).

Nodes are put into canonical order, each gets a receptive field of near nodes, and 1-d convolutions run over the fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path
from torch import Tensor, nn
from torch_geometric.data import Data

from demonet.errors import DemonetError
from demonet.features.graph import adjacency
from demonet.methods.base import at_least, register
from demonet.methods.cost import Cost
from demonet.methods.network import Classifier, LayerSettings, Network
from demonet.train.config import TrainConfig


@dataclass(frozen=True)
class PatchySettings(LayerSettings):
    """Settings of PATCHY-SAN."""

    field: int = at_least(1, 10)  # nodes in a receptive field
    # Receptive fields per graph; None for the mean number of nodes of a training graph.
    width: int | None = at_least(1, None)
    filters: tuple[int, int] = at_least(1, (16, 8))  # channels of the two convolutions
    reach: int = at_least(1, 10)  # receptive fields that the second convolution covers

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.field > 15:
            raise DemonetError(f"receptive field must have at most 15 nodes, got {self.field}")


@register
class PatchySan(Network):
    """Convolution over the ``field`` nodes nearest to each of the first ``width`` nodes, in canonical order.

    The paper uses RMSProp, and selects the number of epochs and the batch size.
    """

    name = "patchy-san"
    cost = Cost(0.5, 0.15)
    kinds = ("graphs",)
    defaults = PatchySettings(
        "Niepert et al., ICML'16, section 6.3",
        TrainConfig(lr=0.001, weight_decay=0.0, batch_size=32),
        hidden=128,
        dropout=0.5,
    )
    settings: PatchySettings

    def _width(self, training: list[Data]) -> int:
        return self.settings.width or max(1, round(float(np.mean([int(graph.num_nodes or 0) for graph in training]))))

    def _build(self, in_channels: int, num_classes: int, training: list[Data], *, graphs: bool) -> Classifier:
        return PatchyNetwork(in_channels, num_classes, self._width(training), self.settings)

    def _preprocess(self, graphs: list[Data], training: list[Data]) -> list[Data]:
        fields = receptive_fields(graphs, self._width(training), self.settings.field)
        return [Data(x=_field_features(graph.x, field)[None]) for graph, field in zip(graphs, fields, strict=True)]

    def _inputs(self, data: Data) -> tuple[Any, ...]:
        return (data.x,)


def _field_features(x: Tensor, fields: np.ndarray) -> Tensor:
    """``[features, width * field]`` the features of the nodes of all fields, zeros where a node is missing."""
    nodes = torch.from_numpy(fields).flatten().to(x.device)
    return (x[nodes.clamp(min=0)] * (nodes >= 0)[:, None]).T.contiguous()


def receptive_fields(graphs: list[Data], width: int, field: int) -> np.ndarray:
    """``[graphs, width, field]`` the nodes of each receptive field, -1 where a graph has too few.

    Nodes are sorted by 1-WL rank, ties by index. The field of a node has the node and those nearest to it, by distance,
    then by rank. The subgraph of a field is put into canonical order: by distance, rank, then :func:`canonical_order`.
    """
    fields = np.full((len(graphs), width, field), -1)
    ranks = np.zeros((len(graphs), width, field), dtype=np.int64)
    links = np.zeros((len(graphs), width, field, field), dtype=np.int64)
    for number, graph in enumerate(graphs):
        edges, n = adjacency(graph, weighted=False), int(graph.num_nodes or 0)
        rank = wl_ranks(edges)
        roots = rank.argsort(kind="stable")[:width]
        distance = shortest_path(edges, unweighted=True, indices=roots)
        place = np.where(np.isinf(distance), n, distance).astype(np.int64) * (n + 1) + rank
        near = place.argsort(axis=1, kind="stable")[:, :field]
        found = np.where(np.isinf(np.take_along_axis(distance, near, 1)), -1, near)
        size = found.shape[1]
        fields[number, : len(roots), :size] = found
        ranks[number, : len(roots), :size] = np.take_along_axis(place, near, 1)
        dense = edges.toarray() != 0
        links[number, : len(roots), :size, :size] = dense[near[:, :, None], near[:, None, :]]
    shape = (-1, field)
    missing = fields == -1
    links[missing] = 0
    links.swapaxes(2, 3)[missing] = 0
    ranks[missing] = np.iinfo(np.int64).max
    order = canonical_order(links.reshape(-1, field, field), ranks.reshape(shape))
    return np.take_along_axis(fields.reshape(shape), order, 1).reshape(fields.shape)


def wl_ranks(edges: csr_array) -> np.ndarray:
    """``[n]`` the rank of each node's stable 1-WL colour, 0 for the highest degrees; equal colours share a rank.

    Initial colours are degrees. Nodes of one colour are refined by the sorted ranks of their neighbours, so the ranks
    do not depend on the numbering of nodes.

    >>> path = csr_array(np.diag([1, 1, 1], 1) + np.diag([1, 1, 1], -1))
    >>> wl_ranks(path).tolist()
    [1, 0, 0, 1]
    """
    neighbours = np.split(edges.indices, edges.indptr[1:-1])
    rank = _ranked([-len(near) for near in neighbours])
    while True:
        finer = _ranked([(rank[v], *np.sort(rank[near]).tolist()) for v, near in enumerate(neighbours)])
        if finer.max(initial=0) == rank.max(initial=0):
            return rank
        rank = finer


def _ranked(keys: list) -> np.ndarray:  # type: ignore[type-arg]
    places = {key: place for place, key in enumerate(sorted(set(keys)))}
    return np.array([places[key] for key in keys], dtype=np.int64)


def canonical_order(adj: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """``[graphs, k]`` the nodes of many graphs of k nodes in canonical order, consistent with a given rank.

    Ranks are refined by the ranks of the neighbours until nothing changes. While nodes are tied, the first of them is
    placed before the others and ranks are refined again. This is one path down the search tree of nauty. It is
    canonical where an automorphism swaps tied nodes, which is nearly always the case in such small graphs.

    Args:
        adj: ``[graphs, k, k]`` adjacency.
        rank: ``[graphs, k]`` the given rank; ties are allowed.
    """
    k = rank.shape[1]
    rank = _finer(rank, np.zeros_like(rank))
    weight = (k + 1) ** np.arange(k, dtype=np.int64)
    open_ = np.arange(len(rank))
    while open_.size:
        now, refined = rank[open_], None
        while refined is None or (refined != now).any():
            now = refined if refined is not None else now
            # The numbers of neighbours of each rank, as the digits of one integer.
            refined = _finer(now, (adj[open_] * weight[now][:, None, :]).sum(2))
        rank[open_] = refined
        tied = (refined[:, :, None] == refined[:, None, :]).sum(2) > 1
        open_ = open_[tied.any(1)]
        first = np.where(tied, refined, k)[tied.any(1)].argmin(1)
        chosen = rank[open_, first]
        later = rank[open_] == chosen[:, None]
        later[np.arange(open_.size), first] = False
        rank[open_] += later
    return rank.argsort(axis=1)


def _finer(rank: np.ndarray, key: np.ndarray) -> np.ndarray:
    """The number of nodes of the same graph with a smaller rank, or with the same rank and a smaller key."""
    before = rank[:, None, :] < rank[:, :, None]
    before |= (rank[:, None, :] == rank[:, :, None]) & (key[:, None, :] < key[:, :, None])
    return before.sum(2)


class PatchyNetwork(Classifier):
    """A convolution over each field, one over several fields, a dense layer with dropout, and the scores."""

    def __init__(self, in_channels: int, num_classes: int, width: int, settings: PatchySettings) -> None:
        super().__init__()
        first, second = settings.filters
        reach = min(settings.reach, width)
        self.first = nn.Conv1d(in_channels, first, settings.field, stride=settings.field)
        self.second = nn.Conv1d(first, second, reach)
        self.dense = nn.Linear(second * (width - reach + 1), settings.hidden)
        self.head = nn.Linear(settings.hidden, num_classes)
        self.dropout = settings.dropout

    def embed(self, x: Tensor) -> Tensor:
        """The dense layer."""
        h = F.relu(self.second(F.relu(self.first(x))))
        return F.relu(self.dense(h.flatten(1)))

    def forward(self, x: Tensor) -> Tensor:
        """Scores."""
        return self.head(F.dropout(self.embed(x), self.dropout, self.training))
