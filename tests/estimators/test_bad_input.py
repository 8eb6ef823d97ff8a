"""Bad input: one error that says what is wrong, before any training."""

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from tests.estimators.problems import QUICK, club, families, roles
from torch_geometric.data import Data

from demonet import (
    DEMONetClassifier,
    DemonetError,
    DEMONetGraphClassifier,
    DEMONetGraphRegressor,
    DEMONetRegressor,
)

PARAMETERS = {
    "preset": "best",
    "scheme": "free",
    "features": 3,
    "hidden": 1,
    "layers": "deep",
    "model": "forest",
    "effort": "much",
    "time_limit": 0,
    "n_jobs": 0,
    "lr": 0.0,
    "epochs": 0,
    "patience": 1.5,
    "validation_fraction": 1.0,
    "metric": "f1",
    "positive": ["a"],
    "class_weight": "even",
    "random_state": -1,
    "device": "gpu",
    "verbose": "yes",
}


ESTIMATORS = (DEMONetClassifier, DEMONetGraphClassifier, DEMONetRegressor, DEMONetGraphRegressor)


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_checked_in_fit_alone(name):
    for estimator in (each for each in ESTIMATORS if name in each().get_params()):
        made = estimator(**{name: PARAMETERS[name]})
        assert made.get_params()[name] == PARAMETERS[name]
        with pytest.raises(DemonetError, match=f"'{name}'.*{estimator.__name__}"):
            made.fit([0, 1], [0, 1])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_tags_and_constraints(estimator):
    """What an adapter for tables hides from the checks in ``test_sklearn_checks.py``."""
    tags = get_tags(estimator())
    assert not tags.input_tags.two_d_array
    assert tags.estimator_type == ("classifier" if "Classifier" in estimator.__name__ else "regressor")
    assert set(estimator().get_params()) - {"graph", "attributes"} <= set(estimator._parameter_constraints)


def test_every_parameter_has_a_bad_value():
    assert set(PARAMETERS) == set(DEMONetGraphClassifier().get_params()) - {"attributes"}


GRAPH, PEOPLE, SIDES = club()
SIDES_AS_NUMBERS = np.unique(SIDES, return_inverse=True)[1].astype(float)
NODES = {
    "no graph": (None, PEOPLE, SIDES, r"DEMONetClassifier\(graph="),
    "no y": (GRAPH, PEOPLE, None, r"\by\b.*None"),
    "a stranger": (GRAPH, [*PEOPLE, "nobody"], [*SIDES, "Hi"], r"'nobody'.*\b1\b"),
    "few labels": (GRAPH, PEOPLE, SIDES[:-1], r"\b33\b.*\b34\b"),
    "one class": (GRAPH, PEOPLE, ["Hi"] * 34, r"\b1\b.*\b2\b"),
    "NaN": (GRAPH, PEOPLE, [float("nan")] * 34, r"\by\b.*NaN"),
    "infinity": (GRAPH, PEOPLE, [float("inf"), *SIDES_AS_NUMBERS[1:]], r"\by\b.*infinity"),
    "a label of 2": (GRAPH, PEOPLE, np.full((34, 3), 2), r"\b2\.0\b.*item 0\b.*column 0\b"),
    "numbers": (GRAPH, PEOPLE, np.linspace(0, 1, 34), r"\by\b.*continuous"),
    "a table": (GRAPH, np.zeros((34, 2)), SIDES, r"\(34, 2\)"),
    "one label": (GRAPH, PEOPLE[:1] * 2, ["Hi", "Officer"], "'person 0'.*'Officer'.*'Hi'"),
    "two labels": (GRAPH, PEOPLE[:2], ["Hi", "Officer"], r"validation_fraction=0\.2.*n_samples=2\b"),
    "an empty graph": (nx.Graph(), [], [], "graph.*nodes"),
    "not a graph": (3, PEOPLE, SIDES, r"\bint\b"),
}


@pytest.mark.parametrize("name", NODES)
def test_nodes(name):
    graph, ids, y, message = NODES[name]
    with pytest.raises(DemonetError, match=message):
        DEMONetClassifier(graph=graph, **QUICK).fit(ids, y)


def test_nodes_in_the_short_form():
    data = roles()
    for y in (None, data.y):
        with pytest.raises(DemonetError, match=r"\bX\b.*graph="):
            DEMONetClassifier(graph=data).fit(data, y)
    with pytest.raises(DemonetError, match=r"\by\b.*-1"):
        DEMONetClassifier().fit(Data(edge_index=data.edge_index, num_nodes=data.num_nodes))
    fitted = DEMONetClassifier(**QUICK).fit(data)
    with pytest.raises(DemonetError, match=r"\bX\b.*graph="):
        fitted.predict(data, graph=data)
    with pytest.raises(DemonetError, match=r"score\b.*\by\b"):
        fitted.score([0, 1])


@pytest.mark.parametrize("weights", [{"Hi": 1.0}, {"Mr. Hi": 0.0}, {"Mr. Hi": float("nan")}, {"Officer": -1.0}])
def test_class_weights(weights):
    with pytest.raises(DemonetError, match="class_weight"):
        DEMONetClassifier(graph=GRAPH, class_weight=weights, **QUICK).fit(PEOPLE, SIDES)


def test_not_fitted():
    for method in ("predict", "predict_proba", "transform"):
        with pytest.raises(NotFittedError):
            getattr(DEMONetClassifier(graph=GRAPH), method)(PEOPLE)
        with pytest.raises(NotFittedError):
            getattr(DEMONetGraphClassifier(), method)(families()[0])
    with pytest.raises(NotFittedError):
        DEMONetClassifier(graph=GRAPH).explain("person 0")


def test_graphs():
    graphs, names = families()
    wide = [Data(edge_index=g.edge_index, num_nodes=g.num_nodes, x=torch.ones(g.num_nodes, 2)) for g in graphs]
    for X, y, message in (
        ([], [], "^[^X]*graphs"),
        (graphs[0], None, r"\bX\b.*\bData\b"),
        (7, None, r"\bX\b.*\bint\b"),
        (wide, None, r"graph 0\b.*\by\b"),
        ([nx.path_graph(3)] * 4, None, r"\by\b.*None.*\bData\b"),
        (graphs, names[1:], r"\b23\b.*\b24\b"),
        ([*graphs, nx.Graph()], [*names, "web"], "graph 24: .*nodes"),
        ([*graphs, "no/such/file.csv"], [*names, "web"], r"graph 24: .*no/such/file\.csv"),
        ([*graphs, wide[0]], [*names, "web"], r"graph 24\b.*\b2\b.*graph 0\b.*\b0\b"),
    ):
        with pytest.raises(DemonetError, match=message):
            DEMONetGraphClassifier(**QUICK).fit(X, y)
    with pytest.raises(DemonetError, match=r"graph 0\b.*\b2\b.*\b0\b"):
        DEMONetGraphClassifier(model="network", epochs=1, hidden=8).fit(graphs).predict(wide)
    with pytest.raises(DemonetError, match=r"'adjacency'.*\b19\b"):
        DEMONetGraphClassifier(features="adjacency", **QUICK).fit(graphs)
