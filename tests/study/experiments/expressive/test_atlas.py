"""All 1,253 graphs of up to seven nodes: DEMO-Net separates what two rounds of WL separate."""

from __future__ import annotations

import csv

import networkx as nx
import pytest
import torch

from demonet.errors import DemonetError
from demonet.kernels import wl_classes
from demonet_study.experiments.expressive.atlas import NETWORKS, Network, atlas, main, readout, separate
from demonet_study.experiments.rows import write_rows


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("atlas")
    main(["--out", str(folder), "--draws", "1"])
    with (folder / "atlas.csv").open() as file:
        rows = list(csv.DictReader(file))
    return {(row["model"], row["aggregation"], row["degree_term"], row["pooling"]): row for row in rows}


def test_the_atlas_is_whole():
    graphs = atlas()
    assert len(graphs) == 1253
    assert graphs[0].num_nodes == 0
    assert sum(data.edge_index.size(1) for data in graphs) == 2 * sum(g.size() for g in nx.graph_atlas_g())
    assert [len(set(wl_classes(graphs, rounds).tolist())) for rounds in (1, 2, 3)] == [494, 1157, 1223]


@pytest.mark.parametrize("aggregation", ["sum", "mean"])
@pytest.mark.parametrize("scheme", ["weight", "hash", "smooth"])
def test_two_layers_and_degree_pooling_are_two_rounds_of_wl(table, scheme, aggregation):
    row = table[scheme, aggregation, "yes", "degree"]
    assert (row["fewest"], row["as_wl2"]) == ("1157", "1")


@pytest.mark.parametrize("scheme", ["weight", "hash", "smooth"])
def test_with_mean_aggregation_the_degree_term_does_it(table, scheme):
    """Without it all that is left is what the pooling itself sees: the degree sequence, one round of WL."""
    row = table[scheme, "mean", "no", "degree"]
    assert (row["fewest"], row["as_wl1"]) == ("494", "1")


def test_sum_aggregation_needs_no_degree_term(table):
    assert table["weight", "sum", "no", "degree"]["as_wl2"] == "1"


def test_mean_pooling_loses_graphs(table):
    assert table["gcn", "normalised", "no", "mean"]["fewest"] == "1120"
    assert table["weight", "sum", "yes", "mean"]["fewest"] == "1140"


def test_a_gcn_with_degree_pooling_sees_one_round_more(table):
    """Its normalisation reads the neighbours' degrees, which a layer of DEMO-Net learns one layer later."""
    assert table["gcn", "normalised", "no", "degree"]["as_wl3"] == "1"


def test_counts_are_far_from_the_tolerance(table):
    assert len(table) == len(NETWORKS)
    for row in table.values():
        assert float(row["widest"]) < 1e-14
        assert float(row["nearest"]) > 1e-8


def test_readout_has_the_layers_of_eq_12_and_leaves_the_generator_alone():
    graphs = atlas()[:60]
    tasks = 1 + max(int(data.edge_index[1].bincount().max()) for data in graphs if data.edge_index.numel()) + 1
    before = torch.get_rng_state()
    vectors = readout(Network("weight", "sum", True, "degree"), graphs, seed=3)
    assert torch.equal(torch.get_rng_state(), before)
    assert vectors.shape == (60, tasks * (1 + 64 + 64))
    assert not vectors[0].any()


def test_no_draw_and_no_row_are_errors(tmp_path):
    with pytest.raises(DemonetError, match="draws=0"):
        separate(draws=0)
    with pytest.raises(DemonetError, match=r"empty\.csv: "):
        write_rows([], tmp_path / "empty.csv")
