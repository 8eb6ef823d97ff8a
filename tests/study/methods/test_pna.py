"""PNA: what its scalers know of degrees, and one layer against the equation."""

from __future__ import annotations

import torch
from tests.reference.graphs import from_arcs
from torch_geometric.data import Data

from demonet_study.methods.pna import PNA

ARCS, N = from_arcs(5, [(0, 1), (0, 2), (0, 3), (3, 4)], undirected=True)


def network():
    torch.manual_seed(0)
    seen = [Data(edge_index=ARCS, num_nodes=N), Data(edge_index=ARCS[:, :0], num_nodes=2)]
    return PNA(hidden=4, towers=1, layers=1)._build(3, 2, seen, graphs=False).double().eval()


def test_the_mean_log_degree_is_that_of_all_training_graphs():
    """Degrees 3 1 1 2 1 and 0 0."""
    expected = torch.tensor([3.0, 1, 1, 2, 1, 0, 0]).add(1).log().mean()
    torch.testing.assert_close(network().convs[0].aggr_module.avg_deg_log.float(), expected[None], rtol=1e-6, atol=0)


def test_a_layer_against_the_equation():
    """[1, S(d), 1 / S(d)] x [mean, max, min, std] of ``M(h_v, h_u)`` over neighbours, S(d) = log(d + 1) / δ."""
    model = network()
    conv = model.convs[0]
    h = torch.randn(N, 4, dtype=torch.float64)
    delta = conv.aggr_module.avg_deg_log
    rows = []
    for v in range(N):
        near = ARCS[0][ARCS[1] == v]
        pairs = torch.cat([h[v].expand(len(near), -1), h[near]], 1)
        m = conv.pre_nns[0](pairs)
        # The layer takes the root of the variance with a floor of 1e-5 under it, and 0 for less.
        variance = (m.square().mean(0) - m.mean(0).square()).clamp(min=1e-5)
        std = variance.sqrt().masked_fill(variance.sqrt() <= 1e-5**0.5, 0.0)
        four = torch.cat([m.mean(0), m.max(0).values, m.min(0).values, std])
        scale = torch.log(torch.tensor(len(near) + 1.0, dtype=torch.float64)) / delta
        rows.append(torch.cat([h[v], four, four * scale, four / scale]))
    expected = conv.lin(conv.post_nns[0](torch.stack(rows)))
    torch.testing.assert_close(conv(h, ARCS), expected)
