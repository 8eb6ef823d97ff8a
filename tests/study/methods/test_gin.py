"""GIN-0 against its equation, node by node; the readout; what it can tell apart."""

from __future__ import annotations

import torch
from tests.reference.graphs import drawn_by_seed, features
from torch_geometric.data import Batch, Data

from demonet_study.methods.gin import GIN


def network(channels=3):
    torch.manual_seed(0)
    return GIN(hidden=6, layers=3)._build(channels, 4, [], graphs=True).double().eval()


def by_hand(model, x, edge_index):
    """``h' = relu(bn(W_2 relu(bn(W_1 (h_v + Σ_u h_u))) + b))`` layer by layer, the sum over the graph of each read."""
    scores = model.heads[0](x.sum(0))
    for lin, conv, head in zip(model.lins, model.convs, model.heads[1:], strict=True):
        total = x.clone()
        for source, target in edge_index.t().tolist():
            total[target] += x[source]
        inner, _, second, outer = conv.nn
        x = torch.relu(outer(second(torch.relu(inner(total @ lin.weight.T)))))
        scores = scores + head(x.sum(0))
    return scores


def test_against_the_equation():
    model = network()
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm1d):
                module.running_mean.normal_()
                module.running_var.uniform_(0.5, 2)
    edge_index, n = drawn_by_seed(12, 20, 4)
    x = features(n, 3, 0)
    batch = Batch.from_data_list([Data(x=x, edge_index=edge_index), Data(x=x[:2], edge_index=edge_index[:, :0])])
    found = model(batch.x, batch.edge_index, batch.batch, 2)
    torch.testing.assert_close(found[0], by_hand(model, x, edge_index))
    torch.testing.assert_close(found[1], by_hand(model, x[:2], edge_index[:, :0]))


def test_nodes_have_no_readout():
    model, (edge_index, n) = network(), drawn_by_seed(12, 20, 4)
    x = features(n, 3, 0)
    alone = model(x, edge_index).sum(0)
    together = model(x, edge_index, torch.zeros(n, dtype=torch.int64), 1)[0]
    biases = sum(head.bias for head in model.heads)
    torch.testing.assert_close(alone - (n - 1) * biases, together)
