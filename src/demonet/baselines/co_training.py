"""More labels for a GCN: those that random walks are sure of, and those that a first GCN is (Li et al., AAAI'18)."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, laplacian
from scipy.sparse.linalg import LinearOperator, cg
from torch import Tensor
from torch_geometric.data import Data

from demonet.baselines import settings_networks as settings
from demonet.baselines.base import Items
from demonet.baselines.gcn import GCN
from demonet.data.features import adjacency
from demonet.data.splits import Split
from demonet.errors import DemonetError

NOBODY = -1
LAYERS = 2  # of the GCN


def par_walks(arcs: csr_array, y: Tensor, train: Tensor, alpha: float) -> Tensor:
    """``[n, classes]`` how sure partially absorbing walks are: ``Σ_{j of class k} P_vj`` with ``P = (L + αI)^-1``.

    One system is solved for each class. ``P`` is nearly singular for the α of the paper, but only along vectors that
    are constant on components, where it is ``1 / α``: those are split off, and conjugate gradients do the rest.
    """
    n, classes = y.numel(), int(y.max()) + 1
    source = np.zeros((n, classes))
    source[train.numpy(), y[train].numpy()] = 1.0
    count, component = connected_components(arcs, directed=False)
    sizes = np.bincount(component, minlength=count)
    mean = np.stack([np.bincount(component, column, count) / sizes for column in source.T], 1)[component]
    lap = laplacian(arcs.astype(np.float64))
    operator = LinearOperator((n, n), matvec=lambda v: lap @ v + alpha * v, dtype=np.float64)
    found = mean / alpha
    for label in range(classes):
        rest, failed = cg(operator, (source - mean)[:, label], rtol=1e-10, maxiter=20 * n)
        if failed:
            raise DemonetError(f"the walks of class {label} did not settle", hint="a larger alpha")
        found[:, label] += rest
    return torch.from_numpy(found)


def most_confident(confidence: Tensor, allowed: Tensor, added: int) -> Tensor:
    """``[n]`` the class that each node is added to, or -1: the ``added`` surest allowed nodes of every class.

    A node that two classes want goes to the one in which it stands higher.

    >>> sure = torch.tensor([[0.9, 0.1], [0.8, 0.7], [0.2, 0.6], [0.0, 0.5]])
    >>> most_confident(sure, torch.tensor([True, True, True, False]), 1).tolist()
    [0, 1, -1, -1]
    """
    sure = confidence.masked_fill(~allowed[:, None], -math.inf)
    place = sure.argsort(dim=0, descending=True, stable=True).argsort(dim=0)
    best, label = place.min(dim=1)
    return torch.where((best < added) & allowed, label, NOBODY)


class CoTrained(GCN):
    """A GCN, trained a second time with the labels that were added.

    Nodes of the validation part are never added: they choose the epoch.
    """

    kinds = ("nodes",)
    defaults = settings.CO_TRAINING
    chosen: settings.CoTrainingSettings

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> None:
        if not isinstance(data, Data):
            raise DemonetError(f"{self.name} classifies nodes")
        super()._fit(data, y, split, seed)
        allowed = torch.ones(y.numel(), dtype=torch.bool)
        allowed[split.train] = allowed[split.val] = False
        added = self.chosen.added or needed(data, int(y.max()) + 1)
        known = y.cpu()
        walks = par_walks(adjacency(data), known, split.train, self.chosen.alpha)
        self.added = self._join(
            most_confident(walks, allowed, added), most_confident(self._scores.softmax(1).cpu(), allowed, added)
        )
        more = (self.added != NOBODY).nonzero()[:, 0]
        rest = split.test[~torch.isin(split.test, more)]
        labels = torch.where(self.added == NOBODY, known, self.added).to(y.device)
        super()._fit(data, labels, Split(split.name, split.seed, torch.cat([split.train, more]), split.val, rest), seed)

    @abstractmethod
    def _join(self, walks: Tensor, network: Tensor) -> Tensor:
        """Who is added, and as what, given whom the walks and the network would add."""


def needed(data: Data, num_classes: int) -> int:
    """Labels for each class that reach everyone: ``d^τ η ≈ n`` for the mean degree d, τ layers and η labels in all."""
    n = int(data.num_nodes or 0)
    degree = max(1.0, data.edge_index.size(1) / n)
    return max(1, math.ceil(n / degree**LAYERS / num_classes))
