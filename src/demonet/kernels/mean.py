"""The mean WL kernel, Eq. 16."""

from __future__ import annotations

import numpy as np

from demonet.features.union import Float, GraphUnion, sum_rows
from demonet.kernels.base import Expansion
from demonet.kernels.representations import RepresentationKernel


class MeanWLKernel(RepresentationKernel):
    r"""Inner products of all pairs of nodes, Eq. 16 summed over levels ``0 .. n_iter``.

    .. math::
        K(G, G') = \sum_{k=0}^{h} \sum_{v \in V} \sum_{v' \in V'} \langle h_v^k, h_{v'}^k \rangle

    The kernel space of sum pooling: the features are :math:`\sum_v h_v^k`, one block per level. The name is the
    paper's, although the equation has sums and no mean; ``normalize=True`` removes the dependence on the number of
    nodes.

    Args:
        n_iter: The last level :math:`h`; ``h + 1`` levels are summed.
        normalize: Divide by :math:`\sqrt{K(G, G) K(G', G')}`; a graph without nodes gets zeros.
        representations: A callable from a ``Data`` to the list of tensors :math:`h^0, \dots, h^h`, each
            ``[nodes, width]``, such as the layers of a trained model. By default :math:`h^0` is ``data.x`` (ones where
            there is none) and :math:`h^k` the mean of :math:`h^{k-1}` of the node and of its neighbours' mean, which
            is zero for an isolated node.

    Attributes:
        widths_: The width of each level.
        features_: Features of the fitted graphs, an array ``[graphs, levels * width]``.
    """

    def _pool(self, union: GraphUnion, levels: list[Float]) -> Expansion:
        features = sum_rows(np.hstack(levels), union.graph, len(union.graphs))
        return Expansion(features, np.square(features).sum(axis=1))
