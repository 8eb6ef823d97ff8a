"""Tables of labels, metrics and missing labels in the classifiers."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import accuracy_score, average_precision_score
from tests.estimators.problems import QUICK, families, roles

from demonet import DEMONetClassifier, DemonetError, DEMONetGraphClassifier
from demonet.degree.count import count_degree

NAN = float("nan")


def tagged():
    """Three labels: a large degree, an even role, and none of the two."""
    data = roles()
    large, even = count_degree(data.edge_index, data.num_nodes) > 2, data.y % 2 == 0
    return data, torch.stack([large, even, ~large & ~even], 1).long().numpy()


def test_tables_of_labels():
    data, y = tagged()
    fitted = DEMONetClassifier(graph=data, model="network", epochs=60).fit(data.node_ids, y)
    probability, predicted = fitted.predict_proba(), fitted.predict()
    assert probability.shape == predicted.shape == y.shape
    np.testing.assert_array_equal(predicted, (probability >= 0.5).astype(int))
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert fitted.objective_.task == "multilabel"
    assert fitted.history_.metric == "average-precision"
    assert fitted.score(data.node_ids, y) == accuracy_score(y, predicted)
    assert average_precision_score(y[:, 0], probability[:, 0]) > 0.9  # the degree is what the network sees first


def test_a_data_frame_beside_a_graph_has_ids_as_its_index():
    data, y = tagged()
    order, ids = np.random.default_rng(0).permutation(len(y))[5:], np.array([*data.node_ids])
    frame = pd.DataFrame(y, columns=["large", "even", "none"], index=ids).iloc[order]
    found = DEMONetClassifier(**QUICK).fit(data, frame)
    same = DEMONetClassifier(graph=data, **QUICK).fit(ids[order], y[order])
    np.testing.assert_array_equal(found.predict_proba(), same.predict_proba())
    assert found.score(data, frame) == same.score(ids[order], y[order])


def test_unknown_entries():
    data, y = tagged()
    some = y.astype(float)
    some[::3, 1], some[5] = NAN, NAN
    data.y = torch.from_numpy(some)
    own = DEMONetClassifier(**QUICK).fit(data)
    rows = [i for i in range(len(y)) if i != 5]
    beside = DEMONetClassifier(graph=data, **QUICK).fit(data.node_ids[rows], np.nan_to_num(some, nan=-1)[rows])
    np.testing.assert_array_equal(own.predict_proba(), beside.predict_proba())
    assert 5 not in torch.cat([own.split_.train, own.split_.val])
    right = ((own.predict() == some) | np.isnan(some)).all(1)[rows]
    assert own.score(data) == right.mean()


def test_graphs_with_tables_of_labels(tmp_path):
    graphs, names = families()
    y = np.stack([names == "star", [graph.edge_index.size(1) > 24 for graph in graphs]], 1).astype(int)
    fitted = DEMONetGraphClassifier(**QUICK).fit(graphs, y)
    assert fitted.predict(graphs).shape == (24, 2)
    fitted.save(tmp_path / "m")
    np.testing.assert_array_equal(DEMONetGraphClassifier.load(tmp_path / "m").predict(graphs), fitted.predict(graphs))
    for graph, row in zip(graphs, y, strict=True):
        graph.y = torch.from_numpy(row)
    np.testing.assert_array_equal(DEMONetGraphClassifier(**QUICK).fit(graphs).predict(graphs), fitted.predict(graphs))


def test_explanation():
    data, y = tagged()
    fitted = DEMONetClassifier(graph=data, **QUICK).fit(data.node_ids, y)
    why, probability = fitted.explain(7), fitted.predict_proba([7])[0]
    assert why.prediction == probability.argmax()
    assert why.confidence == pytest.approx(probability.max(), abs=1e-5)
    assert fitted.explain(7, output=1).confidence == pytest.approx(probability[1], abs=1e-5)


def test_class_weights_need_classes():
    data, y = tagged()
    with pytest.raises(DemonetError, match="class_weight='balanced'"):
        DEMONetClassifier(graph=data, class_weight="balanced", **QUICK).fit(data.node_ids, y)
    with pytest.raises(DemonetError, match="'accuracy'"):
        DEMONetClassifier(graph=data, metric="accuracy", **QUICK).fit(data.node_ids, y)
