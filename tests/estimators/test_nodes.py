"""The node estimator: the same answers whatever form a graph has, and scikit-learn's tools on top of it."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from tests.estimators.problems import QUICK, club, roles, words

from demonet import DEMONetClassifier, DemonetError
from demonet.data import read_graph
from demonet.data.synthetic import role_graph
from demonet.features import FeatureMap
from demonet.train import preset, train_nodes


def test_it_is_the_recipe_with_another_face():
    """Probabilities are the softmax of what ``train_nodes`` would give, for the same split and seed."""
    data = roles()
    fitted = DEMONetClassifier(model="network", epochs=8, random_state=3).fit(data)
    settled = fitted.preset_
    trained = train_nodes(data, fitted.split_, settled, seed=3)
    with torch.no_grad():
        scores = trained.model.eval()(*trained.inputs)
    np.testing.assert_array_equal(fitted.predict_proba(), scores.double().softmax(1).numpy())
    assert settled.model == preset("strong", "nodes").model.changed(seed=3)
    assert fitted.history_.train_loss == trained.history.train_loss


def test_every_form_of_a_graph_is_the_same_graph(tmp_path):
    graph, people, sides = club()
    for _, _, attributes in graph.edges(data=True):
        attributes.clear()
    path = tmp_path / "edges.csv"
    path.write_text("source,target\n" + "".join(f"{u},{v}\n" for u, v in graph.edges), encoding="utf-8")
    numbers = np.arange(len(people))
    forms = {
        "networkx": (graph, people),
        "file": (path, people),
        "file name": (str(path), people),
        "data": (read_graph(graph), people),
        "scipy": (nx.to_scipy_sparse_array(graph), numbers),
        "frame": (pd.DataFrame(list(graph.edges), columns=["source", "target"]), people),
        "pairs": (list(graph.edges), people),
    }
    known = np.arange(0, len(people), 2)
    found = {}
    for name, (form, ids) in forms.items():
        classifier = DEMONetClassifier(graph=form, **QUICK).fit([ids[i] for i in known], sides[known])
        found[name] = classifier.predict_proba([ids[i] for i in range(len(people))])
        if name == "pairs":
            continue
        y = dict(zip([ids[i] for i in known], sides[known], strict=True))
        for beside in (y, pd.Series(y)):
            short = DEMONetClassifier(**QUICK).fit(form, beside)
            np.testing.assert_array_equal(short.predict_proba(ids), found[name])
        np.testing.assert_array_equal(short.predict_log_proba(form), np.log(short.predict_proba()))
        assert short.score(form, y) == short.score(list(y), list(y.values())) == short.score(y=y)
    for one, other in (("networkx", "data"), ("networkx", "scipy"), ("file", "file name"), ("file", "frame")):
        np.testing.assert_array_equal(found[one], found[other])
    np.testing.assert_array_equal(DEMONetClassifier(**QUICK).fit(forms["scipy"][0], sides).predict().shape, (34,))


def test_without_a_seed_each_fit_is_another():
    graph, people, sides = club()
    fits = [DEMONetClassifier(graph=graph, random_state=None, **QUICK).fit(people, sides) for _ in range(2)]
    assert not np.array_equal(fits[0].predict_proba(), fits[1].predict_proba())
    assert fits[0].split_.seed != fits[1].split_.seed


def test_the_short_form_knows_what_is_labelled():
    data = roles()
    data.y[::3] = -1
    before = data.y.clone()
    short = DEMONetClassifier(**QUICK).fit(data)
    names = np.asarray(data.class_names)
    rows = np.flatnonzero(data.y >= 0)
    long = DEMONetClassifier(graph=data, **QUICK).fit(data.node_ids[rows], names[data.y[rows]])
    np.testing.assert_array_equal(short.predict_proba(), long.predict_proba())
    assert short.classes_.tolist() == sorted(set(names[data.y[rows]]))
    assert set(torch.cat([short.split_.train, short.split_.val]).tolist()) == set(rows)
    assert short.score(data) == long.score(data.node_ids[rows], names[data.y[rows]])
    assert short.score(data) == accuracy_score(names[data.y[rows]], short.predict()[rows])
    assert torch.equal(data.y, before), "the caller's graph is left as it was"


def test_order_and_choice_of_nodes():
    graph, people, sides = club()
    fitted = DEMONetClassifier(graph=graph, **QUICK).fit(people, sides)
    everyone = fitted.predict_proba()
    np.testing.assert_array_equal(fitted.predict_proba(["person 5", "person 2"]), everyone[[5, 2]])
    np.testing.assert_array_equal(fitted.predict_proba(np.array([["person 5"]])), everyone[[5]])
    np.testing.assert_array_equal(fitted.transform(["person 9"]), fitted.transform()[[9]])
    np.testing.assert_allclose(everyone.sum(1), 1, atol=1e-12)
    assert fitted.transform().shape == (34, 8)


def test_grid_search_clone_and_pipeline():
    graph, people, sides = club()
    search = GridSearchCV(
        DEMONetClassifier(graph=graph, model="network", epochs=5, hidden=8),
        {"scheme": ["weight", "hash"], "hidden": np.array([4, 8]), "lr": [0.01]},
        scoring="f1_macro",
        cv=2,
        error_score="raise",
    ).fit(people, sides)
    assert search.best_estimator_.hidden in (4, 8)
    assert (search.cv_results_["mean_test_score"] > 0).all()
    pipeline = make_pipeline(DEMONetClassifier(graph=graph, model="network", epochs=60), LogisticRegression()).fit(
        people, sides
    )
    assert pipeline.score(people, sides) > 0.9
    probability = cross_val_predict(search.best_estimator_, people, sides, cv=2, method="predict_proba")
    assert probability.shape == (34, 2)
    first = DEMONetClassifier(graph="edges.csv", class_weight={"a": 2.0}, model="network", epochs=7)
    assert clone(first).get_params() == first.get_params()


@pytest.mark.parametrize(("kind", "scheme"), [("default", "weight"), ("paper", "hash"), ("default", "smooth")])
def test_another_graph_with_degrees_never_seen(kind, scheme):
    fitted = DEMONetClassifier(preset=kind, scheme=scheme, **QUICK).fit(roles())
    larger = role_graph(5, motifs=9)
    star = nx.star_graph(40)
    assert fitted.model_.tasks.names()[int(fitted.model_.tasks(torch.tensor([40])))] == "unseen"
    for graph, nodes in ((larger, larger.num_nodes), (star, 41), (nx.path_graph(3), 3), (nx.empty_graph(2), 2)):
        probability = fitted.predict_proba(graph=graph)
        assert probability.shape == (nodes, len(fitted.classes_))
        assert np.isfinite(probability).all()
        assert fitted.transform(graph=graph).shape == (nodes, 8)
    np.testing.assert_array_equal(fitted.predict(larger), fitted.predict(graph=larger))
    np.testing.assert_array_equal(fitted.predict_proba([3], graph=star), fitted.predict_proba(graph=star)[[3]])
    # All leaves of a star are alike: nothing but structure is looked at.
    assert np.ptp(fitted.predict_proba(graph=star)[1:], axis=0).max() < 1e-6


def test_attributes():
    data = words()
    fitted = DEMONetClassifier(**QUICK).fit(data)
    assert fitted.n_features_in_ == 12
    assert fitted.transform().shape == (data.num_nodes, QUICK["hidden"])
    scores = DEMONetClassifier(preset="default", **QUICK).fit(data).transform()
    assert scores.shape == (data.num_nodes, len(fitted.classes_)), "no hidden layers: scores"
    assert fitted.predict(words(1, motifs=4)).shape == (words(1, motifs=4).num_nodes,)
    with pytest.raises(DemonetError, match=r"\b11\b.*\b12\b"):
        fitted.predict(words(columns=11))
    with pytest.raises(DemonetError, match=r"\b0\b.*\b12\b"):
        fitted.predict(graph=roles())
    with pytest.raises(DemonetError, match=r"\b12\b.*\b0\b"):
        DEMONetClassifier(**QUICK).fit(roles()).predict(data)
    data.x = torch.randn(data.num_nodes, 3, generator=torch.Generator().manual_seed(0))
    with pytest.raises(DemonetError, match=r"attribute -2.* tf-idf"):
        DEMONetClassifier(features="tfidf", **QUICK).fit(data)
    assert DEMONetClassifier(**QUICK).fit(data).features_.spec == "encoded+structure"
    assert DEMONetClassifier(preset="default", **QUICK).fit(data).features_.spec == "columns"  # as the command does
    assert DEMONetClassifier(features="attributes", **QUICK).fit(data).features_.spec == "attributes"


def test_adjacency_rows_refuse_another_graph():
    data = roles()
    fitted = DEMONetClassifier(preset="authors", **QUICK).fit(data)
    assert isinstance(fitted.features_, FeatureMap)
    np.testing.assert_array_equal(fitted.predict(data), fitted.predict())
    with pytest.raises(DemonetError, match=r"'adjacency'.*\b42\b"):
        fitted.predict(role_graph(1, motifs=6))
    with pytest.raises(DemonetError, match=r"'adjacency'.*\b42\b"):
        fitted.predict(graph=nx.path_graph(4))
