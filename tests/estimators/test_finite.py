"""Outputs that are not finite are an error that names the first item and the likely cause."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from demonet import DEMONetClassifier, DemonetError
from demonet.train.finite import check_outputs

KARATE = nx.karate_club_graph()
CLUBS = [KARATE.nodes[node]["club"] for node in KARATE]


def test_a_training_that_diverged_has_no_probabilities():
    classifier = DEMONetClassifier(graph=KARATE, model="network", lr=1e10, epochs=1).fit(list(KARATE), CLUBS)
    for method in (classifier.predict_proba, classifier.predict, classifier.transform):
        with pytest.raises(DemonetError, match=r"node 0\b.*\blr\b"):
            method()


def test_weights_that_overflow_are_named():
    plain = nx.relabel_nodes(nx.Graph(KARATE.edges), str)
    nx.set_edge_attributes(plain, {edge: 1 + place % 2 for place, edge in enumerate(plain.edges)}, "weight")
    classifier = DEMONetClassifier(graph=plain, model="network", epochs=3).fit([str(node) for node in KARATE], CLUBS)
    heavy = plain.copy()
    nx.set_edge_attributes(heavy, 3e38, "weight")
    for method in (classifier.predict_proba, classifier.transform):
        with pytest.raises(DemonetError, match=r"node '?0\b.*edge weights.*3e\+38"):
            method(graph=heavy)


def test_a_graph_that_overflows_is_named():
    edges = torch.tensor([[0, 1], [1, 0]])
    graphs = [Data(x=torch.full((2, 1), scale), edge_index=edges) for scale in (1.0, 3e38)]
    check_outputs(np.ones((2, 3)), graphs)
    with pytest.raises(DemonetError, match=r"graph 1\b.*inf.*attributes.*3e\+38"):
        check_outputs(np.array([[0.0, 1.0], [0.0, np.inf]]), graphs)
