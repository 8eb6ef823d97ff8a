"""Kernels on node representations h^0 .. h^K, averaged attributes or those of a trained model: Eq. 13 to 16."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from scipy import sparse
from torch_geometric.data import Data

from demonet.errors import DemonetError
from demonet.features.graph import Float, GraphUnion, numeric, sum_rows
from demonet.kernels.base import Expansion, GraphKernel

Representations = Callable[[Data], Sequence[torch.Tensor]]


class RepresentationKernel(GraphKernel):
    """A kernel on node representations ``h^0 .. h^K``: averaged attributes, or the result of a callable."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GraphKernel._parameter_constraints,
        "representations": [callable, None],
    }

    def __init__(
        self, n_iter: int = 2, normalize: bool = False, representations: Representations | None = None
    ) -> None:
        self.n_iter = n_iter
        self.normalize = normalize
        self.representations = representations

    def _learn(self, union: GraphUnion) -> Expansion:
        levels = self._levels(union)
        self.widths_ = [h.shape[1] for h in levels]
        return self._pool(union, levels)

    def _expand(self, union: GraphUnion) -> Expansion:
        levels = self._levels(union)
        if (widths := [h.shape[1] for h in levels]) != self.widths_:
            raise DemonetError(
                f"the levels h^0 .. h^K have widths {widths}, those of the fitted graphs {self.widths_}",
                hint="all graphs need the same node attributes",
            )
        return self._pool(union, levels)

    def _levels(self, union: GraphUnion) -> list[Float]:
        if self.representations is None:
            return _averaged(union, self.n_iter)
        return _from_callable(union, self.n_iter, self.representations)

    @abstractmethod
    def _pool(self, union: GraphUnion, levels: list[Float]) -> Expansion:
        """Sum the rows of each level over the groups of nodes that the kernel compares."""


class DegreeWLKernel(RepresentationKernel):
    r"""Inner products of all pairs of nodes of equal degree, Eq. 13 summed over levels ``0 .. n_iter``.

    .. math::
        K(G, G') = \sum_{k=0}^{h} \sum_{v \in V} \sum_{v' \in V'}
            \delta(deg(v), deg(v')) \, \langle h_v^k, h_{v'}^k \rangle

    The kernel space of degree-specific pooling: the features (Eq. 14) are the blocks
    :math:`c(G_k, d) = \sum_{v: deg(v) = d} h_v^k` (Eq. 15), for each level and each degree of the fitted graphs.

    Args:
        n_iter: The last level :math:`h`; ``h + 1`` levels are summed.
        normalize: Divide by :math:`\sqrt{K(G, G) K(G', G')}`; a graph without nodes gets zeros.
        representations: A callable from a ``Data`` to the list of tensors :math:`h^0, \dots, h^h`, each
            ``[nodes, width]``, such as the layers of a trained model. By default :math:`h^0` is ``data.x`` (ones where
            there is none) and :math:`h^k` the mean of :math:`h^{k-1}` of the node and of its neighbours' mean, which
            is zero for an isolated node.

    Attributes:
        degrees_: The degrees of the fitted graphs, ascending.
        widths_: The width of each level.
        features_: Features of the fitted graphs, an array ``[graphs, levels * degrees * width]``.
    """

    def _learn(self, union: GraphUnion) -> Expansion:
        self.degrees_ = np.unique(union.degree)
        return super()._learn(union)

    def _pool(self, union: GraphUnion, levels: list[Float]) -> Expansion:
        # One sum for each pair (graph, degree) that occurs, including degrees that fit has not seen.
        degree, num_graphs = union.degree, len(union.graphs)
        span = int(degree.max(initial=0)) + 1
        cells, cell = np.unique(union.graph * span + degree, return_inverse=True)
        graph, degree = np.divmod(cells, span)
        known = np.isin(degree, self.degrees_)
        place = np.searchsorted(self.degrees_, degree[known])

        self_kernel, blocks = np.zeros(num_graphs), []
        for h in levels:
            c = sum_rows(h, cell, len(cells))
            self_kernel += np.bincount(graph, np.square(c).sum(axis=1), minlength=num_graphs)
            block = np.zeros((num_graphs, len(self.degrees_), h.shape[1]))
            block[graph[known], place] = c[known]
            blocks.append(block.reshape(num_graphs, -1))
        return Expansion(np.hstack(blocks), self_kernel)


class MeanWLKernel(RepresentationKernel):
    r"""Inner products of all pairs of nodes, Eq. 16 summed over levels ``0 .. n_iter``.

    .. math::
        K(G, G') = \sum_{k=0}^{h} \sum_{v \in V} \sum_{v' \in V'} \langle h_v^k, h_{v'}^k \rangle

    The kernel space of sum pooling: the features are :math:`\sum_v h_v^k`, one block per level. The name is the
    paper's, although the equation has sums and no mean; ``normalize=True`` removes the dependence on the number of
    nodes.

    The parameters are those of :class:`DegreeWLKernel`.

    Attributes:
        widths_: The width of each level.
        features_: Features of the fitted graphs, an array ``[graphs, levels * width]``.
    """

    def _pool(self, union: GraphUnion, levels: list[Float]) -> Expansion:
        features = sum_rows(np.hstack(levels), union.graph, len(union.graphs))
        return Expansion(features, np.square(features).sum(axis=1))


def _averaged(union: GraphUnion, n_iter: int) -> list[Float]:
    r"""Levels ``0 .. n_iter`` by repeated averaging, without a trained model.

    .. math::
        h_v^0 = x_v, \qquad
        h_v^k = \tfrac12 \Big( h_v^{k-1} + \tfrac{1}{deg(v)} \sum\nolimits_{u \in N(v)} h_u^{k-1} \Big)

    The mean over an empty neighbourhood is zero, as in the layers of this package. The representation of an isolated
    node halves with each level, so it differs from that of a node whose neighbours equal itself.
    """
    share = 1.0 / np.maximum(union.degree, 1)[union.target]
    neighbours_mean = sparse.csr_array((share, (union.target, union.source)), shape=(union.num_nodes,) * 2)
    levels = [union.attributes()]
    for _ in range(n_iter):
        levels.append((levels[-1] + neighbours_mean @ levels[-1]) / 2)
    return levels


def _from_callable(union: GraphUnion, n_iter: int, representations: Representations) -> list[Float]:
    """Levels ``0 .. n_iter`` from a callable, graph by graph, concatenated over all nodes."""
    with torch.no_grad():
        by_graph = [_checked_levels(union, position, n_iter, representations) for position in range(len(union.graphs))]
    for k, level in enumerate(zip(*by_graph, strict=True)):
        if len(widths := {h.shape[1] for h in level}) > 1:
            raise DemonetError(f"representations: level {k} must have one width for all graphs, got {sorted(widths)}")
    return [np.concatenate(level) for level in zip(*by_graph, strict=True)]


def _checked_levels(union: GraphUnion, position: int, n_iter: int, representations: Representations) -> list[Float]:
    levels = representations(union.graphs[position])
    if not isinstance(levels, list | tuple):
        raise DemonetError(
            f"representations must return a list of tensors, got {type(levels).__name__} for graph {position}"
        )
    if len(levels) != n_iter + 1:
        raise DemonetError(
            f"representations returned {len(levels)} levels for graph {position}, n_iter={n_iter} needs {n_iter + 1}",
            hint=f"set n_iter={len(levels) - 1}; level 0 is the input",
        )
    name = f"representations: level {{}} of graph {position}"
    return [numeric(h, name.format(k), union.sizes[position]) for k, h in enumerate(levels)]
