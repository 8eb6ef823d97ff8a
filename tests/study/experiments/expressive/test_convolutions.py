"""DCNN's layer is its equation; every scheme has the properties of Table 1."""

from __future__ import annotations

import pytest
import torch

from demonet.nn.weights import SCHEMES
from demonet_study.experiments.expressive.convolutions import DCNNConv, demo
from demonet_study.experiments.expressive.subtrees import all_subtrees, pair_shares, property_pairs


@pytest.mark.parametrize("first_hop", [0, 1])
def test_dcnn_is_powers_of_the_transition_matrix(first_hop):
    """z_vjf = w_jf (P^j X)_vf with P = D^-1 A; node 4 has no neighbour."""
    generator = torch.Generator().manual_seed(1)
    adjacency = torch.zeros(5, 5, dtype=torch.float64)
    for u, v in [(0, 1), (0, 2), (0, 3), (2, 3)]:
        adjacency[u, v] = adjacency[v, u] = 1
    x = torch.randn(5, 3, dtype=torch.float64, generator=generator)
    conv = DCNNConv(3, first_hop, 3).double()
    transition = adjacency / adjacency.sum(1, keepdim=True).clamp(min=1)
    expected = [
        conv.weight[j - first_hop] * (torch.linalg.matrix_power(transition, j) @ x) for j in range(first_hop, 4)
    ]
    torch.testing.assert_close(conv(x, adjacency.nonzero().t()), torch.cat(expected, 1))


@pytest.mark.parametrize("scheme", sorted(SCHEMES))
def test_a_layer_of_any_scheme_is_seed_oriented_degree_aware_and_order_free(scheme):
    """Pairs that should agree collide in every draw of the weights, others in none; hash functions may collide."""
    pairs = property_pairs(all_subtrees(3, 2))
    for one, share in zip(pairs, pair_shares(demo(scheme, 2), pairs, num_colours=2, draws=8), strict=True):
        if one.should_agree:
            assert (share == 1).all()
        elif scheme != "hash":
            assert (share == 0).all()
        else:
            assert (share < 1).all()
