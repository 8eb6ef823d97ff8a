"""Small sets under the names of the paper's, so that a run takes a moment."""

import pytest
import torch

from demonet.data.synthetic import role_graph, small_graphs


def tiny(name, self_loops="drop"):
    """Roles of nodes for brazil, the same with attributes for blogcatalog, families of graphs for MUTAG."""
    if name == "MUTAG":
        graphs = small_graphs(40)
        for graph in graphs:
            graph.x = torch.nn.functional.one_hot(torch.arange(graph.num_nodes) % 3, 3).float()
        return graphs
    data = role_graph(motifs=6)
    data.y = data.y % 3
    if name == "blogcatalog":
        data.x = (torch.arange(data.num_nodes)[:, None] % torch.arange(2, 8) == 0).float()
    return data


@pytest.fixture
def tiny_sets(monkeypatch):
    """Every set of the paper is a tiny one."""
    monkeypatch.setattr("demonet_study.experiments.accuracy.load", tiny)
