"""Local structural features against NetworkX and by hand."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given
from tests.reference.graphs import drawn_by_seed, graphs
from torch_geometric.data import Data

from demonet.baselines import structural
from demonet.baselines.structural import (
    pagerank,
    simple_adjacency,
    structural_features,
    structural_rows,
    two_steps,
)
from demonet.data.synthetic import small_graphs

NAMES = (
    "log degree",
    "mean log degree of neighbours",
    "least log degree of neighbours",
    "largest log degree of neighbours",
    "clustering coefficient",
    "log edges inside the egonet",
    "log edges that leave the egonet",
    "log nodes within two steps",
    "log core number",
    "log PageRank",
)


@given(graphs(max_nodes=9))
def test_against_networkx(graph):
    adjacency = simple_adjacency(Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes))
    g = nx.from_scipy_sparse_array(adjacency)
    x = dict(zip(NAMES, structural_features(adjacency).T, strict=True))
    core, rank = nx.core_number(g), nx.pagerank(g, tol=1e-12, max_iter=1000)
    for v in g:
        near = [np.log1p(g.degree(u)) for u in g[v]]
        ego = nx.ego_graph(g, v)
        leaving = sum(1 for a, b in g.edges if (a in ego) != (b in ego))
        within = nx.single_source_shortest_path_length(g, v, cutoff=2)
        expected = {
            "log degree": np.log1p(g.degree(v)),
            "mean log degree of neighbours": np.mean(near) if near else 0,
            "least log degree of neighbours": min(near, default=0),
            "largest log degree of neighbours": max(near, default=0),
            "clustering coefficient": nx.clustering(g, v),
            "log edges inside the egonet": np.log1p(ego.number_of_edges()),
            "log nodes within two steps": np.log1p(len(within) - 1),
            "log core number": np.log1p(core[v]),
            "log PageRank": np.log(rank[v] * len(g)),
        }
        for name, value in expected.items():
            np.testing.assert_allclose(x[name][v], value, atol=1e-6, err_msg=name)
        # Edges inside counted once, those that leave once for each end inside.
        np.testing.assert_allclose(x["log edges that leave the egonet"][v], np.log1p(leaving), atol=1e-9)


def test_blocks_of_any_size_give_the_same(monkeypatch):
    graph = drawn_by_seed(50, 300)
    adjacency = simple_adjacency(Data(edge_index=graph.edge_index, num_nodes=50))
    whole = two_steps(adjacency)
    monkeypatch.setattr(structural, "_PAIRS", 30)
    for part, expected in zip(two_steps(adjacency), whole, strict=True):
        np.testing.assert_array_equal(part, expected)


def test_pagerank_is_a_distribution():
    graph = drawn_by_seed(40, 30)
    assert np.isclose(pagerank(simple_adjacency(Data(edge_index=graph.edge_index, num_nodes=40))).sum(), 1)


def test_a_row_a_graph():
    """The local features of a graph do not depend on what other graphs stand beside it."""
    together = structural_rows(small_graphs(6))
    alone = np.concatenate([structural_rows([graph]) for graph in small_graphs(6)])
    assert together.shape == (6, 22)
    np.testing.assert_allclose(together, alone, atol=1e-6)
