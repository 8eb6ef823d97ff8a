"""PATCHY-SAN: ranks and fields of a hand-worked graph, canonical order, numbers of nodes that do not matter."""

import itertools

import networkx as nx
import numpy as np
import pytest
import torch
from tests.reference.graphs import from_arcs
from torch_geometric.data import Batch, Data

from demonet.features.graph import adjacency
from demonet_study.methods.patchy_san import PatchyNetwork, PatchySan, canonical_order, receptive_fields, wl_ranks

# A triangle 0 1 2, with a tail 2 - 3 - 4 and a leaf 5 at node 1; 6 is alone.
PAIRS = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (1, 5)]
ARCS, N = from_arcs(7, PAIRS, undirected=True)
GRAPH = Data(edge_index=ARCS, num_nodes=N, x=torch.eye(7))


def renumbered(graph, order):
    """Node v becomes ``order[v]``."""
    order = torch.as_tensor(order)
    x = torch.empty_like(graph.x)
    x[order] = graph.x
    return Data(edge_index=order[graph.edge_index], num_nodes=graph.num_nodes, x=x)


def test_ranks_of_a_hand_worked_graph():
    """Degrees 2 3 3 2 1 1 0: ranks 1 0 0 1 2 2 3. Then nodes 1 and 2 have neighbours (0 1 2) and (0 1 1): 2 is first.

    Nodes 0 and 3 have (0 0) and (0 2): 0 before 3. The leaf 5 of node 1 (rank 0) is before 4, the leaf of 3 (rank 1).
    """
    assert wl_ranks(adjacency(GRAPH)).tolist() == [2, 1, 0, 3, 5, 4, 6]


def test_fields_of_a_hand_worked_graph():
    """Sequence 2 1 0. Near 2: 1 0 3 at distance 1, 5 4 at 2. Near 1: 2 0 5. Near 0: 2 1, then 3 5."""
    fields = receptive_fields([GRAPH], width=3, field=4)
    assert fields.tolist() == [[[2, 1, 0, 3], [1, 2, 0, 5], [0, 2, 1, 3]]]


@pytest.mark.parametrize("seed", range(5))
def test_numbers_of_nodes_do_not_matter(seed):
    """All ranks of this graph differ, so what the network is given is the same for every numbering."""
    order = torch.randperm(N, generator=torch.Generator().manual_seed(seed))
    method = PatchySan(field=4, width=5)
    one, two = method._preprocess([GRAPH, renumbered(GRAPH, order)], [GRAPH])
    assert torch.equal(one.x, two.x)


def test_canonical_forms_tell_graphs_apart():
    """All graphs with five nodes of the atlas, two numberings each: as many forms as graphs."""
    graphs = [graph for graph in nx.graph_atlas_g() if graph.number_of_nodes() == 5]
    generator = np.random.default_rng(1)
    adj = []
    for graph, _ in itertools.product(graphs, range(2)):
        order = generator.permutation(5)
        adj.append(nx.to_numpy_array(graph).astype(np.int64)[np.ix_(order, order)])
    orders = canonical_order(np.stack(adj), np.zeros((len(adj), 5), dtype=np.int64))
    forms = {a[np.ix_(order, order)].tobytes() for a, order in zip(adj, orders, strict=True)}
    assert len(forms) == len(graphs) == 34


def test_the_convolution_reads_one_field_at_a_time():
    """Changing one field's nodes changes that field's column alone."""
    torch.manual_seed(0)
    method = PatchySan(field=4, width=5, reach=2)
    inputs = method._inputs(Batch.from_data_list(method._preprocess([GRAPH], [GRAPH])))
    model = method._build(7, 2, [GRAPH], graphs=True)
    assert isinstance(model, PatchyNetwork)
    assert inputs[0].shape == (1, 7, 20)
    other = inputs[0].clone()
    other[:, :, 8:12] += 1
    changed = (model.first(inputs[0]) != model.first(other)).any(1)
    assert changed.tolist() == [[False, False, True, False, False]]
