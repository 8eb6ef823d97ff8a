"""A split of one's own, or the masks of a PyG Data: as if the same items were held out, with the test part unseen."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.estimators.problems import QUICK, families, masked, roles
from tests.train import problems

from demonet import DEMONetClassifier, DemonetError, DEMONetGraphClassifier
from demonet.data import GraphSet, Split, fractions, thirds
from demonet.data.synthetic import role_graph
from demonet.train import train_nodes


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


@pytest.fixture(name="masked")
def data_and_split():
    """A graph with masks, and their split."""
    data = role_graph(motifs=8)
    split = thirds(data.y, seed=0, stratified=True)
    return masked(data, split), split


def same_parts(one: Split, other: Split) -> bool:
    return all(torch.equal(getattr(one, part), getattr(other, part)) for part in ("train", "val", "test"))


def test_masks_are_a_split(masked):
    data, split = masked
    assert same_parts(Split.from_masks(data), split)
    several = data.clone()
    for part in ("train", "val", "test"):
        several[f"{part}_mask"] = torch.stack([data.val_mask, data[f"{part}_mask"]], 1)
    assert same_parts(Split.from_masks(several, 1), split)
    with pytest.raises(DemonetError, match="more than once"):
        Split.from_masks(several, 0)
    with pytest.raises(DemonetError, match="split 2 of 2"):
        Split.from_masks(several, 2)


@pytest.mark.parametrize("mask", [torch.ones(3, dtype=torch.bool), torch.arange(4)])
def test_masks_that_do_not_fit_are_an_error(masked, mask):
    data, _ = masked
    data.train_mask = mask
    with pytest.raises(DemonetError, match="train_mask"):
        Split.from_masks(data)


def test_training_takes_masks_for_a_split(masked):
    data, split = masked
    quick = problems.quick("paper", "nodes", epochs=2)
    assert train_nodes(data, None, quick).history.val_loss == train_nodes(data, split, quick).history.val_loss


@pytest.mark.parametrize("validates", [True, False])
def test_an_estimator_never_trains_on_test_nodes(masked, validates):
    data, split = masked
    if not validates:
        del data.val_mask
    classifier = DEMONetClassifier(model="network", epochs=2).fit(data)
    used = torch.cat([classifier.split_.train, classifier.split_.val]).sort().values
    expected = torch.cat([split.train, split.val]).sort().values if validates else split.train
    assert torch.equal(used, expected)
    if validates:
        assert same_parts(classifier.split_, split)


def test_the_score_of_a_graph_is_that_of_its_test_nodes(masked):
    data, split = masked
    classifier = DEMONetClassifier(model="kernel").fit(data)
    right = classifier.predict() == [data.class_names[label] for label in data.y]
    assert classifier.score(data) == pytest.approx(right[split.test.numpy()].mean())
