"""All 1,253 graphs of up to seven nodes: DEMO-Net separates what two rounds of WL separate."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import torch

from demonet.kernels import wl_classes
from demonet.nn.weights import SCHEMES as EVERY_SCHEME
from demonet_study.experiments.expressive.atlas import Network, atlas, separate
from demonet_study.experiments.expressive.convolutions import DCNNConv, alike, classes, demo, same_partition
from demonet_study.experiments.expressive.reals import KINDS, multisets, real_collisions
from demonet_study.experiments.expressive.subtrees import Subtree, all_subtrees, forest, pair_shares, property_pairs

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


@pytest.mark.parametrize("scheme", sorted(EVERY_SCHEME))
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


def test_rows_nearer_than_a_billionth_of_the_largest_entry_are_one_class():
    rows = np.array([[1.0, 1000.0], [1.0 + 0.9e-6, 1000.0], [1.0 + 2e-6, 1000.0], [1.0, 1000.0]])
    label, widest, nearest = classes(rows)
    assert label[0] == label[1] == label[3] != label[2]
    assert widest == pytest.approx(0.9e-9, rel=1e-4)
    assert nearest == pytest.approx(1.1e-9, rel=1e-4)
    np.testing.assert_array_equal(alike(rows, np.array([0, 0, 1]), np.array([1, 2, 3])), [True, False, True])


def test_partitions_are_equal_up_to_the_names_of_classes():
    one = np.array([0, 0, 1, 2])
    assert same_partition(one, np.array([5, 5, 9, 1]))
    assert not same_partition(one, np.array([0, 1, 1, 2]))  # as many classes, but others
    assert not same_partition(one, np.array([0, 0, 1, 1]))  # a coarser one


AND_SHARED = ("weight", "hash", "smooth", "shared")


@pytest.fixture(scope="module")
def rows():
    return real_collisions(draws=20)


def share(rows, scheme, left, right, aggregation="sum"):
    (row,) = [r for r in rows if (r.scheme, r.aggregation, r.left, r.right) == (scheme, aggregation, left, right)]
    return row.share


@pytest.mark.parametrize(("aggregation", "left", "right"), [("sum", "{2}", "{1, 1}"), ("mean", "{1}", "{1, 1}")])
def test_the_degree_rescues_equal_sums_that_are_not_zero(rows, aggregation, left, right):
    assert [share(rows, scheme, left, right, aggregation) for scheme in AND_SHARED] == [0, 0, 0, 1]


@pytest.mark.parametrize("aggregation", ["sum", "mean"])
@pytest.mark.parametrize("scheme", AND_SHARED)
def test_the_law_holds_for_every_pair(rows, scheme, aggregation):
    """In every draw: equal aggregates and (equal degrees or zero); the shared matrix alone adds unequal degrees."""
    lines = {r.kind: r for r in rows if (r.scheme, r.aggregation, r.left) == (scheme, aggregation, "any")}
    assert set(lines) == set(KINDS)
    collide = {"both zero", "same degree"} | ({"other degree"} if scheme == "shared" else set())
    for name, line in lines.items():
        assert line.pairs > 0
        assert line.always == (line.pairs if name in collide else 0)
    count = len(multisets())
    assert sum(line.pairs for line in lines.values()) == count * (count - 1) // 2


def rooted(tree):
    graph = nx.empty_graph(len(tree.colours))
    graph.add_edges_from(tree.edges)
    for node, colour in enumerate(tree.colours):
        graph.nodes[node]["kind"] = (colour, node == 0)
    return graph


def test_as_many_as_counted_by_hand():
    """Two colours: 2 single nodes, 4 edges, 8 paths from an end, 2 × 3 from the middle, 2 × 3 triangles."""
    assert [len(all_subtrees(n, 2)) for n in (1, 2, 3)] == [2, 6, 26]
    assert len(all_subtrees(3, 3)) == 3 + 9 + 27 + 3 * 6 + 3 * 6


def test_no_two_are_isomorphic():
    same = nx.algorithms.isomorphism.categorical_node_match("kind", None)
    trees = all_subtrees(4, 2)
    by_size = [(a, b) for a, b in combinations(map(rooted, trees), 2) if a.size() == b.size() and len(a) == len(b)]
    assert by_size
    assert not any(nx.is_isomorphic(a, b, node_match=same) for a, b in by_size)


def test_a_forest_has_every_subtree_with_its_neighbours_in_order():
    star = Subtree.of((0, 1, 2), ((0, 1), (0, 2)))
    turned = star.reordered()
    assert [tree.order for tree in turned] == [(2, 1)]
    x, edge_index, seeds = forest([star, *turned], 3)
    assert x.argmax(1).tolist() == [0, 1, 2, 0, 1, 2]
    assert seeds.tolist() == [0, 3]
    assert edge_index.tolist() == [[1, 2, 0, 0, 5, 4, 3, 3], [0, 0, 1, 2, 3, 3, 4, 5]]
