"""Models that know the nodes of one graph by their ids: what matters is who a node is joined to, not how it looks.

On the fitted graph, later, with edges and nodes added or removed, they are evaluated again on the new edges. They can
say nothing about another graph: an ensemble leaves them out there.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from demonet.data.rows import Rows
from demonet.features.views import Float, Int, NodeView, View
from demonet.methods.base import Settings, register
from demonet.methods.linear import Linear
from demonet.methods.model import Labelled, Model
from demonet.methods.selection import log_losses

STEPS = 30  # of a random walk, after which its restarts have forgotten nearly everything
RESTARTS = (0.05, 0.15, 0.4, 0.8)
TRUSTS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)  # how many labels the classes' shares in training count as


@register
class Propagation(Model):
    r"""The classes of labelled nodes near a node, by a random walk that restarts.

    .. math:: F = \rho \sum_k (1 - \rho)^k (D^{-1/2} A D^{-1/2})^k Y, \qquad p(v) \propto F_v / s + t \, \pi / n

    where Y is one-hot in the rows of training nodes and zero elsewhere, :math:`\pi` are the classes' shares, and s is
    the mean mass of a node. Restart :math:`\rho` and trust t are chosen on validation.
    """

    name = "propagation"
    kind = "propagation"
    kinds = ("nodes",)
    knows_nodes = True
    defaults = Settings("Zhou et al., NeurIPS'03; trust in the shares of classes is of this project")

    def _learn(self, view: View, labelled: Labelled) -> None:
        self.chosen = self.chosen or self._choose(view, labelled)
        train = labelled.train
        self.arrays |= {"items": train, "y": labelled.y[train], "prior": labelled.prior()}

    def _choose(self, view: View, labelled: Labelled) -> dict[str, float]:
        val, y = labelled.val, labelled.y
        best = (np.inf, {"restart": RESTARTS[1], "trust": 3.0})
        for restart in RESTARTS if len(val) else ():
            mass = walk(view, labelled.train, labelled.one_hot(), restart)[val]
            for trust in TRUSTS:
                loss = float(log_losses(_mixed(mass, labelled.prior(), trust), y[val]).mean())
                best = min(best, (loss, {"restart": restart, "trust": trust}), key=lambda found: found[0])
        return best[1]

    def known_targets(self, view: View) -> Int:
        """``[nodes]`` the classes that are known, -1 for the others."""
        given = view.data.get("known_targets")
        if given is not None:
            return given.numpy()
        items = self.arrays["items"]
        fitted = np.full(max(items.max(initial=0), view.known.max(initial=0)) + 2, -1)  # the last is for new nodes
        fitted[items] = self.arrays["y"]
        return fitted[view.known]

    def outputs(self, view: View) -> Float:
        """The walk on the edges of the view, from the nodes whose classes are known."""
        known, chosen = self.known_targets(view), self.chosen
        rows = np.flatnonzero(known >= 0)
        mass = walk(view, rows, np.eye(self.facts["classes"])[known[rows]], chosen["restart"])
        return _mixed(mass, self.arrays["prior"], chosen["trust"])

    def estimate(self, view: View, num_train: int) -> float:
        """A few walks."""
        return 0.05 + len(RESTARTS) * STEPS * 2e-8 * view.adjacency.nnz


def walk(view: NodeView, rows: Int, one_hot: Float, restart: float) -> Float:
    """``[nodes, classes]`` mass of each class, in units of what one labelled neighbour of a typical node brings.

    Args:
        view: The graph.
        rows: Its labelled nodes.
        one_hot: ``[rows, classes]``.
        restart: The probability of a restart.
    """
    degree = np.maximum(np.diff(view.adjacency.indptr), 1)
    scale = sparse.diags_array(1 / np.sqrt(degree))
    step = sparse.csr_array(scale @ view.adjacency @ scale)
    start = np.zeros((view.num_items, one_hot.shape[1]))
    start[rows] = one_hot
    mass, moved = start * 0, start
    for _ in range(STEPS):
        moved = (1 - restart) * (step @ moved)
        mass += moved
    mass *= np.sqrt(degree)[:, None]  # as much as a node's neighbours have together
    typical = mass.sum(1)[rows].mean() if len(rows) else 1.0
    return 100 * mass / (typical or 1.0)


def _mixed(mass: Float, prior: Float, trust: float) -> Float:
    total = mass + trust * prior
    return total / total.sum(1, keepdims=True)


@register
class AdjacencyLinear(Linear):
    """Logistic regression on who a node's neighbours are: its row of the adjacency matrix, and a node's attributes.

    Columns are the leading eigenvectors of the normalised adjacency matrix beside the rows themselves, all of unit
    length. The eigenvectors are kept, see :meth:`~demonet.features.views.NodeView.spectral_rows`.
    """

    name = "linear-adjacency"
    needs_attributes = False
    knows_nodes = True

    def _learn(self, view: View, labelled: Labelled) -> None:
        self.facts["mean_degree"] = view.mean_degree
        self.arrays["vectors"] = view.eigenvectors
        super()._learn(view, labelled)

    def _blocks(self, view: NodeView, scale: float) -> list[tuple[float, Rows]]:
        spectrum = view.spectral_rows(self.arrays["vectors"], self.facts["mean_degree"])
        blocks = [(scale, spectrum), (1 - scale, view.neighbourhood)]
        return [*blocks, (0.5, view.own)] if view.facts["attributes"] else blocks

    def estimate(self, view: View, num_train: int) -> float:
        """Seven regressions and an eigendecomposition; with ``coarse``, as they take."""
        filled = view.adjacency.nnz / max(1, view.num_items) + 64
        if self.settings.coarse:
            return 0.5 + 2e-6 * view.adjacency.nnz + 100 * 2e-8 * num_train * filled
        return 0.5 + 1e-5 * view.adjacency.nnz + 7 * 100 * 2e-8 * num_train * 10 * filled

    def memory(self, view: View, num_train: int) -> float:
        """The vectors of the eigendecomposition, and rows of eigenvectors and neighbours."""
        rows = 12.0 * (view.adjacency.nnz + 32 * view.num_items)
        return Model.memory(self, view, num_train) + 8.0 * 65 * view.num_items + 3 * rows
