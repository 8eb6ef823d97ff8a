import json
import math

import networkx as nx
import numpy as np
import pytest
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from torch_geometric.data import Data
from torch_geometric.utils import to_networkx

from demonet.data.rows import to_torch
from demonet.data.synthetic import cycle, power_law, role_graph, small_graphs
from demonet.features import FeatureMap, structure
from demonet.features.blocks import BLOCKS
from demonet.features.graph import adjacency

STAR = Data(edge_index=torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]]), num_nodes=5)  # node 4 is isolated


def counts(rows, columns, seed=0):
    generator = np.random.default_rng(seed)
    return sparse.csr_array(generator.integers(1, 5, (rows, columns)) * (generator.random((rows, columns)) < 0.2))


def with_counts(data, columns=30, as_sparse=True):
    data = data.clone()
    x = to_torch(counts(data.num_nodes, columns))
    data.x = x if as_sparse else x.to_dense()
    return data


def test_one_hot_has_the_distinct_degrees_and_one_more():
    # degrees of STAR: 3, 1, 1, 1, 0
    assert FeatureMap("degree-onehot").fit_transform(STAR).tolist() == [
        [0, 0, 1, 0],
        [0, 1, 0, 0],
        [0, 1, 0, 0],
        [0, 1, 0, 0],
        [1, 0, 0, 0],
    ]
    features = FeatureMap("degree-onehot").fit(STAR)
    assert features.transform(cycle(4)).tolist() == [[0, 0, 0, 1]] * 4, "a degree that training did not have"


@pytest.mark.parametrize("at_once", [1, 50, 1e7])
def test_closed_walks_in_blocks_are_twice_the_triangles(monkeypatch, at_once):
    monkeypatch.setattr(structure, "WALKS_AT_ONCE", at_once)
    graph = power_law(60, 300, hub=20, seed=0)
    expected = nx.triangles(to_networkx(graph, to_undirected=True))
    found = structure.closed_walks(adjacency(graph))
    assert found.tolist() == [2 * expected[node] for node in range(60)]


def test_radial_basis_is_the_formula():
    x = FeatureMap("degree-rbf").fit_transform(STAR)
    spacing = math.log(4) / 11
    for node, degree in enumerate([3, 1, 1, 1, 0]):
        for i in range(12):
            expected = math.exp(-0.5 * ((math.log(1 + degree) - i * spacing) / spacing) ** 2)
            assert x[node, i].item() == pytest.approx(expected, abs=1e-5)


def test_encoded_is_tfidf_for_counts_and_standardised_otherwise():
    data = with_counts(role_graph(0))
    assert torch.equal(
        FeatureMap("encoded").fit_transform(data).to_dense(), FeatureMap("tfidf").fit_transform(data).to_dense()
    )
    data.x = torch.eye(5)[data.y % 5]
    torch.testing.assert_close(FeatureMap("encoded").fit_transform(data), data.x)
    data.x = torch.randn(data.num_nodes, 2, generator=torch.Generator().manual_seed(0)) - 3
    fitted = FeatureMap("encoded").fit(data)
    assert torch.equal(fitted.transform(data), FeatureMap("standardised").fit_transform(data))
    data.x[0, 0] = 1e6
    assert fitted.transform(data)[0, 0] == 8, "limited"


