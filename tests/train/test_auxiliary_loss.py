"""What a network may add to the objective, and a learning rate that falls."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from demonet import DemonetError
from demonet.data.splits import Split
from demonet.train import NodeProblem, TrainConfig, fit

X = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
PROBLEM = NodeProblem((X,), torch.tensor([0, 1, 0, 1]), Split("s", 0, [0, 1], [2], [3]))


class Pulled(nn.Module):
    """A linear map whose own loss pulls it towards a given matrix."""

    def __init__(self, pull):
        super().__init__()
        self.weight, self.pull = nn.Parameter(torch.zeros(2, 2)), pull

    def forward(self, x):
        if self.pull:
            self.auxiliary_loss = self.pull * (self.weight - 3.0).square().sum()
        return x @ self.weight


def test_the_auxiliary_loss_is_part_of_the_objective():
    config = TrainConfig(epochs=300, patience=300, lr=0.05, weight_decay=0.0)
    pulled, alone = Pulled(100.0), Pulled(0.0)
    history = fit(pulled, PROBLEM, config)
    assert history.train_loss[0] == pytest.approx(100 * 4 * 9 + torch.log(torch.tensor(2.0)).item())
    assert history.val_loss[0] == pytest.approx(0.6931, abs=1e-3)  # the cross-entropy alone chooses the epoch
    fit(alone, PROBLEM, config)
    assert float((alone.weight - 3).abs().min()) > 0.5
    pulled.pull = 100.0
    weights = []
    fit(pulled, PROBLEM, config, on_epoch=lambda epoch: weights.append(pulled.weight.detach().clone()))
    assert float((weights[-1] - 3).abs().max()) < 0.1


def test_the_rate_falls_by_halves():
    """Adam's first steps are as long as the rate, whatever the gradient: so is the sum of what a weight can move."""
    moved = {}
    for every in (None, 1):
        model, steps = Pulled(1e6), []
        config = TrainConfig(epochs=3, lr=0.1, weight_decay=0.0, halve_lr_every=every)
        fit(
            model, PROBLEM, config, on_epoch=lambda _, model=model, steps=steps: steps.append(float(model.weight[0, 0]))
        )
        moved[every] = [b - a for a, b in zip([0.0, *steps], steps, strict=False)]
    assert moved[None] == pytest.approx([0.1, 0.1, 0.1], rel=0.01)
    assert moved[1] == pytest.approx([0.1, 0.05, 0.025], rel=0.01)


@pytest.mark.parametrize("value", [0, -1, 2.5])
def test_a_bad_schedule(value):
    with pytest.raises(DemonetError, match="halve_lr_every"):
        TrainConfig(halve_lr_every=value)
