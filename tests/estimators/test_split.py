"""Training on a split of one's own: the same as holding out the same items, with the test part unseen."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.estimators.problems import QUICK, families, roles

from demonet import DEMONetClassifier, DemonetError, DEMONetGraphClassifier
from demonet.data import GraphSet, Split, fractions


@pytest.mark.parametrize("weight", [None, "balanced"])
def test_the_same_split_gives_the_same_model(tmp_path, weight):
    data = roles()
    held = DEMONetClassifier(class_weight=weight, **QUICK).fit(data)
    own = DEMONetClassifier(class_weight=weight, **QUICK).fit_split(data, held.split_, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(own.predict_proba(), held.predict_proba())
    assert own.split_ == held.split_


@pytest.mark.parametrize("weight", [None, "balanced"])
def test_labels_of_the_test_part_leave_no_trace(weight):
    data, other = roles(), roles()
    split = fractions(data.y, (0.5, 0.2, 0.3), 0, stratified=True)
    other.y[split.test] = other.y[split.test].roll(1)
    one, two = (
        DEMONetClassifier(class_weight=weight, **QUICK).fit_split(graph, split).predict_proba()
        for graph in (data, other)
    )
    np.testing.assert_array_equal(one, two)


def test_graphs_with_some_unlabelled():
    graphs, _ = families()
    graphs = [graph.clone() for graph in graphs]
    graphs[3].y = torch.tensor([-1])
    graphs = GraphSet(graphs, ["a", "b", "c", "d", "e"])
    split = fractions(graphs.y, (0.6, 0.2, 0.2), 0, stratified=True)
    assert 3 not in torch.cat([split.train, split.val, split.test])
    told = []
    classifier = DEMONetGraphClassifier(**QUICK).fit_split(graphs, split, on_epoch=told.append)
    assert [epoch.val_loss for epoch in told] == classifier.history_.val_loss
    assert classifier.predict(graphs).shape == (24,)


def test_a_split_that_does_not_fit_is_refused():
    data = roles()
    with pytest.raises(DemonetError, match=r"train\b.*\b9999\b.*\bmine\b.*\b42\b"):
        DEMONetClassifier(**QUICK).fit_split(data, Split("mine", 0, [0, 9999], [1], []))