def test_structure_is_the_radial_basis_and_eight_standardised_numbers():
    """A triangle 0, 1, 2 with a tail 2 - 3, and an isolated node 4."""
    edges = torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2]])
    data = Data(edge_index=edges, num_nodes=5)
    one, two, three = (math.log(1 + d) for d in (1, 2, 3))
    around = {0: [two, three], 1: [two, three], 2: [two, two, one], 3: [three], 4: [0.0]}
    mean = {v: np.mean(near) for v, near in around.items()}
    second = {0: mean[1] + mean[2], 1: mean[0] + mean[2], 2: mean[0] + mean[1] + mean[3], 3: mean[2], 4: 0.0}
    degree, triangles, closed = [2, 2, 3, 1, 0], [1, 1, 1, 0, 0], [1, 1, 1 / 3, 0, 0]
    by_hand = np.array(
        [
            [
                math.log(1 + degree[v]),
                mean[v],
                np.std(around[v]),
                min(around[v]),
                max(around[v]),
                second[v] / max(degree[v], 1),
                math.log(1 + triangles[v]),
                closed[v],
            ]
            for v in range(5)
        ]
    )
    expected = 0.3 * (by_hand - by_hand.mean(0)) / by_hand.std(0)
    found = FeatureMap("structure").fit_transform(data)
    np.testing.assert_allclose(found[:, 12:], expected, atol=1e-5)
    torch.testing.assert_close(found[:, :12], 0.3 * FeatureMap("degree-rbf").fit_transform(data))


def test_neighbour_degree_is_the_mean_of_logs_and_zero_for_the_isolated():
    x = FeatureMap("neighbour-degree").fit_transform(STAR)
    spacing = math.log(4) / 11
    for node, mean in enumerate([math.log(2), math.log(4), math.log(4), math.log(4)]):
        expected = [math.exp(-0.5 * ((mean - i * spacing) / spacing) ** 2) for i in range(12)]
        assert x[node].tolist() == pytest.approx(expected, abs=1e-5)
    assert not x[4].any()


def test_graphs_without_edges_have_features():
    lonely = Data(edge_index=torch.empty(2, 0, dtype=torch.int64), num_nodes=3)
    for spec in ("degree-onehot", "degree-rbf", "neighbour-degree", "adjacency", "constant"):
        assert torch.isfinite(FeatureMap(spec).fit_transform(lonely).to_dense()).all()


def test_adjacency_is_for_its_own_graph_alone(refuses):
    features = FeatureMap("adjacency").fit(cycle(4))
    x = features.transform(cycle(4))
    assert x.layout == torch.sparse_csr
    assert x.to_dense().tolist() == [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]]
    refuses(lambda: features.transform(cycle(5)), "'adjacency'", "4 nodes", "degree-rbf")
    moved = cycle(4)
    moved.edge_index = moved.edge_index[[0, 1]].clone()
    moved.edge_index[:, 0] = torch.tensor([0, 2])
    refuses(lambda: features.transform(moved), "'adjacency'", "4 nodes")
    refuses(lambda: FeatureMap("adjacency").fit(small_graphs(3)), "3 graphs")


@pytest.mark.parametrize("as_sparse", [True, False])
def test_tfidf_is_scikit_learns(as_sparse):
    data = with_counts(role_graph(), as_sparse=as_sparse)
    x = FeatureMap("tfidf").fit_transform(data)
    assert (x.layout == torch.sparse_csr) == as_sparse
    expected = TfidfTransformer().fit_transform(counts(data.num_nodes, 30)).toarray()
    np.testing.assert_allclose(x.to_dense(), expected, rtol=1e-5, atol=1e-7)
    other = FeatureMap("tfidf").fit(data).transform(with_counts(cycle(9)))
    expected = TfidfTransformer().fit(counts(data.num_nodes, 30)).transform(counts(9, 30)).toarray()
    np.testing.assert_allclose(other.to_dense(), expected, rtol=1e-5, atol=1e-7)


def test_neighbour_tfidf_is_half_the_scaled_mean():
    data = with_counts(role_graph())
    own = FeatureMap("tfidf").fit_transform(data).to_dense()
    x = FeatureMap("neighbour-tfidf").fit_transform(data).to_dense()
    for node in range(0, data.num_nodes, 17):
        neighbours = data.edge_index[0, data.edge_index[1] == node]
        mean = own[neighbours].mean(dim=0)
        torch.testing.assert_close(x[node], 0.5 * mean / mean.norm())


