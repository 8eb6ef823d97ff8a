"""Deep Graph Kernels of Yanardag and Vishwanathan (KDD'15), on Weisfeiler-Lehman sub-structures."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import product
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import Interval

from demonet.baselines import settings_kernels as settings
from demonet.baselines.kernel import KernelSVM
from demonet.errors import DemonetError
from demonet.kernels import WLSubtreeKernel
from demonet.kernels.base import Expansion
from demonet.kernels.union import Float, GraphUnion

_POSITIVE = Interval(Integral, 1, None, closed="left")


class DeepWLKernel(WLSubtreeKernel):
    r"""The subtree kernel with similarities between sub-structures.

    .. math::
        K(G, G') = \varphi(G)^\top M \varphi(G'), \qquad M_{ij} = \langle w_i, w_j \rangle

    where :math:`\varphi` counts colours as the subtree kernel does (which is :math:`M = I`) and :math:`w_i` is the
    skip-gram vector of colour :math:`i`, learned with a hierarchical softmax. Colours are words; the colours of a graph
    are a sentence, round by round and in the order of their numbers within a round, so that the order of nodes does
    not matter. A colour that the fitted graphs do not have has no vector and counts for nothing.

    Args:
        n_iter: Rounds of refinement.
        normalize: Divide by :math:`\sqrt{K(G, G) K(G', G')}`.
        dimensions: The width of a vector.
        window: How many words to either side a vector has to predict.
        epochs: How often the sentences are read.
        seed: Of the first vectors and of what is drawn while reading.
        vectors: Vectors that were learned before from the same graphs, a row a colour; then none are learned.

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

    @property
    def similarity(self) -> Float:
        """The matrix M, ``[colours, colours]``: symmetric and positive semidefinite, being a Gram matrix."""
        return self.vectors_ @ self.vectors_.T

    def _learn(self, union: GraphUnion) -> Expansion:
        counts = super()._learn(union).features
        self.vectors_ = self._embed(counts) if self.vectors is None else self.vectors
        if self.vectors_.ndim != 2 or len(self.vectors_) != counts.shape[1]:
            raise DemonetError(f"vectors of shape {self.vectors_.shape} for {counts.shape[1]} colours")
        return self._deep(counts)

    def _expand(self, union: GraphUnion) -> Expansion:
        return self._deep(super()._expand(union).features)

    def _deep(self, counts: sparse.csr_array) -> Expansion:
        features = counts @ self.vectors_
        return Expansion(features, np.square(features).sum(axis=1))

    def _embed(self, counts: sparse.csr_array) -> Float:
        """Skip-gram vectors of the columns of a matrix of counts, a row a sentence."""
        try:
            from gensim.models import Word2Vec
        except ImportError:
            raise DemonetError("deepwl needs gensim", hint="pip install demonet[baselines]") from None
        width = counts.shape[1]
        if width == 0:
            return np.zeros((0, self.dimensions))
        model = Word2Vec(
            list(sentences(counts)),
            vector_size=self.dimensions,
            window=self.window,
            epochs=self.epochs,
            sg=1,
            hs=1,
            negative=0,
            min_count=1,
            sample=0,  # the commonest colours are as good as any
            seed=self.seed,
            workers=1,  # with more, the vectors depend on who comes first
            hashfxn=_stable_hash,
        )
        return model.wv[[str(colour) for colour in range(width)]].astype(np.float64)


def sentences(counts: sparse.csr_array) -> Iterator[list[str]]:
    """Each row's columns in order, as often as they are counted.

    >>> list(sentences(sparse.csr_array([[2, 0, 1], [0, 1, 0]])))
    [['0', '0', '2'], ['1']]
    """
    for row in range(counts.shape[0]):
        part = slice(counts.indptr[row], counts.indptr[row + 1])
        order = np.argsort(counts.indices[part])
        words = np.repeat(counts.indices[part][order], counts.data[part][order].astype(np.int64))
        yield [str(word) for word in words]


class DeepWL(KernelSVM):
    """A support vector machine on the deep kernel; width of the vectors and window are chosen on validation.

    Needs gensim: ``pip install demonet[baselines]``.
    """

    name = "deepwl"
    defaults = settings.DEEP_WL
    chosen: settings.DeepWLSettings

    def _kernels(self, seed: int) -> Iterator[DeepWLKernel]:
        chosen = self.chosen
        for n_iter, dimensions, window in product(chosen.rounds, chosen.dimensions, chosen.windows):
            vectors = None
            for normalize in chosen.normalize:
                kernel = DeepWLKernel(n_iter, normalize, dimensions, window, chosen.epochs, seed, vectors)
                yield kernel
                vectors = kernel.vectors_  # fitted by now: whether graphs are scaled changes nothing in them

    def _untuned(self, seed: int) -> DeepWLKernel:
        return DeepWLKernel(self.chosen.untuned, epochs=self.chosen.epochs, seed=seed)


def _stable_hash(word: str) -> int:
    """Python's own hash of a string differs from process to process."""
    return zlib.crc32(word.encode())
