"""Predictions are a function of model and graph: the same answer twice, in any order, and for the graph as it changes.

Graphs with symmetries are the hard case: eigenvectors of equal eigenvalues have no direction of their own, and
statistics that are equal for all nodes differ by rounding alone.
"""

from __future__ import annotations

import warnings
from functools import cache

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods.problems import Ridge, labelled_of, two_blocks
from torch_geometric.data import Data

from demonet.data.splits import Split
from demonet.ensemble import Ensemble
from demonet.errors import DemonetError, DemonetWarning
from demonet.features.views import NodeView
from demonet.methods.propagation import AdjacencyLinear, Propagation


def forest() -> nx.Graph:
    tree = nx.balanced_tree(3, 4)
    tree.remove_node(0)
    return tree


SYMMETRIC = {
    "trees": forest,
    "ring": lambda: nx.cycle_graph(60),
    "clique": lambda: nx.complete_graph(40),
    "caveman": lambda: nx.caveman_graph(8, 6),
    "connected caveman": lambda: nx.connected_caveman_graph(8, 6),
    "grid": lambda: nx.grid_2d_graph(8, 7),
    "karate": nx.karate_club_graph,
    "novel": nx.les_miserables_graph,
}


def parts(graph: nx.Graph) -> dict[object, int]:
    """Classes that follow the graph: components where it has some, otherwise two halves of a ranking by distance."""
    pieces = list(nx.connected_components(graph))
    if len(pieces) > 1:
        return {node: number % 4 for number, piece in enumerate(pieces) for node in piece}
    distance = nx.single_source_shortest_path_length(graph, min(graph, key=str))
    order = sorted(graph, key=lambda node: (distance[node], str(node)))
    return {node: int(2 * place >= len(order)) for place, node in enumerate(order)}


def as_data(graph: nx.Graph, order: list[object], seed: int = 0) -> Data:
    """The graph with its nodes in an order, its edges in a random one, and names as ids."""
    place = {node: number for number, node in enumerate(order)}
    ends = np.array([(place[u], place[v]) for u, v in graph.edges()]).reshape(-1, 2)
    ends = np.random.default_rng(seed).permutation(np.concatenate([ends, ends[:, ::-1]]))
    return Data(edge_index=torch.from_numpy(ends.T.copy()), num_nodes=len(order), node_ids=[str(n) for n in order])


@cache
def fitted(name: str) -> tuple[nx.Graph, Data, Ensemble]:
    graph = SYMMETRIC[name]()
    data = as_data(graph, list(graph))
    classes = parts(graph)
    data.y = torch.tensor([classes[node] for node in graph])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return graph, data, Ensemble.fit(data, effort="quick")


@pytest.mark.parametrize("name", SYMMETRIC)
@given(seed=st.integers(0, 2**16))
@settings(max_examples=3, deadline=None)
def test_the_same_graph_gets_the_same_answer(name, seed):
    graph, data, ensemble = fitted(name)
    first = ensemble.outputs(data)
    np.testing.assert_allclose(first, ensemble.fitted_outputs, atol=1e-6)
    np.testing.assert_array_equal(ensemble.outputs(data), first)
    loaded = Ensemble.from_state(*ensemble.state())
    order = np.random.default_rng(seed).permutation(len(graph))
    nodes = list(graph)
    other = as_data(graph, [nodes[place] for place in order], seed)
    for model in (ensemble, loaded):
        np.testing.assert_allclose(model.outputs(other), first[order], atol=1e-6)


@pytest.mark.parametrize("name", SYMMETRIC)
def test_a_finished_ensemble_has_an_answer_for_other_graphs(name):
    ensemble = Ensemble.from_state(*fitted(name)[2].state())
    assert not ensemble.needs_fitted_graph
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemonetWarning)
        found = ensemble.outputs(other_graph())
    np.testing.assert_allclose(found.sum(1), 1)


def other_graph() -> Data:
    return as_data(nx.relabel_nodes(nx.petersen_graph(), "p{}".format), [f"p{node}" for node in range(10)])


def blocks(**options: float) -> tuple[Data, Split]:
    data = two_blocks(**options)
    labelled = labelled_of(data)
    none = torch.empty(0, dtype=torch.int64)
    return data, Split("test", 0, torch.from_numpy(labelled.train), torch.from_numpy(labelled.val), none)


def test_weights_for_another_graph_are_those_chosen_without_members_that_know_nodes():
    data, split = blocks()
    both = Ensemble.fit(data, split, members=[Propagation("p"), AdjacencyLinear("a"), Ridge("r")])
    alone = Ensemble.fit(data, split, members=[Ridge("r")])
    assert sum(both.left_out.values()) > 0.5
    other = two_blocks(7)
    other.node_ids = [f"other {node}" for node in range(other.num_nodes)]
    with pytest.warns(DemonetWarning, match="left out"):
        found = both.outputs(other)
    np.testing.assert_allclose(found, alone.outputs(other))
    assert both.inductive_outputs is not None
    np.testing.assert_allclose(both.inductive_outputs["refit"], alone.fitted_outputs)
    np.testing.assert_allclose(both.inductive_outputs["strict"], alone.strict_outputs)
    assert both.validation["inductive"] == alone.validation


@pytest.mark.parametrize("member", [Propagation("m"), AdjacencyLinear("m")])
@pytest.mark.parametrize("named", [True, False])
def test_members_follow_the_edges_of_the_graph_as_it_changes(member, named):
    data, split = blocks(n=200)
    n = int(data.num_nodes)
    if named:
        data.node_ids = [f"k{node}" for node in range(n)]
    ensemble = Ensemble.fit(data, split, members=[member])
    # A tenth of the edges goes, and a new node arrives that knows eight nodes of class 1.
    kept = torch.from_numpy(np.random.default_rng(0).random(data.edge_index.size(1)) < 0.9)
    friends = torch.tensor([node for node in range(1, n, 2) if node in set(split.train.tolist())][:8])
    arrivals = torch.stack([friends, torch.full_like(friends, n)])
    later = Data(edge_index=torch.cat([data.edge_index[:, kept], arrivals, arrivals.flip(0)], 1), num_nodes=n + 1)
    if named:
        later.node_ids = [*data.node_ids, "new"]
    found = ensemble.outputs(later)
    assert ensemble.recognised == n
    held_out = np.setdiff1d(np.arange(n), torch.cat([split.train, split.val]).numpy())
    assert (found.argmax(1)[held_out] == data.y.numpy()[held_out]).mean() > 0.85
    assert found[n].argmax() == 1


def test_ids_that_merely_count_are_recognised_by_their_edges():
    data, _ = blocks()
    view = NodeView(data)
    view.remember_graph()
    state = view.facts, view.arrays
    assert NodeView(data, state).known is not None
    assert NodeView(two_blocks(1), state).known is None  # the same numbers, other edges
    full = as_data(nx.complete_graph(30), list(range(30)))
    del full.node_ids
    view = NodeView(full)
    view.remember_graph()
    assert NodeView(full, (view.facts, view.arrays)).known is not None


def test_an_ensemble_that_knows_nodes_alone_refuses_another_graph():
    data, split = blocks()
    lonely = Ensemble.fit(data, split, members=[Propagation("p")])
    assert lonely.needs_fitted_graph
    with pytest.raises(DemonetError):
        lonely.outputs(other_graph())
