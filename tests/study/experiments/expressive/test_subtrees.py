"""The list of small subtrees is complete and has nothing twice."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import torch
from torch_geometric.utils import degree

from demonet_study.experiments.expressive.subtrees import Subtree, all_subtrees, forest


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


def test_a_forest_is_undirected_and_sorted_by_target():
    trees = all_subtrees(4, 2)
    x, edge_index, seeds = forest(trees, 2)
    arcs = set(map(tuple, edge_index.t().tolist()))
    assert arcs == {(v, u) for u, v in arcs}
    assert len(arcs) == edge_index.size(1)
    assert (edge_index[1].diff() >= 0).all()
    assert degree(edge_index[1], len(x), torch.long)[seeds].tolist() == [tree.degree for tree in trees]
