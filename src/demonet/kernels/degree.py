"""The degree-specific WL kernel, Eq. 13 to 15."""

from __future__ import annotations

import numpy as np

from demonet.features.union import Float, GraphUnion, sum_rows
from demonet.kernels.base import Expansion
from demonet.kernels.representations import RepresentationKernel


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
