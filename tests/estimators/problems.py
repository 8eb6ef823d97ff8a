"""Small graphs to fit, in the forms that people have them."""

from __future__ import annotations

import networkx as nx
import numpy as np
import torch
from torch_geometric.data import Data

from demonet.data.splits import Split
from demonet.data.synthetic import role_graph, small_graphs

QUICK = {"model": "network", "epochs": 8, "hidden": 8}


def roles() -> Data:
    """Nodes without attributes, classes by name in ``class_names``."""
    return role_graph(0, motifs=6)


def words(seed: int = 0, *, columns: int = 12, motifs: int = 6) -> Data:
    """Nodes with counts that give some of the classes away."""
    data = role_graph(seed, motifs=motifs)
    drawn = torch.rand(data.num_nodes, columns, generator=torch.Generator().manual_seed(seed)) < 0.2
    drawn[torch.arange(data.num_nodes), data.y % columns] = True
    data.x = drawn.float()
    return data


def club() -> tuple[nx.Graph, list[str], np.ndarray]:
    """Zachary's karate club with people for ids, and the side that each took."""
    graph = nx.relabel_nodes(nx.karate_club_graph(), lambda node: f"person {node}")
    return graph, list(graph), np.array([graph.nodes[node]["club"] for node in graph])


def families(num: int = 24) -> tuple[list[Data], np.ndarray]:
    """Graphs without attributes, and the family of each by name."""
    graphs = small_graphs(num, 0, largest=12)
    return graphs, np.array(["cycle", "grid", "star", "tree", "web"])[[int(graph.y) for graph in graphs]]


def masked(data: Data, split: Split) -> Data:
    """The data with a mask for each part of a split."""
    for part in ("train", "val", "test"):
        mask = torch.zeros(data.num_nodes, dtype=torch.bool)
        data[f"{part}_mask"] = mask.index_fill(0, getattr(split, part), True)
    return data
