"""What was printed of GIN: an epoch for all folds, and folds within folds."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from tests.kernels.graphs import path, star
from torch_geometric.data import Data

from demonet.train.config import TrainConfig
from demonet_study.experiments.published import gin
from demonet_study.methods.gin import GIN


@pytest.fixture
def graphs(monkeypatch):
    """Thirty paths and thirty stars, whose attributes are far from zero and from one another."""
    made = []
    for label, make in enumerate((path, star)):
        for i in range(30):
            one = make(4 + i % 3)
            attributes = 100 + 10 * torch.arange(one.num_nodes).float()[:, None]
            x = torch.ones(one.num_nodes, 1)
            made.append(Data(x=x, attributes=attributes, edge_index=one.edge_index, y=torch.tensor([label])))
    monkeypatch.setattr(gin, "load", lambda name: made)
    return made


def test_one_epoch_for_all_folds():
    """Each fold has an epoch at which all is right, but no epoch is better than the second for both."""
    assert gin.best_epoch([[1.0, 0.8, 0.0], [0.0, 0.8, 1.0]]) == [0.8, 0.8]


def test_the_fold_is_tested_after_every_epoch(graphs):
    curve = gin.epoch_by_epoch("made up", 16, fold=1, folds=3, epochs=5)
    assert len(curve) == 5
    assert all((share * 20) == pytest.approx(round(share * 20)) for share in curve)


def test_attributes_are_scaled_by_training_graphs(graphs):
    split = gin.nested_k_fold(torch.tensor([0] * 30 + [1] * 30), 3, 10, seed=0)[0][0]
    scaled = gin._with_attributes(graphs, split)
    seen = torch.cat([scaled[i].x[:, 1:] for i in split.train.tolist()])
    torch.testing.assert_close(seen.mean(), torch.tensor(0.0), atol=1e-5, rtol=0)
    torch.testing.assert_close(seen.std(), torch.tensor(1.0))


def test_folds_within_folds(graphs, monkeypatch):
    monkeypatch.setattr(gin, "GIN", partial(GIN, train=TrainConfig(epochs=40, lr=0.01, batch_size=16)))
    assert gin.nested("made up", fold=0, folds=3, runs=1, grid=[(8, 0.0)]) > 0.9
