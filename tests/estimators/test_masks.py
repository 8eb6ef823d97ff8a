"""The masks of a PyG Data are its split."""

from __future__ import annotations

import pytest
import torch
from tests.train import problems

from demonet import DEMONetClassifier, DemonetError
from demonet.data import Split, read_graph, thirds
from demonet.data.synthetic import role_graph
from demonet.train import train_nodes


@pytest.fixture
def masked():
    """A graph with masks, and their split."""
    data = role_graph(motifs=8)
    split = thirds(data.y, seed=0, stratified=True)
    for part in ("train", "val", "test"):
        mask = torch.zeros(data.num_nodes, dtype=torch.bool)
        mask[getattr(split, part)] = True
        data[f"{part}_mask"] = mask
    return data, split


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


def test_reading_a_data_keeps_its_masks(masked):
    data, split = masked
    assert same_parts(Split.from_masks(read_graph(data)), split)


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
