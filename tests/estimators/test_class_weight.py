"""Class weights: in the loss, and in what comes of them; a metric means the same with weights and without."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score

from demonet import DEMONetClassifier, DEMONetGraphClassifier
from demonet.estimators.targets import weigh_classes


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


def test_rare_classes_are_found():
    """On nodes that cannot be told apart the majority wins, unless the rare class counts for more."""
    graph = nx.cycle_graph(60)
    y = np.where(np.arange(60) % 6 == 0, "rare", "common")
    options = {"graph": graph, "model": "network", "epochs": 40, "lr": 0.05}
    assert set(DEMONetClassifier(**options).fit(range(60), y).predict()) == {"common"}
    heavy = DEMONetClassifier(class_weight={"rare": 50.0}, **options).fit(range(60), y)
    assert set(heavy.predict()) == {"rare"}
    even = DEMONetClassifier(class_weight="balanced", **options).fit(range(60), y).predict_proba()
    np.testing.assert_allclose(even, 0.5, atol=0.1)


def test_rare_classes_are_found_among_graphs():
    graphs, y = [nx.cycle_graph(6)] * 60, np.where(np.arange(60) % 6 == 0, "rare", "common")
    options = {"model": "network", "epochs": 20, "lr": 0.05}
    heavy = DEMONetGraphClassifier(class_weight={"rare": 50.0}, **options).fit(graphs, y)
    assert set(heavy.predict(graphs)) == {"rare"}
