"""Labels and numbers have the whole ensemble: the same answer twice, in any order, and near targets known by id."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from scipy.spatial import cKDTree
from tests.golden.cases import graphs
from torch_geometric.data import Data

from demonet.data.splits import Split, fractions
from demonet.data.synthetic import power_law
from demonet.ensemble import Ensemble
from demonet.ensemble.selection import ensemble_weights, soften
from demonet.errors import DemonetWarning
from demonet.features.views import NodeView
from demonet.methods import Labelled
from demonet.methods.boosted import BoostedTrees
from demonet.methods.closed_form import COARSE_SCREEN, Kernel
from demonet.methods.corrected import Corrected
from demonet.methods.model import MOST_SECONDS
from demonet.methods.propagation import Propagation
from demonet.methods.selection import Choice
from demonet.methods.wl_models import WLForest, WLKernel
from demonet.train.objective import OBJECTIVES
from demonet.train.problem import fitted_objective

N = 160


def places(task: str, named: bool = True) -> Data:
    """Nodes joined to the nearest in a plane; a target follows the place, another an attribute; some are unknown."""
    random = np.random.default_rng(0)
    place, x = random.random((N, 2)), random.normal(size=(N, 3))
    near = cKDTree(place).query(place, 6)[1][:, 1:]
    ends = np.stack([np.repeat(np.arange(N), 5), near.ravel()])
    edges = np.unique(np.concatenate([ends, ends[::-1]], 1), axis=1)
    y = np.stack([1e5 * np.sin(6 * place[:, 0]) + 1e3 * random.normal(size=N), x[:, 0] + 7], 1)
    y = (y > np.median(y, 0)).astype(float) if task == "multilabel" else y
    y[::9, 1] = np.nan
    data = Data(x=torch.from_numpy(x).float(), edge_index=torch.from_numpy(edges), num_nodes=N, y=torch.from_numpy(y))
    if named:
        data.node_ids = [f"n{number}" for number in range(N)]
    return data


def split_of(count: int) -> Split:
    return fractions(torch.zeros(count, dtype=torch.int64), (0.5, 0.25, 0.25), 0)


@cache
def fitted(task: str) -> tuple[Data, Split, Ensemble]:
    data, split = places(task), split_of(N)
    return data, split, Ensemble.fit(data, split, task=task, effort="quick")


def shuffled(data: Data, order: np.ndarray) -> Data:
    place = torch.from_numpy(np.argsort(order))
    ids = [data.node_ids[node] for node in order]
    return Data(x=data.x[order], edge_index=place[data.edge_index], num_nodes=N, node_ids=ids)


TASKS = pytest.mark.parametrize("task", ["regress", "multilabel"])


@TASKS
def test_the_same_answer_twice_loaded_and_in_any_order(task):
    data, _, ensemble = fitted(task)
    scale = np.abs(ensemble.fitted_outputs).max(0)
    order = np.random.default_rng(1).permutation(N)
    loaded = Ensemble.from_state(*ensemble.state())
    assert loaded.objective == ensemble.objective
    for model in (ensemble, loaded):
        np.testing.assert_allclose(model.outputs(data) / scale, ensemble.fitted_outputs / scale, atol=1e-5)
        found = model.outputs(shuffled(data, order))
        np.testing.assert_allclose(found / scale, ensemble.fitted_outputs[order] / scale, atol=1e-4)
        assert model.recognised == N


@TASKS
def test_what_is_near_and_what_is_an_attribute_are_both_learned(task):
    data, split, ensemble = fitted(task)
    test, y = split.test.numpy(), data.y.numpy()
    assert {row.status for row in ensemble.candidates} == {"fitted"}
    assert {"propagation", "boosted-trees", "linear", "machine"} <= {row.name for row in ensemble.candidates}
    for column in range(2):
        known = test[~np.isnan(y[test, column])]
        assert np.corrcoef(ensemble.strict_outputs[known, column], y[known, column])[0, 1] > 0.6
    if task == "multilabel":
        assert ensemble.fitted_outputs.min() > 0
        assert ensemble.fitted_outputs.max() < 1


@TASKS
def test_known_targets_count_by_id_after_edges_have_changed(task):
    data, split = places(task), split_of(N)
    ensemble = Ensemble.fit(data, split, task=task, members=[Propagation()], refit=False)
    kept = torch.from_numpy(np.random.default_rng(2).random(data.edge_index.size(1)) < 0.9)
    train = split.train[:8]
    arrivals = torch.stack([train, torch.full_like(train, N)])
    later = Data(
        x=torch.cat([data.x, data.x[:1]]),
        edge_index=torch.cat([data.edge_index[:, kept], arrivals, arrivals.flip(0)], 1),
        num_nodes=N + 1,
        node_ids=[*data.node_ids, "new"],
    )
    found = ensemble.outputs(later)
    assert ensemble.recognised == N
    near, y = data.y[train, 0].numpy().mean(), data.y[split.train, 0].numpy()
    assert abs(found[N, 0] - near) < 0.5 * y.std()
    known = ensemble.known_targets(later)
    np.testing.assert_allclose(known[split.train.numpy()], data.y[split.train].numpy(), rtol=1e-6)
    assert np.isnan(known[N]).all()
    later.known_targets = torch.from_numpy(known)
    later.known_targets[train] = 0.0
    moved = ensemble.outputs(later)
    assert moved[N, 0] < found[N, 0] if near > 0 else moved[N, 0] > found[N, 0]


@TASKS
def test_graphs(task):
    given = graphs(task) * 5
    members = [
        Kernel("machine", members=1, screen=60),
        WLKernel(coarse=True),
        WLForest(trees=9),
        BoostedTrees(rounds=9),
    ]
    ensemble = Ensemble.fit(given[:140], task=task, members=members)
    assert {row.status for row in ensemble.candidates} == {"fitted"}
    loaded = Ensemble.from_state(*ensemble.state())
    scale = np.abs(ensemble.fitted_outputs).max(0)
    np.testing.assert_allclose(loaded.outputs(given[140:]) / scale, ensemble.outputs(given[140:]) / scale, atol=1e-6)
    backwards = loaded.outputs(given[:140][::-1])[::-1]
    np.testing.assert_allclose(backwards / scale, ensemble.fitted_outputs / scale, atol=1e-4)
    assert loaded.predict(given[:3]).shape == ensemble.fitted_outputs[:3].shape


def test_weights_of_numbers_minimise_the_squared_error():
    random = np.random.default_rng(0)
    y = random.normal(size=(400, 1))
    outputs = np.stack([y + random.normal(size=y.shape), y + random.normal(size=y.shape), 0 * y + 9])
    weights = ensemble_weights(outputs, y, "regress")
    assert weights[2] == 0
    assert weights[:2] == pytest.approx([0.5, 0.5], abs=0.15)
    y[:200] = np.nan  # what is unknown does not count
    known = ensemble_weights(outputs[:, 200:], y[200:], "regress")
    assert np.abs(ensemble_weights(outputs, y, "regress") - known).max() < 0.2


def test_a_choice_for_an_item_is_made_without_it():
    random = np.random.default_rng(0)
    outputs, y = random.random((6, 23)), random.random(23)
    choice = Choice(23, 0)
    for setting, each in enumerate(outputs):
        choice.offer(setting, each, (each - y) ** 2)
    fold, losses = np.random.default_rng(0).permutation(23) % 5, (outputs - y) ** 2
    assert choice.best == losses.mean(1).argmin()
    expected = [outputs[losses[:, fold != fold[item]].sum(1).argmin(), item] for item in range(23)]
    np.testing.assert_array_equal(choice.outputs, expected)


@TASKS
@pytest.mark.parametrize("model", [Propagation(), BoostedTrees(rounds=20), Corrected(rounds=20)], ids=lambda m: m.name)
def test_validation_items_are_judged_by_what_others_choose(task, model):
    """Every label has choices of its own: judged by the items that it chose on, a model looked better than others."""
    data, split = places(task), split_of(N)
    view, val = NodeView(data), split.val.numpy()
    labelled = Labelled.of(data.y, fitted_objective(OBJECTIVES[task](), data.y, split), split)
    fitted = model.fit_on(view, labelled)
    judged = Ensemble.fit(data, split, task=task, members=[model], refit=False).judged[model.name]
    if task == "multilabel":
        np.testing.assert_allclose(judged, soften(fitted.judged, task))
    assert judged.shape == (len(val), 2)
    if model.name != "corrected":  # its walk is chosen beside trees whose rounds were chosen on all items
        item, y = int(np.flatnonzero(~np.isnan(labelled.y[val]).any(1))[0]), labelled.y.copy()
        y[val[item]] = 1 - y[val[item]] if task == "multilabel" else y[val[item]] - 50
        other = model.fit_on(view, replace(labelled, y=y))
        np.testing.assert_array_equal(other.judged[item], fitted.judged[item])


@TASKS
def test_a_quick_search_for_labels_and_numbers_compares_as_many_items_as_it_can_afford(task, monkeypatch):
    data = power_law(1600, 3000, hub=40, seed=0)
    train = np.arange(800)

    def screen(of, effort="quick"):
        y = np.zeros(1600, dtype=np.int64) if of == "classify" else np.zeros((1600, 2))
        return Kernel.candidates(NodeView(data), Labelled(y, 2, train, train[:0], task=of), effort)[0].settings.screen

    assert screen("classify") == COARSE_SCREEN < screen(task) < screen(task, "standard")
    monkeypatch.setitem(MOST_SECONDS, "quick", 0.1)
    assert screen(task) == COARSE_SCREEN


def test_softening_is_for_probabilities():
    np.testing.assert_array_equal(soften(np.array([[0.0, 5.0]]), "regress"), [[0.0, 5.0]])
    np.testing.assert_allclose(soften(np.array([[0.0, 1.0]]), "multilabel"), [[0.01, 0.99]])


def test_classes_with_one_example_or_none_in_the_training_part():
    data = places("regress", named=False)
    y = (data.y[:, 0] > 0).long()
    split = split_of(N)
    y[split.train[0]], y[split.val[:2]], y[split.test[:3]] = 2, 3, 4
    data.y = y
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", DemonetWarning)
        ensemble = Ensemble.fit(data, split, effort="quick")
    assert ensemble.fitted_outputs.shape == (N, 5)
    assert {row.status for row in ensemble.candidates} == {"fitted"}
    alone = Labelled(np.zeros((4, 1)), 1, np.arange(3), np.arange(3, 4), task="multilabel")
    np.testing.assert_allclose(alone.prior(), [1 / 5])


@TASKS
def test_trees_are_corrected_by_residuals_near_a_node(task):
    """The place is not among the attributes: trees alone cannot know it, the residuals of known nodes do."""
    data, split = places(task), split_of(N)
    corrected = Ensemble.fit(data, split, task=task, members=[Corrected(rounds=9)])
    alone = Ensemble.fit(data, split, task=task, members=[BoostedTrees(rounds=9)])
    test, y = split.test.numpy(), data.y.numpy()[:, 0]
    errors = [((each.strict_outputs[:, 0] - y)[test] ** 2).mean() for each in (corrected, alone)]
    assert errors[0] < 0.8 * errors[1]
    loaded = Ensemble.from_state(*corrected.state())
    np.testing.assert_allclose(loaded.outputs(data), corrected.fitted_outputs, rtol=1e-9)
    known = loaded.known_targets(data)
    data.known_targets = torch.from_numpy(known)
    np.testing.assert_allclose(loaded.outputs(data), corrected.fitted_outputs, rtol=1e-6)
