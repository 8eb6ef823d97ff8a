"""Regressors: numbers at nodes and of graphs, in the user's units; unknown values; files and explanations."""

import numpy as np
import pytest
import torch
from sklearn.metrics import r2_score
from tests.estimators.problems import QUICK, club, families, roles

from demonet import DEMONetClassifier, DemonetError, DEMONetGraphRegressor, DEMONetRegressor
from demonet.data.synthetic import power_law
from demonet.degree.count import count_degree

NAN = float("nan")


def degrees(columns=1):
    data = roles()
    degree = count_degree(data.edge_index, data.num_nodes).double()
    data.y = 100 + 10 * degree if columns == 1 else torch.stack([100 + 10 * degree, -degree], 1)
    return data


def sizes(num=24):
    graphs, _ = families(num)
    return graphs, np.array([1000.0 + graph.edge_index.size(1) for graph in graphs])


def test_a_function_of_the_degree():
    data = power_law(200, 600, seed=0)
    y = 1e6 + 1000 * np.log1p(count_degree(data.edge_index, 200).numpy())
    regressor = DEMONetRegressor(graph=data, model="network", epochs=200).fit(range(0, 200, 2), y[::2])
    others = list(range(1, 200, 2))
    found = regressor.predict(others)
    assert found.dtype == np.float64
    assert regressor.score(others, y[1::2]) == pytest.approx(r2_score(y[1::2], found))
    assert r2_score(y[1::2], found) > 0.8


def test_ids_with_targets_or_a_data_with_its_own():
    data = degrees()
    data.y[::4] = NAN
    own = DEMONetRegressor(**QUICK).fit(data)
    rows = np.flatnonzero(~np.isnan(data.y.numpy()))
    beside = DEMONetRegressor(graph=data, **QUICK).fit(data.node_ids[rows], data.y[rows].tolist())
    missing = DEMONetRegressor(graph=data, **QUICK).fit(data.node_ids, [None if v != v else v for v in data.y.tolist()])
    for other in (beside, missing):
        np.testing.assert_array_equal(own.predict(), other.predict())
    assert set(torch.cat([own.split_.train, own.split_.val]).tolist()) == set(rows)
    assert own.score(data) == beside.score(data.node_ids[rows], data.y[rows]) == own.score(data.node_ids, data.y)
    assert not hasattr(own, "classes_")
    assert not hasattr(own, "predict_proba")


def test_graphs_with_targets_of_their_own():
    graphs, y = sizes()
    for graph, value in zip(graphs, y, strict=True):
        graph.y = torch.tensor([value, -value])
    graphs[3].y[:] = NAN
    own = DEMONetGraphRegressor(**QUICK).fit(graphs)
    rest = [i for i in range(24) if i != 3]
    beside = DEMONetGraphRegressor(**QUICK).fit([graphs[i] for i in rest], np.stack([y, -y], 1)[rest])
    np.testing.assert_array_equal(own.predict(graphs), beside.predict(graphs))
    assert own.predict(graphs).shape == (24, 2)
    assert np.isfinite(own.score(graphs))


@pytest.mark.parametrize(("loss", "metric"), [("mse", None), ("mae", "mae"), ("mse", "r2")])
def test_losses_and_metrics(loss, metric):
    regressor = DEMONetRegressor(loss=loss, metric=metric, **QUICK).fit(degrees())
    history = regressor.history_
    assert history.metric == (metric or "rmse")
    assert history.best_metric == (max if metric == "r2" else min)(history.val_metric)
    assert regressor.objective_.error == loss


def test_saved_and_loaded(tmp_path):
    data, path = degrees(2), tmp_path / "m.safetensors"
    fitted = DEMONetRegressor(metric="mae", **QUICK).fit(data)
    fitted.save(path)
    loaded = DEMONetRegressor.load(path, graph=data)
    np.testing.assert_array_equal(loaded.predict(), fitted.predict())
    assert (loaded.objective_, loaded.history_) == (fitted.objective_, fitted.history_)
    with pytest.raises(DemonetError, match=r"DEMONetRegressor.*DEMONetClassifier"):
        DEMONetClassifier.load(path)
    graphs, y = sizes()
    fitted = DEMONetGraphRegressor(**QUICK).fit(graphs, y)
    fitted.save(path)
    np.testing.assert_array_equal(DEMONetGraphRegressor.load(path).predict(graphs), fitted.predict(graphs))


def test_explanations_are_in_the_users_units():
    regressor = DEMONetRegressor(**QUICK).fit(degrees(2))
    for output in (0, 1):
        why = regressor.explain(7, output=output)
        assert why.prediction == pytest.approx(regressor.predict([7])[0, output], rel=1e-4)
        assert why.confidence is None
        parts = why.network
        assert parts.score == pytest.approx(why.prediction, rel=1e-4)
        assert parts.rest + parts.seed + parts.shared + parts.own + parts.interaction == pytest.approx(parts.score)
        assert why.reasons
    with pytest.raises(DemonetError, match="output=2"):
        regressor.explain(7, output=2)


def test_bad_targets():
    graph, people, sides = club()
    regressor = DEMONetRegressor(graph=graph, **QUICK)
    for y, fact in (
        (None, r"\by\b.*None"),
        (sides, r"\by\b.*'Mr\. Hi'"),
        ([float("inf")] * 34, r"\by\b.*infinity"),
        ([NAN] * 34, r"\by\b.*NaN"),
        ([1.0] * 33, r"\b33\b.*\b34\b"),
    ):
        with pytest.raises(DemonetError, match=fact):
            regressor.fit(people, y)
    with pytest.raises(DemonetError, match="'accuracy'"):
        DEMONetRegressor(graph=graph, metric="accuracy", **QUICK).fit(people, range(34))
    with pytest.raises(DemonetError, match=r"'person 0'.*\[1\.0\].*\[0\.0\]"):
        regressor.fit([people[0], *people], range(35))
    with pytest.raises(DemonetError, match="features='attributes'"):
        DEMONetGraphRegressor(features="attributes", **QUICK).fit(*sizes())
