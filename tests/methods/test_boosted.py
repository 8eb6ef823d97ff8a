"""Boosted trees as arrays against scikit-learn's, rounds chosen on validation, problems of every shape."""

import json

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from tests.methods.problems import graph_set, labelled_of, roles

from demonet.ensemble import portfolio
from demonet.features.views import NodeView, view_of
from demonet.methods import Labelled, Model
from demonet.methods.boosted import BoostedTrees
from demonet.methods.selection import item_losses


@pytest.mark.parametrize("classes", [2, 5])
def test_trees_as_arrays_predict_what_scikit_learn_does(classes, monkeypatch):
    data, known = roles(), []
    data.y = data.y % classes
    monkeypatch.setattr(
        HistGradientBoostingClassifier, "fit", lambda self, *given: known.append(self) or original(self, *given)
    )
    view, labelled = NodeView(data), labelled_of(data)
    labelled = Labelled(labelled.y, classes + 1, labelled.train, labelled.val)  # one class has no item
    fitted = BoostedTrees(rounds=20).fit_on(view, labelled)
    rows = fitted._rows(view)
    stages = list(known[0].staged_predict_proba(rows))
    losses = [item_losses("classify", stage[labelled.val], labelled.y[labelled.val]).mean() for stage in stages]
    assert fitted.chosen["rounds"] == [int(np.argmin(losses)) + 1]
    found = fitted.outputs(view)
    np.testing.assert_allclose(found[:, :classes], stages[np.argmin(losses)], atol=1e-12)
    assert not found[:, classes].any()


original = HistGradientBoostingClassifier.fit


def test_wide_attributes_are_read_on_their_leading_axes():
    data = roles(motifs=40)
    rows = np.random.default_rng(3).random((data.num_nodes, 300)) < 0.05 + 0.1 * (data.y.numpy()[:, None] % 3 == 1)
    data.x, data.y = torch.from_numpy(rows).float(), (data.y % 3 == 1).long()
    view, labelled = NodeView(data), labelled_of(data)
    fitted = BoostedTrees(rounds=20).fit_on(view, labelled)
    assert fitted._rows(view).shape[1] == 1 + view.structure.shape[1] + 2 * 32
    test = np.setdiff1d(np.arange(view.num_items), [*labelled.train, *labelled.val])
    assert (fitted.outputs(view).argmax(1) == labelled.y)[test].mean() > 0.9


@pytest.mark.parametrize("kind", ["nodes", "graphs"])
def test_one_class_and_no_validation_part(kind):
    data = roles() if kind == "nodes" else graph_set()
    view, labelled = view_of(data), labelled_of(data)
    alone = Labelled(labelled.y * 0, 2, labelled.train, labelled.val[:0])
    np.testing.assert_array_equal(BoostedTrees().fit_on(view, alone).outputs(view)[:, 0], 1)
    without = Labelled(labelled.y, labelled.outputs, labelled.train, labelled.val[:0])
    fitted = BoostedTrees(rounds=9).fit_on(view, without)
    assert fitted.chosen == {"rounds": [3]}
    facts, arrays = fitted.state()
    back = Model.from_state(json.loads(json.dumps(facts)), arrays)
    np.testing.assert_array_equal(back.outputs(view), fitted.outputs(view))


def test_the_effort_quick_has_it_where_it_is_cheap(monkeypatch):
    data = roles()
    assert "boosted-trees" in {model.name for model in portfolio(view_of(data), labelled_of(data), "quick")}
    monkeypatch.setattr("demonet.methods.boosted.QUICK", 1e-3)
    assert "boosted-trees" not in {model.name for model in portfolio(view_of(data), labelled_of(data), "quick")}
    assert "boosted-trees" in {model.name for model in portfolio(view_of(data), labelled_of(data), "standard")}
