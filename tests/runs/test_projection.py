"""The picture of the embeddings on the page of a run, and its limits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from demonet import DEMONetGraphClassifier
from demonet.data.synthetic import small_graphs
from demonet.runs.run import MAX_TSNE, project


def blobs(count: int, width: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Items of 12 kinds, which no plane can keep apart."""
    kind = np.arange(count) % 12
    rows = np.eye(width)[kind] * 5 + np.random.default_rng(0).normal(scale=0.3, size=(count, width))
    return rows.astype(np.float32), kind


def kept(place: np.ndarray, kind: np.ndarray) -> float:
    """The share of items whose nearest other item in the picture is of the same kind."""
    nearest = NearestNeighbors(n_neighbors=2).fit(place).kneighbors(return_distance=False)[:, 0]
    return float((kind[nearest] == kind).mean())


@pytest.mark.parametrize("count", [400, 700])
def test_kinds_stay_apart_in_the_picture_of_many_items(count):
    """Above the limit of t-SNE, it was the plane of the first two principal components."""
    rows, kind = blobs(count)
    place = project(rows, 0, most=400)
    assert place.shape == (count, 2)
    assert kept(place, kind) > 0.98
    centred = rows - rows.mean(0)
    plane = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    assert kept(plane, kind) < 0.9


def test_more_items_than_a_sample_that_are_all_alike():
    assert not project(np.ones((MAX_TSNE + 1, 3), np.float32), 0).any()


def test_embeddings_of_graphs_have_at_most_256_columns():
    """By degree, the readout of graphs with hubs has thousands of columns."""
    graphs = list(small_graphs(20))
    fitted = DEMONetGraphClassifier(model="network", preset="paper", epochs=1).fit(graphs)
    whole = fitted.model_.head.in_features
    assert whole > 256
    rows = fitted.transform(graphs)
    assert rows.shape == (20, 256)
    np.testing.assert_allclose(fitted.transform(graphs[3:4]), rows[3:4], atol=1e-3)
    assert len(fitted.get_feature_names_out()) == 256
