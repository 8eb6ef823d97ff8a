"""The protocol under which GCN was printed with few labels, and Kipf's PyTorch program."""

from __future__ import annotations

import torch
from torch_geometric.data import Data

from demonet_study.experiments.published import gcn
from demonet_study.experiments.published.gcn import PyGCN, neighbour_mean, partition, present, train

Y = torch.arange(300) % 3


def test_their_partition():
    rows, test = partition(Y, 5, seed=20, tested=100)
    assert torch.bincount(Y[rows]).tolist() == [5, 5, 5]
    assert test.numel() == 100
    assert not torch.isin(rows, test).any()
    assert not torch.equal(test, partition(Y, 5, seed=21, tested=100)[1])


def test_against_dense_matrices():
    edges = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    dense = torch.eye(4).index_put((edges[0], edges[1]), torch.tensor(1.0))
    dense /= dense.sum(1, keepdim=True)
    arcs = neighbour_mean(edges, 4)
    torch.testing.assert_close(arcs.matrix.to_dense(), dense)
    torch.manual_seed(0)
    model = PyGCN(3, 2).eval()
    x = torch.rand(4, 3)
    (w1, w2), (b1, b2) = model.weights, model.biases
    expected = dense @ torch.relu(dense @ x @ w1 + b1) @ w2 + b2
    torch.testing.assert_close(model(present_values(x), arcs), expected)


def present_values(x):
    from demonet.methods.layers import Product

    return Product.of(x.to_sparse_csr())


def test_two_groups_and_the_last_epoch(monkeypatch):
    """Two cliques, each with an attribute of its own: learned, differently after one epoch, the same for one seed."""
    n = 40
    member = torch.arange(n) // (n // 2)
    pairs = torch.cartesian_prod(torch.arange(n), torch.arange(n)).T
    edges = pairs[:, (member[pairs[0]] == member[pairs[1]]) & (pairs[0] != pairs[1])]
    data = Data(x=torch.eye(2)[member].to_sparse_csr(), edge_index=edges, y=member, num_nodes=n)
    monkeypatch.setattr(gcn, "load", lambda name: data)
    monkeypatch.setattr(gcn, "partition", lambda y, each, seed: (torch.tensor([0, n - 1]), torch.arange(1, n - 1)))
    assert gcn.their_way("made up", 1, 0) == 1.0
    arguments = (present(data.x), neighbour_mean(edges, n), member, torch.tensor([0, n - 1]), 3)
    once, again, short = train(*arguments), train(*arguments), train(*arguments, epochs=1)
    assert torch.equal(once, again)
    assert not torch.allclose(once, short)
