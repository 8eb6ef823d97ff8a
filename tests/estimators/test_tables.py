"""Estimators take tables as people have them: data frames, targets by id, missing ones, attributes of any kind."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tests.runs.files import roles

from demonet import DEMONetClassifier, DemonetError, DEMONetGraphClassifier, DEMONetRegressor, DemonetWarning
from demonet.data import read_graph

QUICK = {"model": "network", "epochs": 2, "hidden": 4}
PAIRS, LABELS = roles(6)
EDGES = pd.DataFrame(PAIRS, columns=["source", "target"])


def table() -> pd.DataFrame:
    """A number with gaps, a category, a flag."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(index=list(LABELS))
    frame["age"] = rng.normal(40, 9, len(LABELS)).round(1)
    frame["city"] = [("Oslo", "Rome", "Bonn")[i % 3] for i in range(len(LABELS))]
    frame["active"] = [i % 2 == 0 for i in range(len(LABELS))]
    frame.loc[frame.index[3], "age"] = np.nan
    return frame


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemonetWarning)
        return DEMONetClassifier(graph=EDGES, attributes=table(), **QUICK).fit(y=LABELS)


@pytest.mark.parametrize("gap", [None, float("nan"), pd.NA, "nan", "NA", ""])
def test_missing_targets_are_unlabelled(gap):
    ids = list(LABELS)
    some = {**LABELS, ids[0]: gap}
    with warnings.catch_warnings():
        # Only a word could be the name of a class: NaN was reported as the word "nan".
        warnings.simplefilter("ignore" if isinstance(gap, str) else "error", DemonetWarning)
        by_dict = DEMONetClassifier(graph=EDGES, **QUICK).fit(y=some)
        series = DEMONetClassifier(graph=EDGES, **QUICK).fit(y=pd.Series(some, dtype=object))
        listed = DEMONetClassifier(graph=EDGES, **QUICK).fit(ids, [some[name] for name in ids])
        known = DEMONetClassifier(graph=EDGES, **QUICK).fit(ids, {name: LABELS[name] for name in ids[1:]})
    for model in (by_dict, series, listed, known):
        assert model.classes_.tolist() == ["corner", "foot", "ring"]
        assert model.split_.train.numel() + model.split_.val.numel() == len(ids) - 1


def test_missing_numbers_and_a_column_of_pandas():
    y = pd.Series([pd.NA, *range(1, len(LABELS))], index=list(LABELS), dtype="Int64")
    model = DEMONetRegressor(graph=EDGES, **QUICK).fit(y=y)
    assert model.split_.train.numel() + model.split_.val.numel() == len(LABELS) - 1


def test_minus_one_is_a_class_except_in_a_tensor():
    ids = list(LABELS)
    codes = np.array([-1 if i < 6 else i % 2 for i in range(len(ids))])
    with pytest.warns(DemonetWarning, match="-1"):
        assert DEMONetClassifier(graph=EDGES, **QUICK).fit(ids, codes).classes_.tolist() == [-1, 0, 1]
    model = DEMONetClassifier(graph=EDGES, **QUICK).fit(ids, torch.from_numpy(codes))
    assert model.classes_.tolist() == [0, 1]
    signs = np.where(codes < 1, -1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DemonetWarning)
        assert DEMONetClassifier(graph=EDGES, **QUICK).fit(ids, signs).classes_.tolist() == [-1, 1]


def test_names_of_attributes(fitted):
    assert fitted.feature_names_in_.tolist() == ["age", "city", "active"]
    assert fitted.n_features_in_ == 3
    names = ["age", "age missing", "city=Bonn", "city=Oslo", "city=Rome", "active"]
    assert fitted.columns_.names == names
    assert fitted.features_.spec == "encoded+structure"
    found = {reason.name: reason.value for reason in fitted.explain("r0").reasons if reason.kind == "column"}
    assert set(found) <= {"age", "city", "active"}
    assert found["city"] in ("Bonn", "Oslo", "Rome")
    assert not hasattr(DEMONetClassifier(graph=EDGES, **QUICK).fit(y=LABELS), "feature_names_in_")


def test_a_saved_model_reads_another_table_as_the_first(fitted, tmp_path):
    fitted.save(tmp_path / "m.safetensors")
    moved = table()[["city", "active", "age"]]
    moved.loc["r0", "city"] = "Lima"
    with pytest.warns(DemonetWarning, match="'Lima' in 'city'"):
        again = DEMONetClassifier.load(tmp_path / "m.safetensors", graph=EDGES, attributes=moved)
    assert again.feature_names_in_.tolist() == ["age", "city", "active"]
    rest = sorted(set(LABELS) - set(nx.ego_graph(nx.Graph(PAIRS), "r0", radius=2)))  # two convolutions
    assert rest
    np.testing.assert_allclose(again.predict_proba(rest), fitted.predict_proba(rest), atol=1e-12)
    with pytest.raises(DemonetError, match="missing: 'age'"):
        DEMONetClassifier.load(tmp_path / "m.safetensors", graph=EDGES, attributes=moved[["city", "active"]])
    with pytest.raises(DemonetError, match=r"columns=estimator\.columns_"):
        fitted.predict(graph=PAIRS)
    other = read_graph(PAIRS, features=table().assign(city="Lima"))
    with pytest.raises(DemonetError, match="training had"):
        fitted.predict(graph=other)


