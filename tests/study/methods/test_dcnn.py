"""DCNN: diffused features against powers of the transition matrix, the layer against its equation."""

from __future__ import annotations

import pytest
import torch
from tests.reference.graphs import features, from_arcs
from torch_geometric.data import Data

from demonet_study.methods.dcnn import DCNN, DCNNetwork, diffused

ARCS, N = from_arcs(6, [(0, 1), (0, 2), (0, 3), (3, 4)], undirected=True)  # node 5 is isolated


@pytest.mark.parametrize("sparse", [False, True])
def test_powers_of_the_transition_matrix(sparse):
    x = features(N, 3, 0).float()
    adj = torch.zeros(N, N)
    adj[ARCS[1], ARCS[0]] = 1
    step = adj / adj.sum(1, keepdim=True).clamp(min=1)
    data = Data(x=x.to_sparse_csr() if sparse else x, edge_index=ARCS, num_nodes=N)
    torch.testing.assert_close(diffused(data, 2), torch.cat([x, step @ x, step @ step @ x], 1))
    assert diffused(data, 0).shape == (N, 3)


def test_by_hand():
    """A path of three with features 1, 2, 4: neighbours' means are 2, 2.5, 2, their means 2.5, 2, 2.5."""
    arcs, n = from_arcs(3, [(0, 1), (1, 2)], undirected=True)
    data = Data(x=torch.tensor([[1.0], [2.0], [4.0]]), edge_index=arcs, num_nodes=n)
    assert diffused(data, 2).tolist() == [[1.0, 2.0, 2.5], [2.0, 2.5, 2.0], [4.0, 2.0, 2.5]]
    mean = DCNN(hops=2)._preprocess([data], [data])[0].x
    torch.testing.assert_close(mean, torch.tensor([[7 / 3, 6.5 / 3, 7 / 3]]))


def test_the_layer():
    model = DCNNetwork(4, 2)
    z = torch.randn(3, 4)
    expected = torch.stack([torch.tanh(torch.stack([model.weight[i] * row[i] for i in range(4)])) for row in z])
    torch.testing.assert_close(model.embed(z), expected)
    torch.testing.assert_close(model(z), expected @ model.head.weight.T + model.head.bias)
