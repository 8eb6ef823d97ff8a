"""Weights that training had not, or had in other units; weights and rates whose outputs are not finite are errors."""

import warnings

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from demonet import DEMONetClassifier, DemonetError, DEMONetGraphClassifier, DemonetWarning
from demonet.train.finite import check_outputs

PLAIN = nx.gnm_random_graph(30, 60, seed=0)
WEIGHTED = PLAIN.copy()
nx.set_edge_attributes(WEIGHTED, {edge: 1 + n % 3 for n, edge in enumerate(PLAIN.edges)}, "weight")
Y = ["a" if PLAIN.degree(node) > 4 else "b" for node in PLAIN]
FAST = {"model": "network", "preset": "default", "epochs": 3}


@pytest.mark.parametrize("saved", [False, True])
def test_of_nodes(tmp_path, saved):
    plain, weighted = (DEMONetClassifier(graph=graph, **FAST).fit(list(graph), Y) for graph in (PLAIN, WEIGHTED))
    expected = plain.predict_proba()
    if saved:
        for name, fitted in (("plain", plain), ("weighted", weighted)):
            fitted.save(tmp_path / name)
        plain, weighted = (DEMONetClassifier.load(tmp_path / name) for name in ("plain", "weighted"))
    assert (plain.weighted_, weighted.weighted_) == (False, True)
    with pytest.warns(DemonetWarning, match="weights"):
        found = plain.predict_proba(graph=WEIGHTED)
    np.testing.assert_array_equal(found, expected)
    with pytest.warns(DemonetWarning, match="weights"):
        weighted.predict(graph=PLAIN)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DemonetWarning)
        plain.predict(graph=PLAIN)
        weighted.predict(graph=WEIGHTED)


def test_of_graphs():
    plain, weighted = (DEMONetGraphClassifier(**FAST).fit([graph] * 12, ["a", "b"] * 6) for graph in (PLAIN, WEIGHTED))
    with pytest.warns(DemonetWarning, match="weights") as told:
        found = plain.predict_proba([WEIGHTED, PLAIN, WEIGHTED])
    assert len(told) == 1
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
    with pytest.warns(DemonetWarning, match="weights"):
        weighted.transform([PLAIN, PLAIN])


@pytest.mark.parametrize("sparse", [False, True])
def test_attributes_in_other_units_are_told(tmp_path, sparse):
    draw = torch.Generator().manual_seed(0)
    x, ends = torch.rand(30, 4, generator=draw) * (torch.rand(30, 4, generator=draw) > 0.5), list(PLAIN.edges)
    graphs = [Data(x=x * factor, edge_index=torch.tensor(ends).T) for factor in (1, 0.2, 1000)]
    for graph in graphs if sparse else ():
        graph.x = graph.x.to_sparse_csr()
    fitted = DEMONetClassifier(graph=graphs[0], **FAST).fit(list(range(30)), Y)
    fitted.save(tmp_path / "model")
    for classifier in (fitted, DEMONetClassifier.load(tmp_path / "model")):
        with warnings.catch_warnings():
            warnings.simplefilter("error", DemonetWarning)
            classifier.predict(graph=graphs[0])
            classifier.predict(graph=graphs[1])
        with pytest.warns(DemonetWarning, match="'attributes'"):
            classifier.predict(graph=graphs[2])


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
