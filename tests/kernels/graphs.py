"""Graphs for the kernel tests: by hand, and drawn by hypothesis."""

from itertools import combinations

import grakel
import numpy as np
import torch
from hypothesis import strategies as st
from torch_geometric.data import Data


def graph(num_nodes, edges=(), x=None):
    """A graph from undirected edges; ``x`` as nested lists, kept in float64."""
    arcs = [arc for u, v in edges for arc in ((u, v), (v, u))]
    edge_index = torch.tensor(arcs, dtype=torch.long).reshape(-1, 2).T
    if x is None:
        return Data(edge_index=edge_index, num_nodes=num_nodes)
    return Data(x=torch.as_tensor(x, dtype=torch.float64), edge_index=edge_index)


def path(num_nodes, x=None):
    return graph(num_nodes, [(i, i + 1) for i in range(num_nodes - 1)], x)


def star(leaves, x=None):
    return graph(leaves + 1, [(0, leaf) for leaf in range(1, leaves + 1)], x)


def permuted(data, order):
    """The same graph with node ``order[i]`` as node ``i``, and its arcs in another order."""
    order = torch.as_tensor(order, dtype=torch.long)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    return Data(x=data.x[order], edge_index=place[data.edge_index].flip(1), num_nodes=len(order))


@st.composite
def drawn_graphs(draw, *, min_nodes=0, max_nodes=7, values=(0.0, 1.0), width=2):
    """A graph of any shape (empty, edgeless, a hub, dense), with rows drawn from few values so that labels repeat."""
    num_nodes = draw(st.integers(min_nodes, max_nodes))
    pairs = list(combinations(range(num_nodes), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    if num_nodes > 2 and draw(st.booleans()):
        edges = sorted({*edges, *((0, leaf) for leaf in range(1, num_nodes))})
    x = draw(st.lists(st.sampled_from(values), min_size=num_nodes * width, max_size=num_nodes * width))
    return graph(num_nodes, edges, np.array(x, dtype=np.float64).reshape(num_nodes, width))


def lists_of(graphs, *, min_size=1, max_size=4):
    return st.lists(graphs, min_size=min_size, max_size=max_size)


def to_grakel(data):
    """The graph for GraKeL: every node has an entry, isolated ones an empty one; a label is the whole row of ``x``."""
    arcs = {v: {} for v in range(data.num_nodes)}
    for u, v in data.edge_index.T.tolist():
        arcs[u][v] = 1.0
    return grakel.Graph(arcs, node_labels={v: tuple(row) for v, row in enumerate(data.x.tolist())})
