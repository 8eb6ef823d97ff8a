"""Base class of structural embeddings: a vector per node from the graph alone, then logistic regression."""

from __future__ import annotations

import hashlib
import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch_geometric.data import Data

from demonet.data.splits import Split
from demonet.errors import needed
from demonet.methods.base import Conditions, Items, Method, Predicted
from demonet.methods.selection import Selected, logistic

Float = NDArray[np.float64]


class Embedding(Method):
    """A method that uses neither labels nor attributes: one embedding serves every split of a graph.

    The last embedding of every method is cached. Self-loops, directions and parallel edges are ignored.

    Attributes:
        earlier: Processor seconds that the embedding took, if an earlier fit has computed it; otherwise 0.
    """

    kinds = ("nodes",)
    group = "structural embedding"
    earlier = 0.0
    _seed: int | None = None
    _cache: ClassVar[dict[str, tuple[Any, Float, float]]] = {}

    @classmethod
    def under(cls, conditions: Conditions) -> Self:
        """With one embedding for all splits."""
        made = cls()
        made._seed = conditions.seed
        return made

    @abstractmethod
    def embed(self, data: Data, seed: int = 0) -> Float:
        """``[nodes, width]``, the same for the same graph and seed."""

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> Predicted:
        z = self._embedded(cast(Data, data), seed if self._seed is None else self._seed)
        self._embeddings = torch.from_numpy(z)
        selected, x = classifier(z, y, split, self.chosen)
        self.chosen = selected.model
        return selected.outputs(x)

    def _embedded(self, data: Data, seed: int) -> Float:
        edges = hashlib.sha256(data.edge_index.numpy().tobytes()).digest()
        key, cached = (self.settings, data.num_nodes, edges, seed), self._cache.get(self.name)
        if cached is not None and cached[0] == key:
            z, self.earlier = cached[1:]
            return z
        start, self.earlier = time.process_time(), 0.0
        z = self.embed(data, seed)
        self._cache[self.name] = key, z, time.process_time() - start
        return z

    def embeddings(self) -> Tensor:
        """``[nodes, width]`` the embedding that was classified."""
        return self._embeddings

    def first_embeddings(self, data: Data, seed: int = 0) -> Tensor:
        """``[nodes, width]`` the embedding."""
        return torch.from_numpy(self.embed(data, seed))


def classify(z: Float, y: Tensor, split: Split) -> Tensor:
    """The class of every node by one-vs-rest logistic regression with L2; C is selected on validation.

    Columns are standardised over all nodes, which needs no labels.
    """
    selected, x = classifier(z, y, split)
    return selected.predict(x)


def classifier(z: Float, y: Tensor, split: Split, kept: Any = None) -> tuple[Selected, Float]:
    """The regression of :func:`classify` and the rows that it reads; ``kept`` as in ``selection.select``."""
    x = StandardScaler().fit_transform(z)
    return logistic(x, y, split, one_vs_rest=True, kept=kept), x


def skip_gram(
    method: str, sentences: Sequence[Sequence[str]], words: int, *, width: int, seed: int, **options: Any
) -> Float:
    """``[words, width]`` the vectors of the words "0", "1" and so on, by a hierarchical softmax in one thread.

    Args:
        method: Its name, for the error if gensim is not installed.
        sentences: Each word is in one of them at least.
        words: Number of words.
        width: Of a vector.
        seed: The same seed gives the same vectors; with several threads they would depend on scheduling.
        **options: ``window``, ``epochs`` and others of gensim's ``Word2Vec``.
    """
    fixed = {"sg": 1, "hs": 1, "negative": 0, "min_count": 1, "workers": 1}
    make = needed("gensim.models", "paper", method).Word2Vec
    model = make(sentences, vector_size=width, seed=seed, **fixed, **options)
    found: Float = model.wv[[str(word) for word in range(words)]].astype(np.float64)
    return found
