"""The subtree kernel against GraKeL's, to the last integer."""

from __future__ import annotations

import grakel
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.kernels.graphs import drawn_graphs, lists_of

from demonet.kernels import WLSubtreeKernel

WITH_NODES = drawn_graphs(min_nodes=1)
STRANGERS = drawn_graphs(min_nodes=1, max_nodes=9, values=(0.0, 2.0))


def to_grakel(data):
    """Every node has an entry, isolated ones an empty one; a label is the whole row of ``x``."""
    arcs = {v: {} for v in range(data.num_nodes)}
    for u, v in data.edge_index.T.tolist():
        arcs[u][v] = 1.0
    return grakel.Graph(arcs, node_labels={v: tuple(row) for v, row in enumerate(data.x.tolist())})


def theirs(h, normalize=False):
    return grakel.WeisfeilerLehman(n_iter=h, normalize=normalize, base_graph_kernel=grakel.VertexHistogram)


@given(fitted=lists_of(WITH_NODES), others=lists_of(STRANGERS), h=st.integers(1, 4))
def test_random_graphs(fitted, others, h):
    ours, kernel = WLSubtreeKernel(n_iter=h), theirs(h)
    np.testing.assert_array_equal(ours.fit_transform(fitted), kernel.fit_transform(map(to_grakel, fitted)))
    np.testing.assert_array_equal(ours.transform(others), kernel.transform(map(to_grakel, others)))