def test_attributes_of_a_networkx_graph_are_used_if_named():
    graph = nx.Graph(PAIRS)
    nx.set_node_attributes(graph, table()["city"].to_dict(), "city")
    nx.set_node_attributes(graph, LABELS, "role")
    nx.set_node_attributes(graph, {name: i for i, name in enumerate(LABELS)}, "rank")
    assert DEMONetClassifier(graph=graph, **QUICK).fit(y=LABELS).n_features_in_ == 0  # a label may be among them
    model = DEMONetClassifier(graph=graph, attributes=["rank", "city"], **QUICK).fit(y=LABELS)
    assert model.feature_names_in_.tolist() == ["rank", "city"]
    np.testing.assert_array_equal(model.predict(graph=graph), model.predict())


def test_attributes_of_networkx_graphs_in_a_list(tmp_path):
    graphs, y = [nx.cycle_graph(5 + i % 3) for i in range(20)], [i % 2 for i in range(20)]
    for graph, kind in zip(graphs, y, strict=True):
        nx.set_node_attributes(graph, {node: "CNO"[node % 3] for node in graph}, "element")
        nx.set_node_attributes(graph, {node: node + 9.5 * kind for node in graph}, "charge")
    del graphs[0].nodes[0]["charge"]
    model = DEMONetGraphClassifier(attributes=["element", "charge"], model="kernel")
    with pytest.warns(DemonetWarning, match="'charge'"):
        model.fit(graphs, y)
    assert model.feature_names_in_.tolist() == ["element", "charge"]
    assert model.columns_.names == ["element=C", "element=N", "element=O", "charge", "charge missing"]
    assert model.score(graphs, y) > 0.9
    model.save(tmp_path / "m.safetensors")
    again = DEMONetGraphClassifier.load(tmp_path / "m.safetensors").predict_proba(graphs[:3])
    np.testing.assert_array_equal(again, model.predict_proba(graphs[:3]))
    with pytest.raises(DemonetError, match=r"graph 0\b.*'element'"):
        model.predict([nx.path_graph(3)])
    with pytest.raises(DemonetError, match=r"graph 0\b.*\bData\b"):
        DEMONetGraphClassifier(attributes="all").fit([read_graph(graph) for graph in graphs], y)


def test_output_as_a_data_frame(fitted):
    framed = clone(fitted).set_output(transform="pandas")
    assert clone(framed)._sklearn_output_config == {"transform": "pandas"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemonetWarning)
        framed.fit(y=LABELS)
    found = framed.transform(["r0", "a0"])
    assert found.index.tolist() == ["r0", "a0"]
    assert found.columns.tolist() == framed.get_feature_names_out().tolist()
    np.testing.assert_array_equal(found.to_numpy(), fitted.transform(["r0", "a0"]))
    with pytest.raises(DemonetError, match="'xarray'"):
        framed.set_output(transform="xarray")
    triangles = [nx.cycle_graph(3 + i % 2) for i in range(8)]
    graphs = DEMONetGraphClassifier(**QUICK).fit(triangles, [0, 1] * 4).set_output(transform="pandas")
    assert graphs.transform(triangles).columns.tolist() == graphs.get_feature_names_out().tolist()


def test_a_pipeline_hands_data_frames_on():
    identity = FunctionTransformer(feature_names_out="one-to-one")
    pipe = make_pipeline(DEMONetClassifier(graph=EDGES, **QUICK), identity).set_output(transform="pandas")
    found = pipe.fit_transform(list(LABELS), list(LABELS.values()))
    assert isinstance(found, pd.DataFrame)
    assert found.index.tolist() == list(LABELS)


def test_verbose_is_a_number_too(capfd):
    DEMONetClassifier(graph=EDGES, verbose=1, model="kernel").fit(y=LABELS)
    assert f"{len(LABELS)} labelled" in capfd.readouterr().err
    with pytest.raises(DemonetError, match="verbose"):
        DEMONetClassifier(graph=EDGES, verbose=-1, **QUICK).fit(y=LABELS)


def test_warnings_point_at_the_line_of_the_user():
    model = DEMONetClassifier(graph=[*PAIRS, PAIRS[0]], **QUICK)
    with pytest.warns(DemonetWarning) as caught:
        model.fit(y=LABELS)
    assert {warning.filename for warning in caught} == {__file__}
