"""Models that know the nodes of one graph by their ids: what matters is who a node is joined to, not how it looks.

On the fitted graph, later, with edges and nodes added or removed, they are evaluated again on the new edges. They can
say nothing about another graph: an ensemble leaves them out there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from demonet.data.rows import Rows, to_torch
from demonet.features.views import LARGE, Float, Int, NodeView, View
from demonet.methods.base import Settings, register
from demonet.methods.linear import Linear
from demonet.methods.model import TASKS, Labelled, Model
from demonet.methods.selection import Choice, item_losses
from demonet.train.metrics import Task

STEPS = 30  # of a random walk, after which its restarts have forgotten nearly everything
RESTARTS = (0.05, 0.15, 0.4, 0.8)
TRUSTS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)  # how many labels the classes' shares in training count as


class Propagating(Model):
    """A model whose predictions start from known targets."""

    kind = "propagation"
    kinds = ("nodes",)
    knows_nodes = True

    def learn_targets(self, labelled: Labelled) -> None:
        """Keep the training items, their targets and, if there are some, their weights."""
        self.arrays |= {"items": labelled.train, "y": labelled.y[labelled.train]}
        if (weight := labelled.weights(labelled.train)) is not None:
            self.arrays["weight"] = weight

    def counted(self, view: View, rows: Int, targets: Float, known: Float) -> tuple[Float, Float]:
        """Targets and known entries times the weights of the fitted items; of other items, times the mean weight.

        With weights of classes, the mean is that of the item's class.
        """
        if "weight" not in self.arrays:
            return targets, known
        weight = known_targets(view, self.arrays["items"], self.arrays["weight"][:, None])[rows, 0]
        if (new := np.isnan(weight)).any():
            own, y = self.arrays["weight"], self.arrays["y"]
            weight[new] = own.mean()
            for value in np.unique(y) if y.ndim == 1 else ():
                weight[new & (targets[:, value] == 1)] = own[y == value].mean()
        return weight[:, None] * targets, weight[:, None] * known

    def known_targets(self, view: View) -> NDArray[Any]:
        """``[nodes]`` the classes that are known, -1 for the others; of labels and numbers a table, NaN for unknown."""
        given = view.data.get("known_targets")
        return known_targets(view, self.arrays["items"], self.arrays["y"]) if given is None else given.numpy()


@register
class Propagation(Propagating):
    r"""The known targets near a node, by a random walk that restarts: classes, labels or numbers.

    .. math:: F = \rho \sum_k (1 - \rho)^k (D^{-1/2} A D^{-1/2})^k Y, \qquad p(v) = (F_v + t \, \pi) / (N_v + t)

    where Y has the targets of training nodes (one-hot for classes) and zero elsewhere, N is the same walk of their
    number, both in units of a typical node, and :math:`\pi` are the shares or means of training. Targets count by the
    weights of their items, if there are some. Restart :math:`\rho` and trust t are chosen on validation, for each label
    or number.
    """

    name = "propagation"
    tasks = TASKS
    defaults = Settings("Zhou et al., NeurIPS'03; trust in the shares of classes is of this project")

    def _learn(self, view: View, labelled: Labelled) -> None:
        self.learn_targets(labelled)
        self.arrays["prior"] = labelled.prior()
        if self.chosen is None:
            targets = target_rows(labelled.task, self.arrays["y"], labelled.outputs)
            targets = self.counted(view, labelled.train, *targets)
            self.chosen, self.judged = choose_walk(view, labelled, *targets, self.arrays["prior"])

    def outputs(self, view: View) -> Float:
        """The walk on the edges of the view, from the nodes whose targets are known."""
        known, outputs = self.known_targets(view), self.facts["outputs"]
        rows = np.flatnonzero(known >= 0 if known.ndim == 1 else ~np.isnan(known).all(1))
        targets = self.counted(view, rows, *target_rows(self.facts["task"], known[rows], outputs))
        return walked(view, rows, *targets, self.arrays["prior"], self.chosen, self.device)

    def estimate(self, view: View, num_train: int) -> float:
        """A few walks."""
        return 0.05 + len(RESTARTS) * STEPS * 2e-8 * view.adjacency.nnz


def choose_walk(
    view: NodeView, labelled: Labelled, targets: Float, known: Float, prior: Float, base: Float | None = None
) -> tuple[dict[str, list[float]], Float | None]:
    """Restart and trust of least loss on validation: of classes one pair, otherwise one for each output.

    Of tables also what validation items get from the pairs that are best without them, see :attr:`Model.judged`.

    Args:
        view, labelled: The problem; without validation items, a middle pair.
        targets, known: Of the training items, see :func:`target_rows`.
        prior: ``[outputs]``.
        base: ``[val, outputs]`` what the walk is added to, if it is.
    """
    val, single = labelled.val, labelled.task == "classify"
    count = 1 if single else labelled.outputs
    if not len(val):
        return {"restart": [RESTARTS[1]] * count, "trust": [3.0] * count}, None
    choices = [Choice(len(val), labelled.seed) for _ in range(count)]
    for restart in RESTARTS:
        mass, number = walk(view, labelled.train, targets, known, restart, labelled.device)
        for trust in TRUSTS:
            found = _mixed(mass[val], number[val], prior, np.array(trust))
            found = found if base is None else bounded(labelled.task, base + found)
            for column, choice in enumerate(choices):
                some = slice(None) if single else [column]
                y = labelled.y[val] if single else labelled.y[val][:, some]
                losses = item_losses(labelled.task, found[:, some], y, labelled.weights(val))
                choice.offer((restart, trust), found[:, column], losses)
    restarts, trusts = zip(*(choice.best for choice in choices), strict=True)
    judged = None if single else np.stack([choice.outputs for choice in choices], 1)
    return {"restart": list(restarts), "trust": list(trusts)}, judged


def walked(
    view: NodeView, rows: Int, targets: Float, known: Float, prior: Float, chosen: dict[str, list[float]], device: str
) -> Float:
    """``[nodes, outputs]`` the walk from some rows, mixed with the prior, as :func:`choose_walk` has chosen."""
    restart = np.array(chosen["restart"])
    mass, count = np.zeros((2, view.num_items, targets.shape[1]))
    for value in np.unique(restart):
        some = slice(None) if len(restart) == 1 else restart == value
        mass[:, some], count[:, some] = walk(view, rows, targets[:, some], known[:, some], value, device)
    return _mixed(mass, count, prior, np.array(chosen["trust"]))


def bounded(task: Task, outputs: Float) -> Float:
    """Probabilities between 0 and 1; numbers as they are."""
    return np.clip(outputs, 0.0, 1.0) if task == "multilabel" else outputs


def known_targets(view: NodeView, items: Int, y: NDArray[Any]) -> NDArray[Any]:
    """The targets ``y`` of ``items`` of the fitted graph in the order of a view's nodes; -1 or NaN for the others."""
    assert view.known is not None
    size = max(items.max(initial=0), view.known.max(initial=0)) + 2  # the last is for new nodes
    fitted = np.full((size, *y.shape[1:]), -1 if y.ndim == 1 else np.nan, y.dtype)
    fitted[items] = y
    return fitted[view.known]


