"""DCNN, GIN-0 and PNA against their equations, node by node."""

import pytest
import torch
from tests.reference.graphs import drawn_by_seed, features, from_arcs
from torch_geometric.data import Batch, Data

from demonet_study.methods.dcnn import DCNN, DCNNetwork, diffused
from demonet_study.methods.gin import GIN
from demonet_study.methods.pna import PNA

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


def gin(channels=3):
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
    model = gin()
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
    model, (edge_index, n) = gin(), drawn_by_seed(12, 20, 4)
    x = features(n, 3, 0)
    alone = model(x, edge_index).sum(0)
    together = model(x, edge_index, torch.zeros(n, dtype=torch.int64), 1)[0]
    biases = sum(head.bias for head in model.heads)
    torch.testing.assert_close(alone - (n - 1) * biases, together)


PNA_ARCS, PNA_N = from_arcs(5, [(0, 1), (0, 2), (0, 3), (3, 4)], undirected=True)


def pna():
    torch.manual_seed(0)
    seen = [Data(edge_index=PNA_ARCS, num_nodes=PNA_N), Data(edge_index=PNA_ARCS[:, :0], num_nodes=2)]
    return PNA(hidden=4, towers=1, layers=1)._build(3, 2, seen, graphs=False).double().eval()


def test_the_mean_log_degree_is_that_of_all_training_graphs():
    """Degrees 3 1 1 2 1 and 0 0."""
    expected = torch.tensor([3.0, 1, 1, 2, 1, 0, 0]).add(1).log().mean()
    torch.testing.assert_close(pna().convs[0].aggr_module.avg_deg_log.float(), expected[None], rtol=1e-6, atol=0)


def test_a_layer_against_the_equation():
    """[1, S(d), 1 / S(d)] x [mean, max, min, std] of ``M(h_v, h_u)`` over neighbours, S(d) = log(d + 1) / δ."""
    model = pna()
    conv = model.convs[0]
    h = torch.randn(PNA_N, 4, dtype=torch.float64)
    delta = conv.aggr_module.avg_deg_log
    rows = []
    for v in range(PNA_N):
        near = PNA_ARCS[0][PNA_ARCS[1] == v]
        pairs = torch.cat([h[v].expand(len(near), -1), h[near]], 1)
        m = conv.pre_nns[0](pairs)
        # The layer takes the root of the variance with a floor of 1e-5 under it, and 0 for less.
        variance = (m.square().mean(0) - m.mean(0).square()).clamp(min=1e-5)
        std = variance.sqrt().masked_fill(variance.sqrt() <= 1e-5**0.5, 0.0)
        four = torch.cat([m.mean(0), m.max(0).values, m.min(0).values, std])
        scale = torch.log(torch.tensor(len(near) + 1.0, dtype=torch.float64)) / delta
        rows.append(torch.cat([h[v], four, four * scale, four / scale]))
    expected = conv.lin(conv.post_nns[0](torch.stack(rows)))
    torch.testing.assert_close(conv(h, PNA_ARCS), expected)
