"""All 1,253 graphs of up to seven nodes: DEMO-Net separates what two rounds of WL separate."""

from __future__ import annotations

import networkx as nx
import pytest
import torch

from demonet.kernels import wl_classes
from demonet_study.experiments.expressive.atlas import Network, atlas, readout, separate

SCHEMES = ("weight", "hash", "smooth", "scale")
NETWORKS = [
    *(Network(scheme, aggr, True, "degree") for scheme in SCHEMES for aggr in ("sum", "mean")),
    *(Network(scheme, "mean", False, "degree") for scheme in SCHEMES),
    *(Network("gcn", "normalised", False, pooling) for pooling in ("degree", "mean")),
    Network("weight", "sum", True, "mean"),
]


@pytest.fixture(scope="module")
def table():
    rows = separate(NETWORKS, draws=1)
    return {(row.model, row.aggregation, row.degree_term, row.pooling): row for row in rows}


def test_the_atlas_is_whole():
    graphs = atlas()
    assert len(graphs) == 1253
    assert graphs[0].num_nodes == 0
    assert sum(data.edge_index.size(1) for data in graphs) == 2 * sum(g.size() for g in nx.graph_atlas_g())
    assert [len(set(wl_classes(graphs, rounds).tolist())) for rounds in (1, 2, 3)] == [494, 1157, 1223]


def test_two_layers_and_degree_pooling_are_two_rounds_of_wl(table):
    for scheme in SCHEMES:
        for aggregation in ("sum", "mean"):
            row = table[scheme, aggregation, True, "degree"]
            assert (row.fewest, row.as_wl2) == (1157, 1)


def test_with_mean_aggregation_the_degree_term_does_it(table):
    """Without it all that is left is what the pooling itself sees: the degree sequence, one round of WL."""
    for scheme in SCHEMES:
        row = table[scheme, "mean", False, "degree"]
        assert (row.fewest, row.as_wl1) == (494, 1)


def test_mean_pooling_loses_graphs_and_a_gcn_sees_one_round_more(table):
    """A GCN's normalisation reads the neighbours' degrees, which a layer of DEMO-Net learns one layer later."""
    assert table["gcn", "normalised", False, "mean"].fewest == 1120
    assert table["weight", "sum", True, "mean"].fewest == 1140
    assert table["gcn", "normalised", False, "degree"].as_wl3 == 1


def test_counts_are_far_from_the_tolerance(table):
    assert all(row.widest < 1e-14 and row.nearest > 1e-8 for row in table.values())


def test_readout_has_the_layers_of_eq_12_and_leaves_the_generator_alone():
    graphs = atlas()[:60]
    tasks = 1 + max(int(data.edge_index[1].bincount().max()) for data in graphs if data.edge_index.numel()) + 1
    before = torch.get_rng_state()
    vectors = readout(Network("weight", "sum", True, "degree"), graphs, seed=3)
    assert torch.equal(torch.get_rng_state(), before)
    assert vectors.shape == (60, tasks * (1 + 64 + 64))
    assert not vectors[0].any()
