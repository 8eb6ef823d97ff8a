"""Kernels on Weisfeiler-Lehman colours.

``wl``: the subtree kernel of Shervashidze et al. (JMLR 2011). ``degree-wl``: the kernel of the DEMO-Net paper.
``deepwl``: deep graph kernels of Yanardag and Vishwanathan (KDD'15).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils._param_validation import Interval

from demonet.errors import DemonetError
from demonet.features.graph import Float, GraphUnion
from demonet.kernels import DegreeWLKernel, Expansion, GraphKernel, WLSubtreeKernel
from demonet.methods.base import at_least, register
from demonet.methods.cost import Cost
from demonet.methods.kernel import KernelSettings, KernelSVM
from demonet_study.methods.embedding import skip_gram

_POSITIVE = Interval(Integral, 1, None, closed="left")


class DeepWLKernel(WLSubtreeKernel):
    r"""The subtree kernel with similarities between substructures.

    .. math::
        K(G, G') = \varphi(G)^\top M \varphi(G'), \qquad M_{ij} = \langle w_i, w_j \rangle

    where :math:`\varphi` counts colours as the subtree kernel does (the case :math:`M = I`) and :math:`w_i` is the
    skip-gram vector of colour :math:`i`, learned with a hierarchical softmax. Colours are words, and the colours of a
    graph are a sentence: round by round, ordered by index within a round, so the order of nodes does not matter. A
    colour that the fitted graphs do not have has no vector and is ignored.

    Args:
        n_iter: Rounds of refinement.
        normalize: Divide by :math:`\sqrt{K(G, G) K(G', G')}`.
        dimensions: The width of a vector.
        window: Number of words to either side that skip-gram predicts.
        epochs: Of skip-gram.
        seed: Of skip-gram.
        vectors: Vectors learned earlier from the same graphs, one row per colour, to be used instead of learning.

    Attributes:
        vectors_: ``[colours, dimensions]`` the vectors :math:`w_i`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **WLSubtreeKernel._parameter_constraints,
        "dimensions": [_POSITIVE],
        "window": [_POSITIVE],
        "epochs": [_POSITIVE],
        "seed": [Interval(Integral, 0, None, closed="left")],
        "vectors": [np.ndarray, None],
    }

    def __init__(
        self,
        n_iter: int = 2,
        normalize: bool = False,
        dimensions: int = 25,
        window: int = 5,
        epochs: int = 5,
        seed: int = 0,
        vectors: Float | None = None,
    ) -> None:
        super().__init__(n_iter, normalize)
        self.dimensions = dimensions
        self.window = window
        self.epochs = epochs
        self.seed = seed
        self.vectors = vectors

    def _learn(self, union: GraphUnion) -> Expansion:
        counts = super()._learn(union).features
        self.vectors_ = self._embed(counts) if self.vectors is None else self.vectors
        if self.vectors_.ndim != 2 or len(self.vectors_) != counts.shape[1]:
            raise DemonetError(f"vectors has shape {self.vectors_.shape}, expected [{counts.shape[1]}, width]")
        return self._deep(counts)

    def _expand(self, union: GraphUnion) -> Expansion:
        return self._deep(super()._expand(union).features)

    def _deep(self, counts: sparse.csr_array) -> Expansion:
        features = counts @ self.vectors_
        return Expansion(features, np.square(features).sum(axis=1))

    def _embed(self, counts: sparse.csr_array) -> Float:
        """Skip-gram vectors of the columns of a matrix of counts, one sentence per row."""
        width = counts.shape[1]
        if width == 0:
            return np.zeros((0, self.dimensions))
        # Frequent colours are not downsampled.
        options = {"window": self.window, "epochs": self.epochs, "sample": 0}
        return skip_gram("deepwl", list(sentences(counts)), width, width=self.dimensions, seed=self.seed, **options)


