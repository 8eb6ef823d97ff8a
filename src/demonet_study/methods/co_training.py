"""``union`` and ``intersection``: co-training and self-training of a GCN (Li et al., AAAI'18).

A GCN is trained, then trained again with additional labels: those that partially absorbing random walks predict with
confidence (co-training), and those that the first GCN predicts with confidence (self-training).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, laplacian
from scipy.sparse.linalg import LinearOperator, cg
from torch import Tensor
from torch_geometric.data import Data

from demonet.data.splits import Split
from demonet.errors import DemonetError
from demonet.features.graph import adjacency
from demonet.methods.base import Items, Predicted, at_least, register
from demonet.methods.convolutional import GCN
from demonet.methods.cost import Cost
from demonet.methods.network import LayerSettings

NO_CLASS = -1
_LAYERS = 2  # of the GCN


@dataclass(frozen=True)
class CoTrainingSettings(LayerSettings):
    """Settings of co-training."""

    alpha: float = 1e-6  # the absorption rate of the walks
    added: int | None = at_least(1, None)  # labels added per class; None for labels_per_class

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.alpha > 0.0:
            raise DemonetError(f"alpha must be positive, got {self.alpha!r}")


class _CoTrained(GCN):
    """A GCN that is trained a second time with additional labels.

    Nodes of the validation part get no additional label: they select the epoch.

    Attributes:
        added: ``[n]`` the class with which each node was added, or -1.
        chosen: The numbers of epochs of both trainings.
    """

    kinds = ("nodes",)
    cost = Cost(2.0, 0.1, nodes=0.1)
    defaults = CoTrainingSettings("Li et al., AAAI'18, section 5", GCN.defaults.train, hidden=16, dropout=0.5)
    settings: CoTrainingSettings

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> Predicted:
        first, second = self.chosen or (None, None)
        self.chosen = first
        _, outputs = super()._fit(data, y, split, seed)
        assert outputs is not None
        network = (self._scores.softmax(1) * (outputs > 0)).cpu()  # none of a class without a training item
        first, self.chosen = self.chosen, second
        graph, known = cast(Data, data), y.cpu()
        candidates = torch.ones(y.numel(), dtype=torch.bool)
        candidates[split.train] = candidates[split.val] = False
        count = self.settings.added or labels_per_class(graph, int(y.max()) + 1)
        walks = absorbing_walks(adjacency(graph), known, split.train, self.settings.alpha)
        self.added = self._combine(*(most_confident(each, candidates, count) for each in (walks, network)))
        more = (self.added != NO_CLASS).nonzero()[:, 0]
        rest = split.test[~torch.isin(split.test, more)]
        y = torch.where(self.added == NO_CLASS, known, self.added).to(y.device)
        larger = Split(split.name, split.seed, torch.cat([split.train, more]), split.val, rest)
        prediction = super()._fit(data, y, larger, seed)
        self.chosen = first, self.chosen
        return prediction

    @abstractmethod
    def _combine(self, walks: Tensor, network: Tensor) -> Tensor:
        """The class of each added node, or -1, given those that the walks and the network would add."""


@register
class Union(_CoTrained):
    """Adds nodes of which the walks or the network are confident, unless they predict different classes."""

    name = "union"

    def _combine(self, walks: Tensor, network: Tensor) -> Tensor:
        either = torch.where(walks == NO_CLASS, network, walks)
        disagree = (walks != NO_CLASS) & (network != NO_CLASS) & (walks != network)
        return either.masked_fill(disagree, NO_CLASS)


@register
class Intersection(_CoTrained):
    """Adds nodes of which both the walks and the network are confident, with the same class."""

    name = "intersection"

    def _combine(self, walks: Tensor, network: Tensor) -> Tensor:
        return walks.masked_fill(walks != network, NO_CLASS)


def absorbing_walks(edges: csr_array, y: Tensor, train: Tensor, alpha: float) -> Tensor:
    """``[n, classes]`` the confidence ``Σ_{j of class k} P_vj`` of partially absorbing walks, ``P = (L + αI)^-1``.

    One linear system is solved per class. ``L + αI`` is nearly singular for the paper's α, but only along vectors that
    are constant on components, where the inverse is ``1 / α``. These are solved in closed form, the rest by conjugate
    gradients.
    """
    n, classes = y.numel(), int(y.max()) + 1
    source = np.zeros((n, classes))
    source[train.numpy(), y[train].numpy()] = 1.0
    count, component = connected_components(edges, directed=False)
    sizes = np.bincount(component, minlength=count)
    mean = np.stack([np.bincount(component, column, count) / sizes for column in source.T], 1)[component]
    lap = laplacian(edges.astype(np.float64))
    operator = LinearOperator((n, n), matvec=lambda v: lap @ v + alpha * v, dtype=np.float64)
    found = mean / alpha
    for label in range(classes):
        rest, failed = cg(operator, (source - mean)[:, label], rtol=1e-10, maxiter=20 * n)
        if failed:
            raise DemonetError(
                f"the random walks of class {label} did not converge with alpha={alpha!r}", hint="use a larger alpha"
            )
        found[:, label] += rest
    return torch.from_numpy(found)


def most_confident(confidence: Tensor, candidates: Tensor, count: int) -> Tensor:
    """``[n]`` the class to which each node is added, or -1: the ``count`` most confident candidates of every class.

    A node that is among those of several classes goes to the class in which it ranks highest. None is added to a class
    without any confidence.

    >>> confidence = torch.tensor([[0.9, 0.1], [0.8, 0.7], [0.2, 0.6], [0.0, 0.5]])
    >>> most_confident(confidence, torch.tensor([True, True, True, False]), 1).tolist()
    [0, 1, -1, -1]
    """
    masked = confidence.masked_fill(~candidates[:, None], -math.inf)
    rank = masked.argsort(dim=0, descending=True, stable=True).argsort(dim=0)
    rank = rank.masked_fill(~(confidence > 0).any(0), count)
    best, label = rank.min(dim=1)
    return torch.where((best < count) & candidates, label, NO_CLASS)


def labels_per_class(data: Data, num_classes: int) -> int:
    """Labels per class that reach all nodes: ``d^τ η ≈ n`` for the mean degree d, τ layers and η labels in total."""
    n = int(data.num_nodes or 0)
    degree = max(1.0, data.edge_index.size(1) / n)
    return max(1, math.ceil(n / degree**_LAYERS / num_classes))
