"""Unequal classes: the positive one is the rarer or a parameter; weights count in the loss and not in a metric."""

import networkx as nx
import numpy as np
import pytest
from sklearn.metrics import average_precision_score, balanced_accuracy_score

from demonet import DEMONetClassifier, DemonetError, DEMONetGraphClassifier
from demonet.estimators.targets import weigh_classes

AP = "average-precision"
GRAPH = nx.gnm_random_graph(60, 150, seed=0)
RARE = np.random.default_rng(0).random(60) < 0.3


def network(**options):
    return DEMONetClassifier(graph=GRAPH, model="network", preset="default", epochs=5, metric=AP, **options)


@pytest.mark.parametrize(
    ("rare", "common", "positive"),
    [("a", "b", None), ("b", "a", None), ("a", "b", "b"), (1, 0, np.int64(0))],
)
def test_the_epoch_is_chosen_by_the_positive_class(tmp_path, rare, common, positive):
    y = np.where(RARE, rare, common)
    fitted = network(positive=positive).fit(list(GRAPH), y)
    wanted = rare if positive is None else positive
    number = fitted.classes_.tolist().index(wanted)
    assert fitted.objective_.positive == number
    rows = fitted.split_.val.numpy()
    own = average_precision_score(y[rows] == wanted, fitted.predict_proba()[rows, number])
    assert fitted.history_.best_metric == pytest.approx(own)
    fitted.save(tmp_path / "model.safetensors")
    loaded = DEMONetClassifier.load(tmp_path / "model.safetensors")
    assert (loaded.positive, loaded.objective_.positive) == (positive, number)


def test_what_cannot_be_the_positive_class():
    nodes, y = list(GRAPH), np.where(RARE, "rare", "common")
    for estimator, target, told in (
        (network(positive="rear"), y, "'rare'"),
        (network(positive="a"), np.arange(60) % 3, "3 classes"),
        (network(positive="a"), np.eye(60)[:, :2], "table"),
        (network(positive="rare").set_params(metric="auc"), y, AP),
        (DEMONetClassifier(graph=GRAPH, model="kernel", positive="rare"), y, "kernel"),
    ):
        with pytest.raises(DemonetError, match=told):
            estimator.fit(nodes, target)


def test_of_graphs():
    graphs = [nx.cycle_graph(n % 5 + 4) if n % 3 else nx.star_graph(n % 5 + 4) for n in range(30)]
    y = ["cycle" if n % 3 else "star" for n in range(30)]
    options = {"model": "network", "epochs": 2, "metric": AP}
    assert DEMONetGraphClassifier(**options).fit(graphs, y).objective_.positive == 1
    assert DEMONetGraphClassifier(positive="cycle", **options).fit(graphs, y).objective_.positive == 0


def test_with_weights_the_default_metric_is_the_balanced_accuracy():
    y = np.array([0] * 30 + [1] * 6 + [2] * 4)
    weights = weigh_classes("balanced", np.arange(3), y)
    np.testing.assert_allclose(weights, 40 / (3 * np.array([30, 6, 4])), rtol=1e-6)
    graph, y = nx.barbell_graph(8, 6), np.where(np.arange(22) % 4 == 0, "rare", "common")
    options = {"graph": graph, "model": "network", "epochs": 3, "class_weight": "balanced"}
    model = DEMONetClassifier(**options).fit(range(22), y)
    rows, history = model.split_.val.numpy(), model.history_
    assert history.val_metric[history.best_epoch] == pytest.approx(
        balanced_accuracy_score(y[rows], model.predict(rows))
    )
    assert DEMONetClassifier(metric="accuracy", **options).fit(range(22), y).history_.metric == "accuracy"
