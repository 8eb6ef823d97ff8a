"""Weights of classes and of items in the estimators: every model, every form, and what is refused."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from demonet import (
    DEMONetClassifier,
    DemonetError,
    DEMONetGraphClassifier,
    DEMONetGraphRegressor,
    DEMONetRegressor,
)
from demonet.data import fractions

GRAPH = nx.gnm_random_graph(60, 150, seed=0)
NODES = list(GRAPH)
GRAPHS = [nx.gnm_random_graph(8, 10 + n % 7, seed=n) for n in range(40)]
WEIGHT = np.random.default_rng(1).integers(0, 4, size=60).astype(float)
MODELS = {
    "auto": {"model": "auto", "effort": "quick"},
    "kernel": {"model": "kernel"},
    "network": {"model": "network", "preset": "default", "epochs": 8},
}
EVERY = pytest.mark.parametrize("model", MODELS)


def classes(count=60):
    return np.where(np.random.default_rng(0).random(count) < 0.3, "rare", "common")


def numbers(count=60):
    return np.random.default_rng(0).normal(size=count) + [GRAPH.degree(node) for node in range(count)]


@EVERY
@pytest.mark.parametrize("of_graphs", [False, True])
def test_classes_count_by_their_weights(tmp_path, model, of_graphs):
    """On items that cannot be told apart: the majority without weights, no class balanced, the rare one if heavy."""
    cycle, cycles, y = nx.cycle_graph(60), [nx.cycle_graph(6)] * 60, np.where(np.arange(60) % 6 == 0, "rare", "common")
    options = MODELS[model] | ({"epochs": 40, "lr": 0.05, "preset": "strong"} if model == "network" else {})

    def fitted(weight):
        if of_graphs:
            return DEMONetGraphClassifier(class_weight=weight, **options).fit(cycles, y), cycles
        return DEMONetClassifier(graph=cycle, class_weight=weight, **options).fit(range(60), y), None

    rare = {}
    for name, weight in (("none", None), ("balanced", "balanced"), ("heavy", {"rare": 50.0})):
        found, given = fitted(weight)
        rare[name] = found.predict_proba(given)[:, 1]
        assert name == "balanced" or set(found.predict(given)) == {"common" if name == "none" else "rare"}
    assert rare["none"].max() < 0.25
    np.testing.assert_allclose(rare["balanced"], 0.5, atol=0.1)
    assert rare["heavy"].min() > 0.8  # 50 / (50 + 5) is 0.91
    found.save(tmp_path / "m.safetensors")
    loaded = type(found).load(tmp_path / "m.safetensors")
    again = loaded.predict_proba(cycles) if of_graphs else loaded.predict_proba(graph=cycle)
    np.testing.assert_allclose(again[:, 1], rare["heavy"], atol=1e-5)


@EVERY
def test_weights_of_classes_are_weights_of_items(model):
    y = classes()
    heavy = DEMONetClassifier(graph=GRAPH, class_weight={"rare": 4.0}, **MODELS[model]).fit(NODES, y)
    items = DEMONetClassifier(graph=GRAPH, **MODELS[model]).fit(NODES, y, np.where(y == "rare", 4.0, 1.0))
    np.testing.assert_array_equal(heavy.predict_proba(), items.predict_proba())
    both = DEMONetClassifier(graph=GRAPH, class_weight={"rare": 2.0}, **MODELS[model])
    both.fit(NODES, y, np.where(y == "rare", 2.0, 1.0))
    np.testing.assert_array_equal(heavy.predict_proba(), both.predict_proba())
    plain = DEMONetClassifier(graph=GRAPH, **MODELS[model]).fit(NODES, y)
    assert np.abs(heavy.predict_proba() - plain.predict_proba()).max() > 0.02
    ones = DEMONetClassifier(graph=GRAPH, **MODELS[model]).fit(NODES, y, np.ones(60))
    np.testing.assert_array_equal(ones.predict_proba(), plain.predict_proba())


@EVERY
def test_balanced_classes_have_equal_totals(model):
    """The weights of classes follow from those of items."""
    y = classes()
    weight = np.where(np.arange(60) < 20, 3.0, 1.0)
    options = {"graph": GRAPH, **MODELS[model]}
    totals = {name: weight[y == name].sum() for name in ("rare", "common")}
    given = {name: weight.sum() / (2 * total) for name, total in totals.items()}
    balanced = DEMONetClassifier(class_weight="balanced", **options).fit(NODES, y, weight)
    named = DEMONetClassifier(class_weight=given, **options).fit(NODES, y, weight)
    np.testing.assert_array_equal(balanced.predict_proba(), named.predict_proba())


@EVERY
def test_a_node_of_weight_zero_is_not_in_training(model):
    kept = np.flatnonzero(WEIGHT)
    for make, y in ((DEMONetClassifier, classes()), (DEMONetRegressor, numbers())):
        zero = make(graph=GRAPH, **MODELS[model]).fit(NODES, y, WEIGHT)
        without = make(graph=GRAPH, **MODELS[model]).fit(kept, y[kept], WEIGHT[kept])
        np.testing.assert_array_equal(zero.fitted_.outputs(zero.graph_), without.fitted_.outputs(zero.graph_))
        assert set(torch.cat([zero.split_.train, zero.split_.val]).tolist()) == set(kept.tolist())


@EVERY
def test_a_graph_of_weight_zero_is_not_in_training(model):
    weight, y = WEIGHT[:40], classes(40)
    kept = np.flatnonzero(weight)
    for make, target in ((DEMONetGraphClassifier, y), (DEMONetGraphRegressor, numbers(40))):
        options = MODELS[model] | ({"preset": "paper", "hidden": 8} if model == "network" else {})
        zero = make(**options).fit(GRAPHS, target, sample_weight=weight)
        without = make(**options).fit([GRAPHS[i] for i in kept], target[kept], sample_weight=weight[kept])
        np.testing.assert_allclose(
            zero.predict_proba(GRAPHS) if y is target else zero.predict(GRAPHS),
            without.predict_proba(GRAPHS) if y is target else without.predict(GRAPHS),
            atol=1e-5,
        )


def test_a_class_of_weight_zero_is_not_a_class():
    y = np.where(np.arange(60) % 3, classes(), "none")
    found = DEMONetClassifier(graph=GRAPH, model="kernel").fit(NODES, y, np.where(y == "none", 0.0, 1.0))
    assert found.classes_.tolist() == ["common", "rare"]
    with pytest.raises(DemonetError, match="1 class"):
        DEMONetClassifier(graph=GRAPH, model="kernel").fit(NODES, y, np.where(y == "rare", 1.0, 0.0))


@pytest.mark.parametrize("model", ["auto", "network"])
def test_tables_take_weights(model):
    """Of labels and of numbers: those of the heavy half count."""
    table = np.stack([np.arange(60) % 2, np.arange(60) % 4 == 0], 1).astype(float)
    heavy = np.where(np.arange(60) % 2, 20.0, 1.0)
    for make, y in ((DEMONetClassifier, table), (DEMONetRegressor, table * 10)):
        plain, found = (make(graph=GRAPH, **MODELS[model]).fit(NODES, y, weight) for weight in (None, heavy))
        first = [each.fitted_.outputs(each.graph_)[:, 0].mean() for each in (plain, found)]
        assert first[1] > first[0] + 0.05


FORMS = {
    "list": lambda y, w: (NODES, y, w.tolist()),
    "tensor": lambda y, w: (NODES, y, torch.from_numpy(w)),
    "series": lambda y, w: (NODES, y, pd.Series(w, index=range(100, 160))),  # in the order of y
    "by id": lambda y, w: (NODES, y, dict(zip(NODES[::-1], w[::-1], strict=True))),
    "both by id": lambda y, w: (None, dict(zip(NODES, y, strict=True)), dict(zip(NODES[::-1], w[::-1], strict=True))),
    "in the order of a dict": lambda y, w: (None, dict(zip(NODES, y, strict=True)), w),
    "two series": lambda y, w: (None, pd.Series(y, index=NODES), pd.Series(w[::-1], index=NODES[::-1])),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form):
    y = classes()
    wanted = DEMONetClassifier(graph=GRAPH, model="kernel").fit(NODES, y, WEIGHT)
    found = DEMONetClassifier(graph=GRAPH, model="kernel").fit(*FORMS[form](y, WEIGHT))
    np.testing.assert_array_equal(found.predict_proba(), wanted.predict_proba())


@pytest.mark.parametrize("masked", [False, True])
def test_a_data_has_a_weight_for_every_node(masked):
    edges = torch.tensor(list(GRAPH.edges)).T
    y = torch.from_numpy((classes() == "rare").astype(np.int64))
    y[5:9] = -1
    data = Data(edge_index=torch.cat([edges, edges.flip(0)], 1), y=y, num_nodes=60)
    rows = np.flatnonzero(y.numpy() >= 0)
    options = MODELS["network"]
    if masked:
        known = y >= 0
        data.train_mask = known & (torch.arange(60) % 4 != 0)
        data.val_mask = known & (torch.arange(60) % 4 == 0)
        heavy = DEMONetClassifier(**options).fit(data, sample_weight=WEIGHT)
        used = torch.cat([heavy.split_.train, heavy.split_.val]).tolist()
        assert set(used) == set(rows[WEIGHT[rows] > 0].tolist())
        assert np.abs(heavy.predict_proba() - DEMONetClassifier(**options).fit(data).predict_proba()).max() > 1e-3
        return
    wanted = DEMONetClassifier(graph=data, **options).fit(rows, y.numpy()[rows], WEIGHT[rows])
    found = DEMONetClassifier(**options).fit(data, sample_weight=WEIGHT)
    np.testing.assert_array_equal(found.predict_proba(), wanted.predict_proba())


def test_graphs_without_a_target_have_a_weight_too():
    """In ``fit`` and in ``score``."""
    data = [
        Data(edge_index=torch.tensor(list(graph.edges)).T, num_nodes=8, y=torch.tensor([n % 3 - 1]))
        for n, graph in enumerate(GRAPHS)
    ]
    labelled = [n for n in range(40) if n % 3]
    wanted = DEMONetGraphClassifier(model="kernel")
    wanted.fit([GRAPHS[n] for n in labelled], [n % 3 - 1 for n in labelled], WEIGHT[labelled])
    found = DEMONetGraphClassifier(model="kernel").fit(data, sample_weight=WEIGHT[:40])
    np.testing.assert_allclose(found.predict_proba(data), wanted.predict_proba(GRAPHS), atol=1e-9)
    right = wanted.predict([GRAPHS[n] for n in labelled]) == [n % 3 - 1 for n in labelled]
    assert found.score(data, sample_weight=WEIGHT[:40]) == pytest.approx(np.average(right, weights=WEIGHT[labelled]))


WRONG = {
    "negative": (np.where(np.arange(60) == 7, -2.0, 1.0), r"-2\.0.*item 7\b"),
    "not a number": (np.where(np.arange(60) == 3, np.nan, 1.0), r"nan.*item 3\b"),
    "infinite": (np.where(np.arange(60) == 4, np.inf, 1.0), r"inf.*item 4\b"),
    "too short": (np.ones(59), r"\(59,\).*\b60\b"),
    "a table": (np.ones((60, 1)), r"\(60, 1\)"),
    "words": (["heavy"] * 60, "sample_weight.*heavy"),
    "zero": (np.zeros(60), "zero"),
    "not all nodes": (dict.fromkeys(range(58), 1.0), r"58\b.*2 in total"),
}


@pytest.mark.parametrize("name", WRONG)
def test_weights_that_are_refused(name):
    weight, told = WRONG[name]
    with pytest.raises(DemonetError, match=told):
        DEMONetClassifier(graph=GRAPH, model="kernel").fit(NODES, classes(), weight)


def test_a_node_with_two_weights_is_refused():
    y = classes()
    with pytest.raises(DemonetError, match=r"node 3 has two weights, 2\.0 and 1\.0"):
        DEMONetClassifier(graph=GRAPH, model="kernel").fit([*NODES, 3], [*y, y[3]], [*np.ones(60), 2.0])


def test_other_weights_do_not_resume(tmp_path):
    """A candidate that was fitted with other weights is of another fit."""
    edges = torch.tensor(list(GRAPH.edges)).T
    y = torch.from_numpy((classes() == "rare").astype(np.int64))
    data = Data(edge_index=torch.cat([edges, edges.flip(0)], 1), y=y, num_nodes=60)
    split = fractions(data.y, (0.7, 0.3, 0.0), 0, stratified=True)
    DEMONetClassifier(**MODELS["auto"]).fit_split(data, split, checkpoint=tmp_path)
    for weights in ({"class_weight": "balanced"}, {}):
        given = {} if weights else {"sample_weight": WEIGHT + 1}
        with pytest.raises(DemonetError, match="another folder"):
            DEMONetClassifier(**weights, **MODELS["auto"]).fit_split(data, split, checkpoint=tmp_path, **given)


def test_predictions_of_weighted_classes_are_not_moved_twice():
    """The metric is the balanced accuracy, which asks for factors; the weights have moved probabilities already."""
    y = np.where(np.random.default_rng(0).random(60) < 0.2, "rare", "common")
    options = {"graph": nx.gnm_random_graph(60, 150, seed=0), "model": "auto", "effort": "quick"}
    weighted = DEMONetClassifier(class_weight="balanced", **options).fit(NODES, y)
    assert weighted.objective_.metric == "balanced"
    assert {row["metric"] for row in weighted.candidates_} == {"balanced"}
    assert weighted.objective_.decision == ()
