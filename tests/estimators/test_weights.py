"""Edge weights that another graph has and training had not, or the reverse; also of a model from a file."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pytest

from demonet import DEMONetClassifier, DEMONetGraphClassifier, DemonetWarning

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
