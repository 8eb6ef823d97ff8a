"""The GCN of Kipf and Welling against its equation, and on an easy problem."""

import pytest
import torch
from tests.reference.graphs import drawn_by_seed, features

from demonet.degree.keep import Memo
from demonet.methods.convolutional import GCN
from demonet.methods.layers import Product, gcn_product


def normalised(edge_index, n):
    """D^-1/2 (A + I) D^-1/2, entry by entry."""
    matrix = torch.eye(n, dtype=torch.float64)
    for source, target in edge_index.t().tolist():
        matrix[target, source] += 1
    degree = matrix.sum(1)
    return torch.diag(degree**-0.5) @ matrix @ torch.diag(degree**-0.5)


def dense(network, x, edge_index):
    """relu(Â X W1 + b1), then Â H W2 + b2."""
    a = normalised(edge_index, x.size(0))
    h = torch.relu(a @ x @ network.first.lin.weight.T + network.first.bias)
    return a @ h @ network.second.lin.weight.T + network.second.bias


@pytest.fixture
def graph():
    edge_index, n = drawn_by_seed(12, 20, 4)
    simple = edge_index[:, edge_index[0] != edge_index[1]].unique(dim=1)
    return simple, n


def test_nodes_against_the_equation(graph):
    edge_index, n = graph
    network = GCN()._build(3, 4, [], graphs=False).double().eval()
    for bias in (network.first.bias, network.second.bias):
        torch.nn.init.normal_(bias)
    x = features(n, 3, 0)
    arcs = gcn_product(edge_index, n, torch.float64)
    torch.testing.assert_close(network(x, arcs), dense(network, x, edge_index))
    torch.testing.assert_close(network(Product(x.to_sparse_csr(), Memo()), arcs), dense(network, x, edge_index))


def test_graphs_against_the_equation(graph):
    edge_index, n = graph
    network = GCN()._build(3, 4, [], graphs=True).double().eval()
    x, two = features(n, 3, 0), features(2, 3, 1)
    alone = torch.relu(dense(network, x, edge_index)).mean(0)
    empty = torch.relu(dense(network, two, edge_index[:, :0])).mean(0)
    batch = torch.tensor([0] * n + [1] * 2)
    found = network(torch.cat([x, two]), gcn_product(edge_index, n + 2, torch.float64), batch, 2)
    torch.testing.assert_close(found, network.head(torch.stack([alone, empty])))
