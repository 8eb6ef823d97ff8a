"""The Weisfeiler-Lehman subtree kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from demonet.kernels.base import Expansion, GraphKernel
from demonet.kernels.colours import SignatureBook, refine
from demonet.kernels.union import GraphUnion, Int


class WLSubtreeKernel(GraphKernel):
    r"""How many pairs of nodes have the same Weisfeiler-Lehman colour, Eq. 17 summed over rounds ``0 .. n_iter``.

    .. math::
        K(G, G') = \sum_{k=0}^{h} \sum_{v \in V} \sum_{v' \in V'} \delta(h_v^k, h_{v'}^k)

    where :math:`h_v^k` is the colour of node :math:`v` after :math:`k` rounds of refinement. Each distinct row of
    ``data.x`` is a first colour; without ``x`` all nodes begin alike. The features are counts of colours, so the kernel
    costs one pass over the arcs a round and one sparse product, not a pass over pairs of nodes.

    Shervashidze et al., "Weisfeiler-Lehman graph kernels", JMLR 2011.

    Args:
        n_iter: Rounds of refinement :math:`h`; ``h + 1`` levels are summed.
        normalize: Divide by :math:`\sqrt{K(G, G) K(G', G')}`; a graph without nodes gets zeros.

    Attributes:
        books_: The colours known from ``fit``, a dictionary a level.
        features_: Features of the fitted graphs, a CSR array ``[graphs, colours]``.
    """

    def __init__(self, n_iter: int = 2, normalize: bool = False) -> None:
        self.n_iter = n_iter
        self.normalize = normalize

    def _learn(self, union: GraphUnion) -> Expansion:
        attributes = union.attributes()
        self.n_features_in_ = attributes.shape[1]
        colours, self.books_ = refine(union, attributes, [SignatureBook()] * (self.n_iter + 1))
        return self._counts(union, colours, self.books_)

    def _expand(self, union: GraphUnion) -> Expansion:
        # The extended books end here: a colour that fit has not seen is numbered for the self-kernel, and not kept.
        colours, books = refine(union, union.attributes(self.n_features_in_), self.books_)
        return self._counts(union, colours, books)

    def _counts(self, union: GraphUnion, colours: Sequence[Int], books: Sequence[SignatureBook]) -> Expansion:
        ones, num_graphs = np.ones(union.num_nodes), len(union.graphs)
        counts = [
            sparse.csr_array((ones, (union.graph, colour)), shape=(num_graphs, book.size))
            for colour, book in zip(colours, books, strict=True)
        ]
        known = [count[:, : book.size] for count, book in zip(counts, self.books_, strict=True)]
        self_kernel = np.sum([count.power(2).sum(axis=1) for count in counts], axis=0)
        return Expansion(sparse.hstack(known, format="csr"), self_kernel)