def target_rows(task: Task, y: NDArray[Any], outputs: int) -> tuple[Float, Float]:
    """``[items, outputs]`` targets, one-hot for classes and 0 for unknown, and which of them are known."""
    if task == "classify":
        return np.eye(outputs)[y], np.ones((len(y), outputs))
    return np.nan_to_num(y), 1.0 - np.isnan(y)


def walk(
    view: NodeView, rows: Int, targets: Float, known: Float, restart: float, device: str = "cpu"
) -> tuple[Float, Float]:
    """``[nodes, outputs]`` sums of targets and of known entries; a known neighbour of a typical node counts 100.

    Args:
        view: The graph.
        rows: Its nodes with known targets.
        targets, known: ``[rows, outputs]``, see :func:`target_rows`.
        restart: The probability of a restart.
        device: Where the walk is computed.
    """
    degree = np.maximum(np.diff(view.adjacency.indptr), 1)
    scale = sparse.diags_array(1 / np.sqrt(degree))
    step = to_torch((1 - restart) * (scale @ view.adjacency @ scale), torch.float64).to(device)
    alike = bool((known == known[:, :1]).all())  # one walk counts for all columns
    width = targets.shape[1]
    start = np.zeros((view.num_items, width + (1 if alike else width)))
    start[rows] = np.hstack([targets, known[:, :1] if alike else known])
    moved = torch.from_numpy(start).to(device)
    total = torch.zeros_like(moved)
    for _ in range(STEPS):
        moved = step @ moved
        total += moved
    mass = total.cpu().numpy() * np.sqrt(degree)[:, None]  # as much as a node's neighbours have together
    count = np.broadcast_to(mass[:, width:], (len(mass), width))
    typical = count[rows].mean(0) if len(rows) else np.ones(width)
    factor = 100 / np.where(typical > 0, typical, 1.0)
    return factor * mass[:, :width], factor * count


def _mixed(mass: Float, count: Float, prior: Float, trust: Float) -> Float:
    return (mass + trust * prior) / (count + trust)


@register
class AdjacencyLinear(Linear):
    """Linear regression on who a node's neighbours are: its row of the adjacency matrix, and a node's attributes.

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
        vectors = 1e-4 * view.num_items if view.num_items >= LARGE else 0.0  # 500 steps, each with 64 vectors
        if self.settings.coarse:
            return 0.5 + vectors + 2e-6 * view.adjacency.nnz + 100 * 2e-8 * num_train * filled
        return 0.5 + vectors + 1e-5 * view.adjacency.nnz + 7 * 100 * 2e-8 * num_train * 10 * filled

    def memory(self, view: View, num_train: int) -> float:
        """The vectors of the eigendecomposition, and rows of eigenvectors and neighbours."""
        rows = 12.0 * (view.adjacency.nnz + 32 * view.num_items)
        return Model.memory(self, view, num_train) + 8.0 * 65 * view.num_items + 3 * rows
