"""Simple baselines on attributes and on local structure: what they must get right, and what they must not use."""

import numpy as np
import pytest
import torch
from sklearn.svm import SVC
from tests.reference.graphs import drawn_by_seed
from torch_geometric.data import Data

from demonet import DemonetError, methods
from demonet.data.rows import to_scipy, to_torch
from demonet.data.splits import Split, thirds
from demonet.data.synthetic import role_graph
from demonet.methods.attributes import graph_attributes, kind_of, node_attributes
from demonet.methods.selection import select
from demonet.methods.simple import _DistinctSVC

ATTRIBUTES = ["attribute-lr", "attribute-neighbour-lr", "attribute-adjacency-lr"]


def neighbourly(seed=0, n=120):
    """Words of a node say little of its class; those of its neighbours, all of its class, say it all."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 3
    arcs = (
        torch.randint(0, n // 3, (2, 6 * n), generator=generator) * 3
        + y[torch.randint(0, n, (6 * n,), generator=generator)]
    )
    words = (torch.rand(n, 30, generator=generator) < 0.1 + 0.08 * (torch.arange(30) % 3 == y[:, None])).float()
    return Data(edge_index=torch.cat([arcs, arcs.flip(0)], 1).unique(dim=1), x=words, y=y, num_nodes=n)


def score(name, graph, seed=0):
    split = thirds(graph.y, seed, stratified=True)
    return methods.get(name)().fit(graph, split).score(split.test, graph.y)


def test_neighbours_help_where_they_must():
    own, neighbours, names = (np.mean([score(name, neighbourly(s), s) for s in range(3)]) for name in ATTRIBUTES)
    assert own > 0.4
    assert neighbours > 0.9 > own
    assert names > own


def test_neighbours_are_left_out_where_they_mislead():
    """Random edges and decisive words: the scale is selected on validation, and the accuracy stays high."""
    graph = neighbourly()
    graph.x = torch.nn.functional.one_hot(graph.y).float()
    graph.edge_index = drawn_by_seed(120, 600).edge_index
    split = thirds(graph.y, 0, stratified=True)
    found = methods.get("attribute-neighbour-lr")().fit(graph, split)
    assert found.scale == 0.0
    assert found.score(split.test, graph.y) == 1.0


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_sparse_and_dense_attributes_give_the_same(name):
    graph = neighbourly()
    sparse = Data(edge_index=graph.edge_index, x=to_torch(to_scipy(graph.x)), y=graph.y, num_nodes=120)
    split = thirds(graph.y, 0, stratified=True)
    assert torch.equal(*(methods.get(name)().fit(data, split).predict() for data in (graph, sparse)))


def test_what_is_not_a_count_is_scaled():
    x = torch.tensor([[-1.0, 5], [3, 5]])
    data = Data(x=x, edge_index=torch.empty(2, 0).long(), num_nodes=2)
    assert kind_of([data]) == "numbers"
    assert node_attributes(data).tolist() == [[-1, 0], [1, 0]]


def test_graphs_are_known_by_their_label_counts():
    """Graphs of 2 and 4 equal nodes differ in counts; with attributes that are no counts, in nothing."""
    graphs = [Data(x=torch.ones(n, 1), edge_index=torch.empty(2, 0).long(), num_nodes=n) for n in (2, 4)]
    assert graph_attributes(graphs).tolist() == [[-1], [1]]
    for graph in graphs:
        graph.x = graph.x / 2
    assert graph_attributes(graphs).tolist() == [[0], [0]]


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_without_attributes(name):
    graph = role_graph(0, motifs=8)
    with pytest.raises(DemonetError, match=r"attributes.*structural-lr"):
        methods.get(name)().fit(graph, thirds(graph.y, 0, stratified=True))


def test_weights_stand_for_equal_rows():
    """The machine on distinct rows with weights is the one on all rows."""
    generator = np.random.default_rng(0)
    x = generator.integers(0, 6, (200, 1)).astype(float)
    y = (x[:, 0] + generator.integers(-1, 2, 200) > 2).astype(int)
    everyone = SVC(C=3.0, gamma=0.7).fit(x, y).decision_function(np.arange(6.0)[:, None])
    weighted = _DistinctSVC(C=3.0, gamma=0.7).fit(x, y).decision_function(np.arange(6.0)[:, None])
    np.testing.assert_allclose(weighted, everyone, atol=2e-3)


@pytest.mark.parametrize("name", ["degree-svm", "structural-lr", "structural-rf", "attribute-lr"])
def test_one_class_and_no_validation(name):
    graph = neighbourly()
    split = Split("s", 0, range(80), [], range(80, 120))
    assert methods.get(name)().fit(graph, split).predict().shape == (120,)
    graph.y = torch.zeros(120, dtype=torch.long)
    assert methods.get(name)().fit(graph, split).predict().tolist() == [0] * 120


def test_nothing_to_choose_from():
    with pytest.raises(ValueError, match="model"):
        select([], np.zeros((3, 1)), torch.tensor([0, 1, 0]), Split("s", 0, [0, 1], [2], []), default=None)
