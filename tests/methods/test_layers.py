"""Layers that multiply before they sum, against PyTorch Geometric's, which sum first."""

import pytest
import torch
from tests.reference.graphs import drawn_by_seed, features
from torch_geometric.nn import ChebConv, GCNConv, SAGEConv

from demonet.degree.keep import Memo
from demonet.methods.layers import LinearFirstCheb, LinearFirstSAGE, Product, ProductGCN, dropout, gcn_product


@pytest.fixture
def graph():
    """With an isolated node at the end."""
    edge_index, n = drawn_by_seed(12, 20, 4)
    arcs = edge_index[:, edge_index[0] != edge_index[1]].unique(dim=1)
    return torch.cat([arcs, arcs.flip(0)], 1).unique(dim=1), n + 1


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_gcn(graph, layout, directed):
    """Values and gradients, of a matrix that is its own transpose and of one that is not."""
    edge_index, n = graph
    edge_index = edge_index[:, edge_index[0] < edge_index[1]] if directed else edge_index
    ours, theirs = ProductGCN(5, 3).double(), GCNConv(5, 3).double()
    torch.nn.init.normal_(ours.bias)
    theirs.load_state_dict(ours.state_dict())
    x = features(n, 5, 0)
    given = x.requires_grad_() if layout == "dense" else Product(x.to_sparse_csr(), Memo())
    found, expected = ours(given, gcn_product(edge_index, n, torch.float64)), theirs(x, edge_index)
    torch.testing.assert_close(found, expected)
    weight = torch.randn(n, 3, dtype=torch.float64)
    (found * weight).sum().backward()
    by_x = x.grad
    x.grad = None
    (expected * weight).sum().backward()
    torch.testing.assert_close(ours.lin.weight.grad, theirs.lin.weight.grad)
    if layout == "dense":
        torch.testing.assert_close(by_x, x.grad)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_sage(graph, layout):
    edge_index, n = graph
    ours, theirs = LinearFirstSAGE(5, 3).double(), SAGEConv(5, 3).double()
    torch.nn.init.normal_(ours.bias)
    theirs.load_state_dict(
        {"lin_l.weight": ours.lin_l.weight, "lin_r.weight": ours.lin_r.weight, "lin_l.bias": ours.bias}
    )
    x = features(n, 5, 0)
    given = x if layout == "dense" else x.to_sparse_csr()
    torch.testing.assert_close(ours(given, edge_index), theirs(x, edge_index))


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("terms", [1, 2, 3, 4, 6])
def test_cheb(graph, layout, terms):
    edge_index, n = graph
    ours, theirs = LinearFirstCheb(5, 3, terms).double(), ChebConv(5, 3, terms).double()
    torch.nn.init.normal_(ours.bias)
    theirs.load_state_dict(ours.state_dict())
    x = features(n, 5, 0)
    given = x if layout == "dense" else x.to_sparse_csr()
    torch.testing.assert_close(ours(given, edge_index), theirs(x, edge_index))


@pytest.mark.parametrize("kind", [lambda rows: rows, lambda rows: Product(rows, Memo())])
def test_dropout_of_sparse_rows(kind):
    """Entries that stay are scaled so that the mean stays; zeros remain zeros; nothing happens when not training."""

    def given(rows):
        return rows @ torch.eye(100) if isinstance(rows, Product) else rows.to_dense()

    x = torch.bernoulli(torch.full((100, 100), 0.2), generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    found = given(dropout(kind(x.to_sparse_csr()), 0.75, True))
    assert set(found.unique().tolist()) == {0.0, 4.0}
    assert bool((found[x == 0] == 0).all())
    assert float(found.sum()) == pytest.approx(float(x.sum()), rel=0.15)
    assert torch.equal(given(dropout(kind(x.to_sparse_csr()), 0.75, False)), x)
