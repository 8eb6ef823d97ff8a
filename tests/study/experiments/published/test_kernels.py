"""What was printed of the subtree kernel: the two protocols, on folds few enough to follow."""

from __future__ import annotations

import pytest
import torch
from tests.kernels.graphs import path, star
from torch_geometric.data import Data

from demonet_study.experiments.published import kernels


def labelled(one, label):
    return Data(x=torch.ones(one.num_nodes, 1), edge_index=one.edge_index, y=torch.tensor([label]))


@pytest.fixture
def graphs(monkeypatch):
    """Nine paths and nine stars."""
    made = [labelled(make(3 + i % 3), int(make is star)) for make in (path, star) for i in range(9)]
    monkeypatch.setattr(kernels, "load", lambda name: made)
    return made


def by_setting():
    return kernels.best_setting([kernels.by_strength("made up", setting, 3) for setting in range(12)])


def by_another_fold():
    return [kernels.by_another_fold("made up", fold, 3) for fold in range(3)]


@pytest.mark.parametrize("measure", [by_setting, by_another_fold])
def test_an_easy_set(graphs, measure):
    assert measure() == [1.0, 1.0, 1.0]


def test_every_graph_is_tested_once_by_one_setting(graphs):
    """A path and a star have each other's class: the folds that test them are wrong once each, and nothing helps."""
    graphs[0].y, graphs[9].y = torch.tensor([1]), torch.tensor([0])
    found = by_setting()  # of equal size, so their mean is the share that is right
    assert sum(found) / 3 == pytest.approx(16 / 18)
    assert sum(found) >= sum(by_another_fold())
