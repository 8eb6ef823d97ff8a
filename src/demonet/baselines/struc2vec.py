"""struc2vec (Ribeiro et al., KDD'17): skip-gram over walks among nodes whose surroundings have like degrees.

All three of the paper's optimisations are on: compressed degree sequences, distances to the nodes of nearest degree
only, and a limited number of layers. The same seed gives the same embedding: skip-gram runs in one thread.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from torch_geometric.data import Data

from demonet.baselines.embedding import Embedding, Float
from demonet.baselines.layered_walks import Int, layered, walk
from demonet.baselines.rings import rings, warping
from demonet.baselines.settings_structural import STRUC2VEC, Struc2vecSettings
from demonet.baselines.structure import simple_adjacency
from demonet.errors import DemonetError


class Struc2vec(Embedding):
    """Structural distances, a layered graph, biased walks, and skip-gram with hierarchical softmax."""

    name = "struc2vec"
    defaults = STRUC2VEC
    settings: Struc2vecSettings

    def embed(self, data: Data, seed: int = 0) -> Float:
        """``[nodes, dimensions]``; needs gensim."""
        generator = np.random.default_rng(seed)
        adjacency = simple_adjacency(data)
        n = adjacency.shape[0]
        u, v = self.pairs(np.diff(adjacency.indptr), generator)
        layers = layered(n, u, v, self.distances(adjacency, u, v))
        paths = walk(layers, self.settings.walks, self.settings.length, self.settings.stay, generator)
        if n < 2:  # skip-gram has nothing to predict from a single word
            return np.zeros((n, self.settings.dimensions))
        return self._skip_gram(generator.permutation(paths), n, seed)

    def pairs(self, degree: Int, generator: np.random.Generator) -> tuple[Int, Int]:
        """Whom to compare: everyone with those who stand next in the order of degrees, ties drawn at random."""
        n = len(degree)
        reach = self.settings.neighbours
        if reach is None:
            reach = int(np.ceil(np.log2(max(2, n))))
        reach = n - 1 if reach == 0 else min(reach, n - 1)
        order = np.lexsort((generator.permutation(n), degree))
        first = np.concatenate([np.arange(n - step) for step in range(1, reach + 1)] or [np.empty(0, np.int64)])
        step = np.repeat(np.arange(1, reach + 1), n - np.arange(1, reach + 1))
        return order[first], order[first + step]

    def distances(self, adjacency: sparse.csr_array, u: Int, v: Int) -> Float:
        """``[layers, pairs]`` the distance f_k of each pair; NaN from where one of its rings is empty."""
        found = [
            warping(ring, u, v) for ring in rings(adjacency, self.settings.layers, compressed=self.settings.compressed)
        ]
        return np.cumsum(found, axis=0)

    def _skip_gram(self, paths: Int, n: int, seed: int) -> Float:
        try:
            from gensim.models import Word2Vec
        except ImportError:
            raise DemonetError("struc2vec needs gensim", hint="pip install demonet[baselines]") from None
        model = Word2Vec(
            paths.astype(str).tolist(),
            vector_size=self.settings.dimensions,
            window=self.settings.window,
            epochs=self.settings.epochs,
            min_count=0,
            sg=1,
            hs=1,
            negative=0,
            workers=1,
            seed=seed,
        )
        return np.stack([model.wv[str(node)] for node in range(n)]).astype(np.float64)