def test_row_normalised_rows_sum_to_one_or_zero():
    data = with_counts(role_graph())
    data.x = data.x.to_dense()
    data.x[3] = 0
    x = FeatureMap("row-normalised").fit_transform(data)
    sums = x.sum(dim=1)
    assert sums[3] == 0
    torch.testing.assert_close(sums[data.x.sum(dim=1) > 0], torch.ones(int((data.x.sum(dim=1) > 0).sum())))


def test_blocks_stand_side_by_side_in_order():
    data = with_counts(role_graph())
    names = ["degree-rbf", "tfidf", "constant", "neighbour-tfidf"]
    x = FeatureMap("+".join(names)).fit_transform(data)
    assert x.layout == torch.sparse_csr
    parts = [FeatureMap(name).fit_transform(data).to_dense() for name in names]
    torch.testing.assert_close(x.to_dense(), torch.cat(parts, dim=1))


@pytest.mark.parametrize("as_sparse", [False, True])
def test_standardised_columns_are_those_of_the_training_graph(as_sparse):
    x = np.array([[1.0, 5, 0], [3, 5, 0], [5, 5, -3], [7, 5, 0], [9, 5, 3]], dtype=np.float32)
    data = STAR.clone()
    data.x = to_torch(sparse.csr_array(x)) if as_sparse else torch.from_numpy(x)
    features = FeatureMap("standardised").fit(data)
    centre = np.zeros(3) if as_sparse else [5, 5, 0]  # zeros stay where they are in a sparse matrix
    expected = (x - centre) / [8**0.5, 1, (18 / 5) ** 0.5]  # the second column never changes
    np.testing.assert_allclose(features.transform(data).to_dense(), expected, atol=1e-6)
    pair = Data(x=torch.tensor([[5.0, 5, 0], [7, 5, 3]]), edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    np.testing.assert_allclose(features.transform(pair)[1], [2 / 8**0.5, 0, 3 / 3.6**0.5], atol=1e-6)


@pytest.mark.parametrize("spec", [*BLOCKS, "degree-rbf+tfidf+neighbour-tfidf"])
def test_state_goes_through_json_and_safetensors(spec):
    data = with_counts(role_graph())
    features = FeatureMap(spec).fit(data)
    info, arrays = features.state()
    stored = json.loads(json.dumps(info)), load_tensors(save_tensors(arrays))
    back = FeatureMap.from_state(*stored)
    assert back.num_features == features.num_features == features.transform(data).size(1)
    assert torch.equal(back.transform(data).to_dense(), features.transform(data).to_dense())
    assert features.transform(data).dtype == torch.float32


def test_a_list_of_graphs_is_fitted_together():
    graphs = small_graphs(20)
    features = FeatureMap("degree-onehot").fit(graphs)
    degrees = {d for g in graphs for d in torch.bincount(g.edge_index[1], minlength=g.num_nodes).tolist()}
    assert features.num_features == len(degrees) + 1
    assert all(not features.transform(graph)[:, -1].any() for graph in graphs)


def test_misuse_is_explained(refuses):
    refuses(lambda: FeatureMap("degree-onehot+magic"), "magic", "degree-rbf")
    refuses(lambda: FeatureMap("constant+constant"), "'constant'", "'constant+constant'")
    refuses(lambda: FeatureMap("constant").transform(STAR), "'constant'", "fit")
    refuses(lambda: FeatureMap("tfidf").fit(STAR), "attributes", "degree-rbf")
    refuses(lambda: FeatureMap("constant").fit([]), "graph")
    data = with_counts(role_graph(), as_sparse=False)
    features = FeatureMap("tfidf").fit(data)
    refuses(lambda: features.transform(with_counts(cycle(4), columns=7)), "7 attributes", "30")
    data.x = -data.x
    refuses(lambda: FeatureMap("tfidf").fit(data), "-4.0", "tf-idf")
