"""One-hot degrees of a large graph: sparse rows and sparse sums over neighbours give what dense ones give."""

import pytest
import torch
from tests.reference.layers import PAPER

from demonet import DegreeLayout, DegreeTasks, DEMONetClassifier, NodeDEMONet
from demonet.data.rows import to_scipy
from demonet.data.synthetic import power_law
from demonet.degree.count import count_degree
from demonet.features import FeatureMap
from demonet.features import blocks as feature_blocks
from demonet.ops import sparse as sparse_ops
from demonet.ops.backend import is_sparse
from demonet.ops.sparse import sparse_aggregate

GRAPH = power_law(400, 1200, hub=60, seed=1)
DEGREE = count_degree(GRAPH.edge_index, 400)


@pytest.fixture
def large(monkeypatch):
    """Every graph counts as large."""
    monkeypatch.setattr(feature_blocks, "LARGE", 0)
    monkeypatch.setattr(feature_blocks, "DENSE_ENTRIES", 0)
    monkeypatch.setattr(sparse_ops, "SPARSE_ROWS", 0)
    monkeypatch.setattr(sparse_ops, "DENSE_ENTRIES", 0)


def test_one_hot_degrees_are_sparse_on_a_large_graph_alone(large, monkeypatch):
    features = FeatureMap("degree-onehot").fit(GRAPH)
    rows = features.transform(GRAPH)
    assert is_sparse(rows)
    assert rows.values().numel() == 400
    monkeypatch.setattr(feature_blocks, "LARGE", 401)
    dense = features.transform(GRAPH)
    assert not is_sparse(dense)
    assert torch.equal(rows.to_dense(), dense)


def test_dense_columns_beside_one_hot_degrees_keep_their_values(large, monkeypatch):
    features = FeatureMap("degree-rbf+degree-onehot").fit(GRAPH)
    rows = features.transform(GRAPH)
    assert is_sparse(rows)
    monkeypatch.setattr(feature_blocks, "LARGE", 401)
    assert torch.equal(rows.to_dense(), features.transform(GRAPH))


@pytest.mark.parametrize("shape", [(5, 3), (4, 0), (0, 3)])
@pytest.mark.parametrize("kept", [0.2, 1.0])
def test_dense_rows_as_a_sparse_array(shape, kept):
    x = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    x = torch.where(x < kept, x, 0.0)
    found = to_scipy(x)
    assert found.shape == shape
    assert torch.equal(torch.from_numpy(found.toarray()), x)


@pytest.mark.parametrize("aggr", ["sum", "mean", "sqrt"])
def test_their_sums_are_a_histogram_of_the_neighbours_degrees(large, aggr):
    layout = DegreeLayout.from_edge_index(GRAPH.edge_index, 400)
    x = FeatureMap("degree-onehot").fit_transform(GRAPH)
    found = sparse_aggregate(sparse_ops.sparse_rows(x, layout.order), layout.sorted(), None, aggr=aggr)
    assert is_sparse(found)
    assert found.values().numel() <= GRAPH.edge_index.size(1)
    source, target = GRAPH.edge_index
    expected = torch.zeros(400, x.size(1)).index_add_(0, target, x.to_dense()[source])
    scale = {"sum": torch.ones(400), "mean": 1 / DEGREE.clamp(min=1), "sqrt": DEGREE.clamp(min=1) ** -0.5}[aggr]
    assert torch.allclose(layout.leave(found.to_dense()), expected * scale[:, None], atol=1e-6)
    if aggr == "sum":
        assert torch.equal(layout.leave(found.to_dense()), expected)  # whole numbers: exact


@pytest.mark.parametrize("scheme", ["weight", "hash", "smooth"])
@pytest.mark.parametrize("kind", ["exact", "log2", "unseen"])
def test_scores_and_gradients_are_those_of_dense_features(large, monkeypatch, scheme, kind):
    tasks = {
        "exact": DegreeTasks.exact(DEGREE),
        "log2": DegreeTasks.log2(int(DEGREE.max())),
        "unseen": DegreeTasks.exact(DEGREE[DEGREE < 5]),
    }[kind]
    x = FeatureMap("degree-onehot").fit_transform(GRAPH)
    torch.manual_seed(0)
    model = NodeDEMONet(x.size(1), 3, tasks, PAPER, scheme=scheme, hidden=8, hash_size=8, dropout=0.0)
    found = {}
    for name in ("sparse", "dense"):
        if name == "dense":
            monkeypatch.setattr(sparse_ops, "SPARSE_ROWS", 401)
        prepared = model.prepare(x if name == "sparse" else x.to_dense(), GRAPH.edge_index)
        sums_are_sparse = name == "sparse" and scheme != "hash"  # hashing makes them narrow
        assert is_sparse(prepared.neighbourhood) == sums_are_sparse
        model.zero_grad()
        scores = model(prepared)
        scores.square().sum().backward()
        found[name] = (scores.detach(), [parameter.grad.clone() for parameter in model.parameters()])
    assert torch.allclose(found["sparse"][0], found["dense"][0], atol=1e-4, rtol=1e-4)
    for one, other in zip(found["sparse"][1], found["dense"][1], strict=True):
        assert torch.allclose(one, other, atol=1e-3 * float(other.abs().max().clamp(min=1e-3)))


def test_an_explanation_of_a_large_graph(large):
    data = GRAPH.clone()
    data.y = (DEGREE > 5).long()
    classifier = DEMONetClassifier(model="network", preset="default", epochs=2).fit(data)
    found = classifier.explain(0)
    parts = found.network
    total = parts.rest + parts.seed + parts.shared + parts.own + parts.interaction
    assert parts.score == pytest.approx(total, abs=1e-4)