def sentences(counts: sparse.csr_array) -> Iterator[list[str]]:
    """The columns of each row in order, each repeated as often as its count.

    >>> list(sentences(sparse.csr_array([[2, 0, 1], [0, 1, 0]])))
    [['0', '0', '2'], ['1']]
    """
    for row in range(counts.shape[0]):
        part = slice(counts.indptr[row], counts.indptr[row + 1])
        order = np.argsort(counts.indices[part])
        words = np.repeat(counts.indices[part][order], counts.data[part][order].astype(np.int64))
        yield [str(word) for word in words]


@dataclass(frozen=True)
class DeepWLSettings(KernelSettings):
    """Settings of the deep kernel."""

    dimensions: tuple[int, ...] = at_least(1, (2, 5, 10, 25, 50))  # candidate widths of the vectors
    # Candidate numbers of words to either side that skip-gram predicts.
    windows: tuple[int, ...] = at_least(1, (2, 5, 10, 25, 50))
    epochs: int = at_least(1, 5)  # of skip-gram


@register
class DeepWL(KernelSVM):
    """Support vector machine on the deep kernel; width of the vectors and window are selected on validation.

    Needs gensim: ``pip install demonet[paper]``. Two rounds and the hierarchical softmax are those of the authors'
    program, five epochs are gensim's default.
    """

    name = "deepwl"
    cost = Cost(0.5, 0.2, graphs=2.0)
    defaults = DeepWLSettings("Yanardag and Vishwanathan, KDD'15, and the authors' program", rounds=(2,))
    settings: DeepWLSettings

    def _kernels(self, seed: int) -> Iterator[DeepWLKernel]:
        settings = self.settings
        for n_iter, dimensions, window in product(settings.rounds, settings.dimensions, settings.windows):
            vectors = None
            for normalize in settings.normalize:
                kernel = DeepWLKernel(n_iter, normalize, dimensions, window, settings.epochs, seed, vectors)
                yield kernel
                vectors = kernel.vectors_  # fitted by now; normalisation does not change them

    def _unfitted(self, kernel: GraphKernel) -> GraphKernel:
        """Vectors are learned from the graphs that a kernel is fitted on."""
        return clone(kernel).set_params(vectors=None)

    def _default_kernel(self, seed: int) -> DeepWLKernel:
        return DeepWLKernel(self.settings.untuned, epochs=self.settings.epochs, seed=seed)


@register
class WL(KernelSVM):
    r"""Support vector machine on the subtree kernel, which counts pairs of nodes of equal colour (Eq. 17).

    .. math::
        K(G, G') = \sum_{k=0}^{h} \sum_{v \in V} \sum_{v' \in V'} \delta(h_v^k, h_{v'}^k)

    The number of rounds h is selected on validation; see :class:`~demonet.kernels.WLSubtreeKernel`.
    """

    name = "wl"
    cost = Cost(0.2, 0.02, graphs=2.0)
    kernel_class = WLSubtreeKernel
    # Xu et al. have 1 to 6 rounds. With 0 rounds the kernel counts node labels, which is enough for several sets.
    defaults = KernelSettings(
        "Xu et al., ICLR'19, section 7; C as Morris et al., TUDataset, 2020", rounds=(0, 1, 2, 3, 4, 5, 6)
    )


@register
class DegreeWL(KernelSVM):
    r"""Support vector machine on the degree-specific kernel, which compares nodes of equal degree (Eq. 13 to 15).

    .. math::
        K(G, G') = \sum_{k=0}^{h} \sum_{v \in V} \sum_{v' \in V'}
            \delta(deg(v), deg(v')) \, \langle h_v^k, h_{v'}^k \rangle

    The last level h is selected on validation; see :class:`~demonet.kernels.DegreeWLKernel`.
    """

    name = "degree-wl"
    cost = Cost(0.2, 0.02, graphs=2.0)
    kernel_class = DegreeWLKernel
    defaults = KernelSettings("this project: as the subtree kernel", rounds=(0, 1, 2, 3, 4, 5, 6))
