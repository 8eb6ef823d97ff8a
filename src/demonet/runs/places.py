"""Where things stand on the page: embeddings in two dimensions, and the drawing of a small graph."""

from __future__ import annotations

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE

MOST_SCATTERED = 2000  # t-SNE takes seconds up to here
FEWEST_SCATTERED = 20  # and has nothing to say of fewer
MOST_DRAWN = 300
COLUMNS = 30  # t-SNE looks at the first components only


def in_two_dimensions(embedding: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
    """``[items, 2]``: t-SNE of few items, the first two principal components of many. The same seed, the same places.

    >>> in_two_dimensions(np.ones((3, 4), np.float32), 0).tolist()
    [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    """
    rows = embedding.astype(np.float64)
    rows -= rows.mean(0)
    distinct = len(np.unique(embedding, axis=0)) if len(rows) <= MOST_SCATTERED else len(rows)
    if distinct < 2:
        return np.zeros((len(rows), 2), np.float32)
    count = min(COLUMNS, *rows.shape)
    components = PCA(count, svd_solver="covariance_eigh" if rows.shape[1] < len(rows) else "full").fit_transform(rows)
    if not FEWEST_SCATTERED <= distinct <= MOST_SCATTERED:
        wide = np.pad(components, ((0, 0), (0, max(0, 2 - count))))
        return wide[:, :2].astype(np.float32)
    perplexity = min(30.0, (len(rows) - 1) / 3)
    scattered = TSNE(2, init="pca" if count > 1 else "random", perplexity=perplexity, random_state=seed)
    return scattered.fit_transform(components).astype(np.float32)


def draw(edges: NDArray[np.int64], num_nodes: int, seed: int) -> NDArray[np.float32]:
    """``[nodes, 2]``: a spring layout, the same for the same seed."""
    graph = nx.Graph()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from(edges.T.tolist())
    places = nx.spring_layout(graph, seed=seed)
    return np.array([places[node] for node in range(num_nodes)], dtype=np.float32).reshape(num_nodes, 2)
