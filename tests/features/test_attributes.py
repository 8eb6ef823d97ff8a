"""Words as attributes: counts, or weights that were made of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from torch_geometric.data import Data
from torch_geometric.transforms import NormalizeFeatures

from demonet.closedform.nodes import NodeInputs
from demonet.data import read_graph
from demonet.data.rows import to_scipy, to_torch
from demonet.features import FeatureMap
from demonet.features.attributes import document_weights, matrix_kind, term_rows
from demonet.features.views import NodeView
from demonet.methods.attributes import node_attributes

NODES, WORDS = 60, 50


def texts(seed: int = 0, most: int = 1) -> np.ndarray:
    """Every text has some words, and every word is in some text."""
    rng = np.random.default_rng(seed)
    counts = (rng.random((NODES, WORDS)) < 0.1) * rng.integers(1, most + 1, size=(NODES, WORDS))
    counts[np.arange(NODES), np.arange(NODES) % WORDS] = 1
    return counts.astype(np.float64)


def graph(x: np.ndarray, *, stored_sparse: bool = False) -> Data:
    ring = torch.arange(len(x))
    edges = torch.stack([ring, ring.roll(1)])
    x = to_torch(sparse.csr_array(x)) if stored_sparse else torch.from_numpy(x).float()
    return Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], 1), num_nodes=len(ring))


def weighted(counts: np.ndarray, how: str) -> np.ndarray:
    if how == "sums":
        return counts / counts.sum(1, keepdims=True)
    return TfidfTransformer().fit_transform(counts).toarray()


@pytest.mark.parametrize("stored_sparse", [False, True])
@pytest.mark.parametrize("how", ["sums", "tf-idf"])
def test_weighted_words_are_recognised(how, stored_sparse):
    assert matrix_kind([graph(texts(), stored_sparse=stored_sparse)]) == "counts"
    assert matrix_kind([graph(weighted(texts(most=3), how), stored_sparse=stored_sparse)]) == "weights"


def test_words_in_a_table_are_recognised():
    """A table of numbers has a kind for each column; together they are words all the same."""
    edges = [(node, (node + 1) % NODES) for node in range(NODES)]
    table = pd.DataFrame(weighted(texts(), "sums"), columns=[f"word {i}" for i in range(WORDS)])
    assert matrix_kind([read_graph(edges, features=table)]) == "weights"
    assert matrix_kind([read_graph(edges, features=table.assign(place=["north", "south"] * 30))]) == "numbers"
    whole = pd.DataFrame({"age": range(NODES), "size": range(10, NODES + 10)})
    assert matrix_kind([read_graph(edges, features=whole)]) == "numbers"


def test_what_is_no_text_is_numbers():
    words = weighted(texts(), "sums")
    few = words[:, :8]
    scales = words * np.geomspace(1, 1e6, WORDS)  # amounts in one column, shares in another
    full = np.abs(np.random.default_rng(0).normal(size=(NODES, WORDS)))
    missing = words.copy()
    missing[0, 0] = np.nan
    for x in (few, scales, full, -words, missing):
        assert matrix_kind([graph(x)]) == "numbers"
    assert matrix_kind([graph(words), graph(full)]) == "numbers"


def test_rows_divided_by_their_sum_are_the_same_attributes():
    """tf-idf of words that occur or not does not depend on the length of a text: PyG's NormalizeFeatures is undone."""
    counts = graph(texts())
    shares = NormalizeFeatures()(graph(texts()))
    readers = (
        node_attributes,
        lambda data: NodeView(data).own,
        lambda data: NodeInputs().fit(data).transform(data).own,
    )
    for rows in readers:
        first, second = (sparse.csr_array(rows(data)).toarray() for data in (counts, shares))
        np.testing.assert_allclose(first, second, atol=1e-6)
    encoded = [FeatureMap("encoded").fit_transform(data) for data in (counts, shares)]
    torch.testing.assert_close(*encoded)


def test_tf_idf_is_not_weighted_again():
    given = weighted(texts(most=3), "tf-idf")
    data = graph(given)
    assert (document_weights(given, "weights") == 1).all()
    np.testing.assert_allclose(node_attributes(data).toarray(), given, atol=1e-6)
    np.testing.assert_allclose(NodeView(data).own.toarray(), given, atol=1e-6)
    np.testing.assert_allclose(to_scipy(FeatureMap("encoded").fit_transform(data)).toarray(), given, atol=1e-6)


def test_by_hand():
    """Two texts, two words, one of them in both: (1 + log c) (log(3 / (1 + n)) + 1), then length one."""
    rows = np.array([[1.0, 2.0], [1.0, 0.0]])
    weights = document_weights(rows, "counts")
    np.testing.assert_allclose(weights, [1.0, np.log(3 / 2) + 1])
    first = np.array([1.0, (1 + np.log(2)) * weights[1]])
    expected = [first / np.linalg.norm(first), [1.0, 0.0]]
    np.testing.assert_allclose(term_rows(rows, weights, "counts").toarray(), expected)
    assert rows.tolist() == [[1, 2], [1, 0]]  # the caller's rows stay as they are


def test_an_empty_text_stays_empty():
    counts = texts()
    counts[3] = 0
    for x in (counts, weighted(counts, "tf-idf")):
        assert NodeView(graph(x)).own.toarray()[3].tolist() == [0] * WORDS
