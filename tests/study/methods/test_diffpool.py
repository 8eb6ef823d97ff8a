"""DIFFPOOL: its two losses and the pooled graph by hand, batches of unequal graphs, bad settings."""

import pytest
import torch
from tests.reference.graphs import from_arcs
from torch_geometric.data import Batch, Data

from demonet import DemonetError
from demonet.data.splits import thirds
from demonet.data.synthetic import small_graphs
from demonet_study.methods.diffpool import DiffPool, make_buckets, pool


def path(n):
    arcs, _ = from_arcs(n, [(i, i + 1) for i in range(n - 1)], undirected=True)
    return Data(edge_index=arcs, num_nodes=n, x=torch.randn(n, 3, generator=torch.Generator().manual_seed(n)))


def adjacency(graph):
    adj = torch.zeros(graph.num_nodes, graph.num_nodes)
    adj[graph.edge_index[1], graph.edge_index[0]] = 1
    return adj


def test_by_hand():
    """A path of three nodes, the first two surely in cluster 0, the last in 1: ``S Sᵀ`` is [[1 1 0] [1 1 0] [0 0 1]].

    A - S Sᵀ is -1 on the diagonal and 1 at two places between the last two nodes: the norm is √5, of 9 entries.
    """
    graph = Batch.from_data_list([path(3)])
    s = torch.tensor([[60.0, 0.0], [60.0, 0.0], [0.0, 60.0]])
    z = torch.tensor([[1.0], [2.0], [4.0]])
    x, adj, link, entropy = pool(z, s, make_buckets(graph.edge_index, graph.batch, 1))
    torch.testing.assert_close(x[0], torch.tensor([[3.0], [4.0]]))
    torch.testing.assert_close(adj[0], torch.tensor([[2.0, 1.0], [1.0, 0.0]]))
    assert float(link) == pytest.approx(5**0.5 / 9)
    assert float(entropy) == pytest.approx(0.0, abs=1e-6)


def test_the_losses_of_unequal_graphs_against_their_formulas():
    """Graphs of 2, 3, 5 and 9 nodes go into four buckets; the formulas know of none."""
    graphs = [path(n) for n in (3, 9, 2, 5)]
    batch = Batch.from_data_list(graphs)
    generator = torch.Generator().manual_seed(0)
    s, z = torch.randn(19, 4, generator=generator), torch.randn(19, 2, generator=generator)
    laid = make_buckets(batch.edge_index, batch.batch, 4)
    assert sorted(bucket.adj.size(1) for bucket in laid) == [2, 4, 8, 16]
    x, adj, link, entropy = pool(z, s, laid)
    square = 0.0
    for number, graph in enumerate(graphs):
        mine = batch.batch == number
        soft, a = s[mine].softmax(1), adjacency(graph)
        torch.testing.assert_close(x[number], soft.T @ z[mine])
        torch.testing.assert_close(adj[number], soft.T @ a @ soft)
        square += float((a - soft @ soft.T).square().sum())
    assert float(link) == pytest.approx(square**0.5 / (9 + 81 + 4 + 25), rel=1e-5)
    p = s.softmax(1)
    assert float(entropy) == pytest.approx(float(-(p * p.log()).sum(1).mean()), rel=1e-5)


def test_a_graph_has_the_same_scores_in_any_company():
    graphs = [path(n) for n in (3, 9, 2, 5)]
    method = DiffPool(clusters=2)
    torch.manual_seed(0)
    model = method._build(3, 2, graphs, graphs=True).eval()
    together = model(*method._inputs(Batch.from_data_list(graphs)))
    alone = torch.cat([model(*method._inputs(Batch.from_data_list([graph]))) for graph in graphs])
    torch.testing.assert_close(together, alone)


def test_both_losses_are_in_the_objective():
    graphs = small_graphs(15)
    method = DiffPool()
    batch = Batch.from_data_list([Data(x=torch.ones(g.num_nodes, 3), edge_index=g.edge_index) for g in graphs])
    model = method._build(3, 5, graphs, graphs=True)
    inputs = method._inputs(batch)
    model(*inputs)
    model.auxiliary_loss.backward()
    assert all(float(p.grad.abs().sum()) > 0 for p in model.assigned.parameters())
    assert model.head.weight.grad is None


def test_more_clusters_than_nodes():
    graphs = small_graphs(15, smallest=8, largest=12)
    y = torch.cat([graph.y for graph in graphs])
    with pytest.raises(DemonetError, match=r"clusters=13.* 12 nodes"):
        DiffPool(clusters=13).fit(graphs, thirds(y, 0, stratified=True))
