"""Local structural features against NetworkX and by hand."""

import networkx as nx
import numpy as np
from hypothesis import given
from tests.reference.graphs import drawn_by_seed, graphs
from torch_geometric.data import Data

from demonet.data.synthetic import small_graphs
from demonet.features import structure
from demonet.features.graph import simple_adjacency
from demonet.features.structure import Surroundings, within_two
from demonet.methods.simple import FEATURES, structural_rows


@given(graphs(max_nodes=9))
def test_against_networkx(graph):
    adjacency = simple_adjacency(graph.data)
    g = nx.from_scipy_sparse_array(adjacency)
    x = dict(zip(FEATURES, Surroundings(adjacency).columns(FEATURES).T, strict=True))
    core, rank = nx.core_number(g), nx.pagerank(g, tol=1e-12, max_iter=1000)
    for v in g:
        near = [np.log1p(g.degree(u)) for u in g[v]]
        ego = nx.ego_graph(g, v)
        leaving = sum(1 for a, b in g.edges if (a in ego) != (b in ego))
        within = nx.single_source_shortest_path_length(g, v, cutoff=2)
        expected = {
            "log-degree": np.log1p(g.degree(v)),
            "log-degree of neighbours, mean": np.mean(near) if near else 0,
            "log-degree of neighbours, minimum": min(near, default=0),
            "log-degree of neighbours, maximum": max(near, default=0),
            "closed triangles": nx.clustering(g, v),
            "edges inside the egonet": np.log1p(ego.number_of_edges()),
            "others within two steps": np.log1p(len(within) - 1),
            "core number": np.log1p(core[v]),
            "PageRank": np.log(rank[v] * len(g)),
        }
        for name, value in expected.items():
            np.testing.assert_allclose(x[name][v], value, atol=1e-6, err_msg=name)
        # Edges inside counted once, those that leave once for each end inside.
        np.testing.assert_allclose(x["edges leaving the egonet"][v], np.log1p(leaving), atol=1e-9)


def test_blocks_of_any_size_give_the_same(monkeypatch):
    graph = drawn_by_seed(50, 300)
    adjacency = simple_adjacency(Data(edge_index=graph.edge_index, num_nodes=50))
    whole = within_two(adjacency)
    monkeypatch.setattr(structure, "WALKS_AT_ONCE", 30)
    np.testing.assert_array_equal(within_two(adjacency), whole)


def test_a_row_a_graph():
    """The local features of a graph do not depend on what other graphs stand beside it."""
    together = structural_rows(small_graphs(6))
    alone = np.concatenate([structural_rows([graph]) for graph in small_graphs(6)])
    assert together.shape == (6, 22)
    np.testing.assert_allclose(together, alone, atol=1e-6)
